//! A connection whose client speaks TLS: its first message must name the host that was dialled, and so must its second one,
//! if the server asks for one. Everything else passes unread.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::name::Host;
use crate::rule::Protocol;
use crate::tls::{ClientHello, FirstAnswer, HelloError, HelloReader, ServerName, ServerReader};
use crate::verdict::{Permit, Reason, Target};

use super::Gate;
use super::carry::{Ended, Server};
use super::client::{Client, more};
use super::denial::{Speech, Stop};
use super::pump::write;

/// Of records that may come before a second message: a change of ciphers that means nothing, and data sent too early.
const BEFORE_SECOND: [u8; 2] = [20, 23];
/// What a server may send before it is known whether it asks for a second message.
const LONGEST_ANSWER: usize = 64 * 1024;

pub(super) async fn carry<'p>(
    gate: &'p Gate,
    client: &mut Client,
    target: &Target,
    permit: &Permit<'p>,
) -> Result<(), Ended<'p>> {
    let hello = read_hello(gate, client, &[]).await?;
    check(&hello, target)?;
    let server = gate.reach(target, Speech::Tls).await?;
    let rule = permit.rule_for(Protocol::Https).expect("it is asked for before");
    let open = gate.opened(target, &server, (Protocol::Https, rule));
    pass_on(client, &server, &open.passed.sent).await;
    let answer = first_answer(gate, client, &server, &open.passed.received).await?;
    if answer == FirstAnswer::Retry {
        client.deadline = Instant::now() + Duration::from_secs(gate.plan.limits.head_seconds);
        let hello = read_hello(gate, client, &BEFORE_SECOND).await?;
        check(&hello, target)?;
        pass_on(client, &server, &open.passed.sent).await;
    }
    gate.scratch.both_ways(&client.stream, &server.stream, &open.passed).await.map_err(|_| None)
}

async fn read_hello<'p>(gate: &Gate, client: &mut Client, skipped: &[u8]) -> Result<ClientHello, Ended<'p>> {
    let mut reader = HelloReader::default();
    let refuse = |reason| Err(Some(Stop::plain(reason, Speech::Tls)));
    loop {
        match reader.read_after(&client.buffer, skipped) {
            Some(Ok(hello)) => return Ok(hello),
            Some(Err(HelloError::NotTls)) => return refuse(Reason::NotTls),
            Some(Err(_)) => return refuse(Reason::Malformed),
            None if client.buffer.len() > gate.plan.limits.head => return refuse(Reason::Malformed),
            None => client.fill().await.map_err(|silence| Stop::silent(silence, Speech::Tls))?,
        }
    }
}

/// An address is named by no name; a name by itself alone.
fn check<'p>(hello: &ClientHello, target: &Target) -> Result<(), Ended<'p>> {
    let reason = match (&target.host, &hello.server_name) {
        _ if hello.has_encrypted_name => Reason::Ech,
        (Host::Name(name), ServerName::Name(named)) if name == named => return Ok(()),
        (Host::Address(_), ServerName::Missing) => return Ok(()),
        (Host::Name(_), ServerName::Missing | ServerName::Address) => Reason::NoSni,
        _ => Reason::SniMismatch,
    };
    Err(Some(Stop::plain(reason, Speech::Tls)))
}

/// Whether the server takes it shows when it is read.
async fn pass_on(client: &mut Client, server: &Server, count: &std::cell::Cell<u64>) {
    let bytes = std::mem::take(&mut client.buffer);
    count.set(count.get() + bytes.len() as u64);
    write(&server.stream, &bytes).await.ok();
}

/// Reads from the server until it is clear what it asks for, and passes that on. The client has nothing to say meanwhile.
async fn first_answer<'p>(
    gate: &Gate,
    client: &Client,
    server: &Server,
    count: &std::cell::Cell<u64>,
) -> Result<FirstAnswer, Ended<'p>> {
    let deadline = Instant::now() + Duration::from_secs(gate.plan.limits.dial_seconds);
    let (mut bytes, mut reader) = (Vec::new(), ServerReader::default());
    loop {
        let read = timeout_at(deadline, more(&server.stream, &mut bytes)).await;
        let stop = || Some(Stop::plain(Reason::Unreachable, Speech::Tls));
        let has_ended = match read {
            Ok(Ok(read)) => read == 0,
            Ok(Err(_)) | Err(_) => return Err(stop()),
        };
        let answer = reader.read(&bytes);
        match answer {
            Some(answer) => {
                count.set(bytes.len() as u64);
                write(&client.stream, &bytes).await.map_err(|_| None)?;
                return Ok(answer);
            }
            None if has_ended || bytes.len() > LONGEST_ANSWER => return Err(stop()),
            None => {}
        }
    }
}
