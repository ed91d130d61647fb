//! Questions of the sandbox: over datagrams and streams, so many in a second.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::Instant;

use crate::dns::{Answer, Question, answer, kind};
use crate::name::Host;

use super::Gate;
use super::client::Client;
use super::pump::write;
use super::resolve::LookupError;

const LONGEST: usize = 2048;
/// Questions over one stream.
const MOST_IN_STREAM: usize = 64;
const PAUSE: Duration = Duration::from_millis(50);

pub(super) fn socket(socket: OwnedFd) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::from(socket);
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// So many in a second; what was not used is lost.
pub(super) struct Allowance {
    each_second: u32,
    left: RefCell<(Instant, u32)>,
}

impl Allowance {
    pub(super) fn new(each_second: u32) -> Self {
        Self { each_second, left: RefCell::new((Instant::now(), each_second)) }
    }

    fn take(&self) -> bool {
        let (since, left) = &mut *self.left.borrow_mut();
        if since.elapsed() >= Duration::from_secs(1) {
            (*since, *left) = (Instant::now(), self.each_second);
        }
        let is_left = *left > 0;
        *left = left.saturating_sub(1);
        is_left
    }
}

pub(super) async fn serve(gate: Rc<Gate>, socket: UdpSocket) {
    let socket = Rc::new(socket);
    let mut bytes = vec![0; LONGEST];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut bytes).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if !gate.questions.take() {
            gate.reports.count_unanswered();
            continue;
        }
        match Question::read(&bytes[..length]) {
            // A lookup must not keep the others waiting.
            Ok(question) if asks_outside(&gate, &question) => {
                let (gate, socket) = (Rc::clone(&gate), Rc::clone(&socket));
                tokio::task::spawn_local(async move {
                    send(&gate, &socket, from, &reply(&gate, &question).await);
                });
            }
            Ok(question) => send(&gate, &socket, from, &reply(&gate, &question).await),
            Err(refusal) => match refusal.encode() {
                Some(message) => send(&gate, &socket, from, &message),
                None => gate.reports.count_unanswered(),
            },
        }
    }
}

fn send(gate: &Gate, socket: &UdpSocket, to: SocketAddr, message: &[u8]) {
    if socket.try_send_to(message, to).is_err() {
        gate.reports.count_unanswered();
    }
}

/// Whether the name is one that a rule lists by itself, so that its existence may be looked up.
fn asks_outside(gate: &Gate, question: &Question) -> bool {
    question.kind == kind::A && question.host().is_some_and(|name| gate.plan.lists(&Host::Name(name)))
}

async fn reply(gate: &Gate, question: &Question) -> Vec<u8> {
    let missing = Some(Err(LookupError::NoSuchName));
    let answer = match question.host().filter(|_| asks_outside(gate, question)) {
        Some(name) if gate.resolver.lookup_at_once(&name).await == missing => Answer::NoSuchName,
        _ => answer(question, &mut gate.pool.borrow_mut()),
    };
    answer.encode(question)
}

/// Questions over TCP, each with its length before it.
pub(super) async fn serve_stream(gate: &Gate, mut client: Client) {
    for _ in 0..MOST_IN_STREAM {
        let length = loop {
            if let Some(&[high, low]) = client.buffer.first_chunk() {
                let length = usize::from(u16::from_be_bytes([high, low]));
                if client.buffer.len() >= 2 + length || length > LONGEST {
                    break length;
                }
            }
            if client.fill().await.is_err() {
                return client.finish().await;
            }
        };
        let message: Vec<u8> = match client.buffer.get(2..2 + length) {
            Some(_) => client.buffer.drain(..2 + length).skip(2).collect(),
            None => break,
        };
        if !gate.questions.take() {
            gate.reports.count_unanswered();
            break;
        }
        let answer = match Question::read(&message) {
            Ok(question) => Some(reply(gate, &question).await),
            Err(refusal) => refusal.encode(),
        };
        let Some(answer) = answer else { break };
        let length = u16::try_from(answer.len()).expect("an answer is short").to_be_bytes();
        if write(&client.stream, &[&length[..], &answer].concat()).await.is_err() {
            break;
        }
    }
    client.finish().await;
}
