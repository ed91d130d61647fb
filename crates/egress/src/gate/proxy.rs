//! Clients that are told to use a proxy. What they ask for is judged like a connection of their own: a tunnel leads into
//! the same checks, and no tunnel leads past them.

use crate::http::{RequestHead, Scheme, TargetForm};
use crate::name::Host;
use crate::socks::{self, Reply, Step};
use crate::verdict::{Reason, Target};

use super::Gate;
use super::carry::{Ended, converse, converse_about};
use super::client::Client;
use super::denial::{Speech, Stop};
use super::http::read_head;
use super::pump::write;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

pub(super) async fn serve(gate: &Gate, mut client: Client) {
    match client.first_byte().await {
        Ok(socks::VERSION) => socks(gate, client).await,
        Ok(_) => http(gate, client).await,
        Err(_) => client.reset(),
    }
}

async fn http(gate: &Gate, mut client: Client) {
    let head = match read_head(gate, &mut client).await {
        Ok(head) => head,
        Err(ended) => {
            give_up(gate, client, ended).await;
            return;
        }
    };
    match target_of(&head) {
        Ok(target) if matches!(head.target, TargetForm::Authority { .. }) => {
            tunnel(gate, client, target).await;
        }
        Ok(target) => converse_about(gate, client, target, head).await,
        Err(reason) => give_up(gate, client, Some(Stop::plain(reason, Speech::Http))).await,
    }
}

/// Where a request wants to go. Its `Host` must say the same.
fn target_of(head: &RequestHead) -> Result<Target, Reason> {
    match &head.target {
        TargetForm::Authority { host, port } => {
            let is_same = *host == head.host && head.port.is_none_or(|it| it == *port);
            if is_same { Ok(Target { host: host.clone(), port: *port }) } else { Err(Reason::HostMismatch) }
        }
        TargetForm::Absolute { scheme: Scheme::Http, host, port, .. } => {
            Ok(Target { host: host.clone(), port: port.unwrap_or(80) })
        }
        _ => Err(Reason::Malformed),
    }
}

async fn tunnel(gate: &Gate, client: Client, target: Target) {
    if let Err(denial) = gate.plan.connection(&target) {
        return gate.deny(client, &target, Stop { denial, speech: Speech::Http }).await;
    }
    match write(&client.stream, ESTABLISHED).await {
        Ok(()) => converse(gate, client, target).await,
        Err(_) => client.reset(),
    }
}

/// A client that did not even say where it wants to go.
async fn give_up(gate: &Gate, client: Client, ended: Ended<'_>) {
    let nowhere = Target { host: Host::Address(gate.plan.inside.into()), port: 0 };
    match ended {
        Some(stop) => gate.deny(client, &nowhere, stop).await,
        None => client.reset(),
    }
}

async fn socks(gate: &Gate, mut client: Client) {
    let Some(without) = step(&mut client, socks::greeting).await else { return client.reset() };
    let greeting = if without { socks::NO_AUTHENTICATION } else { socks::NO_METHOD };
    if write(&client.stream, &greeting).await.is_err() || !without {
        return client.finish().await;
    }
    let Some(target) = step(&mut client, socks::request).await else { return client.finish().await };
    if let Err(denial) = gate.plan.connection(&target) {
        gate.reports.send(&crate::event::GateEvent::denied(&target, &denial));
        write(&client.stream, &Reply::NotAllowed.encode()).await.ok();
        return client.finish().await;
    }
    match write(&client.stream, &Reply::Connected.encode()).await {
        Ok(()) => converse(gate, client, target).await,
        Err(_) => client.reset(),
    }
}

/// Reads one message of SOCKS, and answers one that is refused.
async fn step<T>(client: &mut Client, read: impl Fn(&[u8]) -> Step<T>) -> Option<T> {
    loop {
        match read(&client.buffer) {
            Step::Done(value, used) => {
                client.buffer.drain(..used);
                return Some(value);
            }
            Step::Refused(reply) => {
                write(&client.stream, &reply.encode()).await.ok();
                return None;
            }
            Step::More => client.fill().await.ok()?,
        }
    }
}
