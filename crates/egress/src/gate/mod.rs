//! The gate: one thread that accepts the connections of a sandbox, judges them by a plan, and carries what is allowed.
//!
//! It is handed sockets that were made inside and uses them outside. It fails closed: where an event cannot be reported, a
//! name cannot be resolved, or a limit is reached, nothing passes, and the client gets an answer where its protocol has one.

mod accept;
mod carry;
mod client;
mod denial;
mod dial;
mod http;
mod names;
mod proxy;
mod pump;
mod report;
mod resolve;
mod tls;
mod together;

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use tokio::sync::Semaphore;

use crate::dns::Pool;
use crate::plan::GatePlan;

pub use resolve::HostsFile;

use pump::Scratch;
use report::Reports;
use resolve::Resolver;

/// The sockets of a gate.
#[derive(Debug)]
pub struct Sockets {
    /// Accept what was captured. Connections to port 53 are questions.
    pub listeners: Vec<OwnedFd>,
    /// Accept clients that are told to use a proxy: HTTP and SOCKS 5.
    pub proxies: Vec<OwnedFd>,
    /// Get questions to nameservers, as datagrams.
    pub questions: Vec<OwnedFd>,
    /// A stream for events. The gate ends when its other end is closed.
    pub events: OwnedFd,
}

/// What a gate is started with.
#[derive(Debug)]
pub struct Start {
    pub plan: GatePlan,
    pub hosts: HostsFile,
    /// What a connection to the first address of the pool gets: the proof that the path leads here.
    pub nonce: Vec<u8>,
    pub sockets: Sockets,
}

/// Why a gate cannot work.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    #[error("the runtime of the gate cannot be made")]
    Runtime(#[source] io::Error),
    #[error("a socket of the gate cannot be used")]
    Socket(#[source] io::Error),
    #[error("the network `{0}` cannot hold the addresses of names")]
    Pool(crate::address::Cidr),
}

/// Carries connections until the other end of the events is closed.
pub fn run(start: Start) -> Result<(), GateError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(GateError::Runtime)?;
    let local = tokio::task::LocalSet::new();
    let ended = local.block_on(&runtime, serve(start));
    // Connections that are under way end with their tasks.
    drop(local);
    ended
}

/// What all connections share.
struct Gate {
    plan: GatePlan,
    pool: RefCell<Pool>,
    resolver: Resolver,
    nonce: Vec<u8>,
    reports: Reports,
    scratch: Scratch,
    dials: Semaphore,
    questions: names::Allowance,
    connections: Cell<usize>,
    last_id: Cell<u64>,
}

async fn serve(start: Start) -> Result<(), GateError> {
    let Start { plan, hosts, nonce, sockets } = start;
    let pool = Pool::new(plan.pool, plan.limits.names).ok_or(GateError::Pool(plan.pool))?;
    let gate = Rc::new(Gate {
        pool: RefCell::new(pool),
        resolver: Resolver::new(plan.nameservers.clone(), hosts),
        nonce,
        reports: Reports::new(sockets.events).map_err(GateError::Socket)?,
        scratch: Scratch::default(),
        dials: Semaphore::new(plan.limits.dials),
        questions: names::Allowance::new(plan.limits.questions_per_second),
        connections: Cell::new(0),
        last_id: Cell::new(0),
        plan,
    });
    for (way, listeners) in
        [(accept::Way::Captured, sockets.listeners), (accept::Way::Proxy, sockets.proxies)]
    {
        for listener in listeners {
            let listener = accept::listener(listener).map_err(GateError::Socket)?;
            tokio::task::spawn_local(accept::accept(Rc::clone(&gate), listener, way));
        }
    }
    for socket in sockets.questions {
        let socket = names::socket(socket).map_err(GateError::Socket)?;
        tokio::task::spawn_local(names::serve(Rc::clone(&gate), socket));
    }
    gate.reports.send(&crate::event::GateEvent::Ready);
    gate.reports.until_closed().await;
    Ok(())
}
