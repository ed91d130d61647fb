//! A connection whose client speaks HTTP/1 without TLS: one request, judged by its host, method and path, and its answer.

use std::cell::Cell;

use tokio::net::TcpStream;

use crate::http::{Body, HeadError, HeadReader, RequestHead, Scheme, TargetForm, normal_path};
use crate::rule::Protocol;
use crate::verdict::{Permit, Reason, Target, suggestion};

use super::Gate;
use super::carry::{Ended, Server};
use super::client::{Client, more};
use super::denial::{Speech, Stop};
use super::pump::{Passed, write};
use super::together::first;

/// What a server's answer begins with that turns the connection into a WebSocket.
const SWITCHED: &[u8] = b"HTTP/1.1 101 ";
const DEFAULT_PORT: u16 = 80;

/// Reads the head of a request, which is then no longer in the buffer.
pub(super) async fn read_head<'p>(gate: &Gate, client: &mut Client) -> Result<RequestHead, Ended<'p>> {
    let mut reader = HeadReader::default();
    let refuse = |error| Some(Stop::plain(reason_of(error), Speech::Http));
    loop {
        if let Some(end) = reader.end(&client.buffer, gate.plan.limits.head) {
            let head = RequestHead::read(&client.buffer[..end.map_err(refuse)?]).map_err(refuse)?;
            client.buffer.drain(..end.expect("it was one a moment ago"));
            return Ok(head);
        }
        client.fill().await.map_err(|silence| Stop::silent(silence, Speech::Http))?;
    }
}

fn reason_of(error: HeadError) -> Reason {
    match error {
        HeadError::NotHttp => Reason::NotHttp,
        HeadError::Malformed(_) | HeadError::TooLong => Reason::Malformed,
    }
}

pub(super) async fn carry<'p>(
    gate: &'p Gate,
    client: &mut Client,
    (target, permit): (&Target, &Permit<'p>),
    head: RequestHead,
) -> Result<(), Ended<'p>> {
    let judged = judge(target, permit, &head).map_err(|reason| {
        let mut stop = Stop::plain(reason, Speech::Http);
        if matches!(reason, Reason::Method | Reason::Path) && head.method != "TRACE" {
            stop.denial.suggestion = suggestion(target, None).map(|host| format!("http://{host}"));
        }
        Some(stop)
    })?;
    let server = gate.reach(target, Speech::Http).await?;
    let open = gate.opened(target, &server, (Protocol::Http, judged.rule));
    let bytes = head.forward(&judged.target);
    open.passed.sent.set(bytes.len() as u64);
    write(&server.stream, &bytes).await.map_err(|_| None)?;
    if head.is_websocket {
        return websocket(gate, client, &server, &open.passed).await;
    }
    let up = async {
        body((&client.stream, &mut client.buffer), &server, head.body, &open.passed.sent).await?;
        // What comes behind the request does not pass. The answer is what ends this.
        std::future::pending().await
    };
    // The answer has its own end: the server closes, as it was asked to.
    let down = gate.scratch.one_way(&server.stream, &client.stream, &open.passed.received);
    first(up, async { down.await.map_err(|_| None) }).await
}

/// A request that passes.
struct Judged<'p> {
    rule: &'p crate::rule::Rule,
    /// What stands behind the method, for the server.
    target: String,
}

fn judge<'p>(target: &Target, permit: &Permit<'p>, head: &RequestHead) -> Result<Judged<'p>, Reason> {
    let is_target = |host: &crate::name::Host, port: Option<u16>, default: u16| {
        *host == target.host && port.unwrap_or(default) == target.port
    };
    let path = match &head.target {
        TargetForm::Origin(path) => path,
        TargetForm::Asterisk => "*",
        TargetForm::Authority { .. } => return Err(Reason::Tunnel),
        TargetForm::Absolute { scheme: Scheme::Https, .. } => return Err(Reason::Malformed),
        TargetForm::Absolute { host, port, path, .. } if is_target(host, *port, DEFAULT_PORT) => path,
        TargetForm::Absolute { .. } => return Err(Reason::HostMismatch),
    };
    if !is_target(&head.host, head.port, target.port) {
        return Err(Reason::HostMismatch);
    }
    // It sends back what it was sent, secrets included.
    if head.method == "TRACE" {
        return Err(Reason::Method);
    }
    let normal = normal_path(path);
    let rule = permit.request(&head.method, normal.as_ref().map(|(path, _)| path.as_str()))?;
    let target = match normal {
        Some((path, query)) if rule.judges_requests() => format!("{path}{query}"),
        _ => path.to_owned(),
    };
    Ok(Judged { rule, target })
}

/// Passes the body, and nothing behind it.
async fn body<'p>(
    (client, buffer): (&TcpStream, &mut Vec<u8>),
    server: &Server,
    mut body: Body,
    count: &Cell<u64>,
) -> Result<(), Ended<'p>> {
    loop {
        let passed = body.pass(buffer).map_err(|_| None)?;
        if write(&server.stream, &buffer[..passed]).await.is_err() {
            // It may have answered before it read everything, and the answer is still on its way.
            std::future::pending::<()>().await;
        }
        count.set(count.get() + passed as u64);
        buffer.clear();
        if body.is_done() {
            return Ok(());
        }
        match more(client, buffer).await {
            Ok(read) if read > 0 => {}
            _ => return Err(None),
        }
    }
}

/// Passes everything once the server has agreed, and only the answer if it has not.
async fn websocket<'p>(
    gate: &Gate,
    client: &mut Client,
    server: &Server,
    passed: &Passed,
) -> Result<(), Ended<'p>> {
    let mut answer = Vec::new();
    while answer.len() < SWITCHED.len() && SWITCHED.starts_with(&answer) {
        if more(&server.stream, &mut answer).await.map_err(|_| None)? == 0 {
            break;
        }
    }
    passed.received.set(answer.len() as u64);
    write(&client.stream, &answer).await.map_err(|_| None)?;
    if !answer.starts_with(SWITCHED) {
        let down = gate.scratch.one_way(&server.stream, &client.stream, &passed.received);
        return down.await.map_err(|_| None);
    }
    let early = std::mem::take(&mut client.buffer);
    passed.sent.set(passed.sent.get() + early.len() as u64);
    write(&server.stream, &early).await.map_err(|_| None)?;
    gate.scratch.both_ways(&client.stream, &server.stream, passed).await.map_err(|_| None)
}
