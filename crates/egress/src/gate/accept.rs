//! From a listener to a connection with a target.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::name::Host;
use crate::verdict::{Denial, Reason, Target};

use super::client::{Client, reset};
use super::denial::{Speech, Stop};
use super::{Gate, carry, names, proxy, pump};

/// How a listener's connections say where they want to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// They were addressed to it.
    Captured,
    /// They say so, as to a proxy.
    Proxy,
}

const DNS: u16 = 53;
/// Where the machine refuses a connection for want of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) fn listener(socket: OwnedFd) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

pub(super) async fn accept(gate: Rc<Gate>, listener: TcpListener, way: Way) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Some(slot) = Slot::take(&gate) else {
            gate.reports.count_refused();
            reset(&stream);
            continue;
        };
        tokio::task::spawn_local(serve(slot, stream, way));
    }
}

/// One of the connections that the gate may carry at once; given back when it ends.
pub(super) struct Slot {
    gate: Rc<Gate>,
}

impl Slot {
    /// None while a limit is reached or events do not arrive.
    fn take(gate: &Rc<Gate>) -> Option<Self> {
        let open = gate.connections.get();
        let is_free = open < gate.plan.limits.connections && gate.reports.are_current();
        is_free.then(|| {
            gate.connections.set(open + 1);
            Self { gate: Rc::clone(gate) }
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.gate.connections.set(self.gate.connections.get() - 1);
    }
}

async fn serve(slot: Slot, stream: TcpStream, way: Way) {
    let gate = &slot.gate;
    // A small message must not wait for the answer to the one before it.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let addressed = addressed(&stream);
    let client = Client::new(stream, Duration::from_secs(gate.plan.limits.head_seconds));
    match (way, addressed) {
        (Way::Proxy, _) => proxy::serve(gate, client).await,
        (Way::Captured, Ok(address)) => captured(gate, client, address).await,
        (Way::Captured, Err(_)) => client.reset(),
    }
}

/// The address that a client connected to: as it was before the kernel redirected it, or that of the socket.
fn addressed(stream: &TcpStream) -> io::Result<SocketAddr> {
    match rustix::net::sockopt::ip_original_dst(stream) {
        Ok(address) => Ok(address.into()),
        // Nothing redirected it.
        Err(_) => stream.local_addr(),
    }
}

async fn captured(gate: &Gate, client: Client, address: SocketAddr) {
    if address.port() == DNS {
        return names::serve_stream(gate, client).await;
    }
    let ip = crate::address::canonical(address.ip());
    let named = match ip {
        IpAddr::V4(v4) if v4 == gate.pool.borrow().canary() => {
            pump::write(&client.stream, &gate.nonce).await.ok();
            return client.finish().await;
        }
        IpAddr::V4(v4) if gate.pool.borrow().contains(v4) => {
            gate.pool.borrow().name_of(v4).cloned().map(Host::Name)
        }
        ip if ip == IpAddr::from(gate.plan.inside) => None,
        ip => Some(Host::Address(ip)),
    };
    let target = Target { host: named.clone().unwrap_or(Host::Address(ip)), port: address.port() };
    if named.is_some() {
        return carry::converse(gate, client, target).await;
    }
    let stop = Stop { denial: Denial::plain(Reason::RawAddress), speech: Speech::Unknown };
    gate.deny(client, &target, stop).await;
}
