//! The life of one connection: its verdict, what its protocol lets the gate read, the way outside, the bytes.

use std::net::SocketAddr;

use tokio::net::TcpStream;

use crate::event::GateEvent;
use crate::http::RequestHead;
use crate::rule::{Protocol, Rule};
use crate::verdict::{Denial, Permit, Reason, Target};

use super::client::Client;
use super::denial::{Speech, Stop};
use super::pump::Passed;
use super::{Gate, denial, dial, http, tls};

/// How a conversation ended that was not carried to its end: with a denial, or because the client left.
pub(super) type Ended<'p> = Option<Stop<'p>>;

/// Carries a captured connection, or answers why not.
pub(super) async fn converse(gate: &Gate, mut client: Client, target: Target) {
    let ended = match gate.plan.connection(&target) {
        Ok(permit) => permitted(gate, &mut client, &target, &permit).await,
        Err(denial) => Err(Some(Stop { denial, speech: Speech::Unknown })),
    };
    conclude(gate, client, &target, ended).await;
}

/// Carries a request that came to the proxy, with its head already read.
pub(super) async fn converse_about(gate: &Gate, mut client: Client, target: Target, head: RequestHead) {
    let ended = match gate.plan.connection(&target) {
        Ok(permit) if permit.allows(Protocol::Http) => {
            http::carry(gate, &mut client, (&target, &permit), head).await
        }
        Ok(_) => Err(Some(Stop::plain(Reason::NotTls, Speech::Http))),
        Err(denial) => Err(Some(Stop { denial, speech: Speech::Http })),
    };
    conclude(gate, client, &target, ended).await;
}

async fn conclude(gate: &Gate, client: Client, target: &Target, ended: Result<(), Ended<'_>>) {
    match ended {
        Ok(()) => client.finish().await,
        Err(Some(stop)) => gate.deny(client, target, stop).await,
        Err(None) => client.reset(),
    }
}

async fn permitted<'p>(
    gate: &'p Gate,
    client: &mut Client,
    target: &Target,
    permit: &Permit<'p>,
) -> Result<(), Ended<'p>> {
    if let Some(protocol) = permit.opaque() {
        return opaque(gate, client, target, (protocol, permit)).await;
    }
    let speech = client.speech().await.map_err(|silence| Stop::silent(silence, Speech::Other))?;
    let refuse = |reason| Err(Some(Stop::plain(reason, speech)));
    match speech {
        Speech::Tls if permit.allows(Protocol::Https) => tls::carry(gate, client, target, permit).await,
        Speech::Tls => refuse(Reason::NotHttp),
        Speech::Ssh if permit.allows(Protocol::Ssh) => {
            opaque(gate, client, target, (Protocol::Ssh, permit)).await
        }
        Speech::Http if permit.allows(Protocol::Http) => {
            let head = http::read_head(gate, client).await?;
            http::carry(gate, client, (target, permit), head).await
        }
        _ if permit.allows(Protocol::Https) => refuse(Reason::NotTls),
        _ => refuse(Reason::NotHttp),
    }
}

/// Nothing of it is read.
async fn opaque<'p>(
    gate: &'p Gate,
    client: &mut Client,
    target: &Target,
    (protocol, permit): (Protocol, &Permit<'p>),
) -> Result<(), Ended<'p>> {
    let speech = if protocol == Protocol::Ssh { Speech::Ssh } else { Speech::Other };
    let server = gate.reach(target, speech).await?;
    let rule = permit.rule_for(protocol).expect("the rule that made it opaque");
    let open = gate.opened(target, &server, (protocol, rule));
    open.passed.sent.set(client.buffer.len() as u64);
    super::pump::write(&server.stream, &std::mem::take(&mut client.buffer)).await.map_err(|_| None)?;
    gate.scratch.both_ways(&client.stream, &server.stream, &open.passed).await.map_err(|_| None)
}

/// A connection to the outside, and the address it leads to.
pub(super) struct Server {
    pub(super) stream: TcpStream,
    pub(super) address: SocketAddr,
}

/// A connection that was reported as open; its end is reported when this is dropped.
pub(super) struct Open<'g> {
    gate: &'g Gate,
    id: u64,
    pub(super) passed: Passed,
}

impl Gate {
    /// Connects to a target that is permitted, to an address that is permitted as well.
    pub(super) async fn reach<'p>(&'p self, target: &Target, speech: Speech) -> Result<Server, Ended<'p>> {
        let stop = |denial: Denial<'p>| Some(Stop { denial, speech });
        if !self.reports.are_current() {
            return Err(stop(Denial::plain(Reason::Limit)));
        }
        dial::dial(self, target).await.map_err(stop)
    }

    pub(super) fn opened(
        &self,
        target: &Target,
        server: &Server,
        (protocol, rule): (Protocol, &Rule),
    ) -> Open<'_> {
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        self.reports.send(&GateEvent::Open {
            id,
            host: target.host.to_string(),
            port: target.port,
            protocol: protocol.to_string(),
            address: server.address.ip().to_string(),
            rule: rule.text.clone(),
            origin: rule.origin.clone(),
        });
        Open { gate: self, id, passed: Passed::default() }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let (sent, received) = (self.passed.sent.get(), self.passed.received.get());
        self.gate.reports.send(&GateEvent::Close { id: self.id, sent, received });
    }
}

impl Client {
    /// What it speaks, by its first bytes, which stay in the buffer.
    async fn speech(&mut self) -> Result<Speech, super::client::Silence> {
        const SSH: &[u8] = b"SSH-";
        let first = self.first_byte().await?;
        while self.buffer.len() < SSH.len() && SSH.starts_with(&self.buffer) {
            self.fill().await?;
        }
        // Methods of HTTP begin with an S as well.
        let is_http = first == SSH[0] && !self.buffer.starts_with(SSH);
        Ok(if is_http { Speech::Http } else { denial::of(first) })
    }
}
