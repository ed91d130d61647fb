//! How a client is told that something does not pass: in its own protocol, with the rule that would allow it.

use std::time::Duration;

use tokio::time::Instant;

use crate::event::GateEvent;
use crate::tls::{Alert, alert};
use crate::verdict::{Denial, Reason, Target};

use super::Gate;
use super::client::{Client, Silence};
use super::pump;

/// What a client speaks, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speech {
    /// Nothing was read.
    Unknown,
    Tls,
    Http,
    Ssh,
    /// None that has a word for it: the connection is reset.
    Other,
}

/// Something that does not pass.
pub(super) struct Stop<'p> {
    pub(super) denial: Denial<'p>,
    pub(super) speech: Speech,
}

impl Stop<'_> {
    pub(super) fn plain(reason: Reason, speech: Speech) -> Self {
        Self { denial: Denial::plain(reason), speech }
    }

    pub(super) fn silent(silence: Silence, speech: Speech) -> Option<Self> {
        match silence {
            Silence::Gone => None,
            Silence::Timeout => Some(Self::plain(Reason::Timeout, speech)),
        }
    }
}

/// A client of these ports speaks first, so its first byte is worth waiting for.
const SPEAKING_FIRST: [u16; 4] = [80, 443, 8080, 8443];
const LONG: Duration = Duration::from_secs(1);
const SHORT: Duration = Duration::from_millis(25);

impl Gate {
    /// Reports a denial and answers the client.
    pub(super) async fn deny(&self, mut client: Client, target: &Target, stop: Stop<'_>) {
        self.reports.send(&GateEvent::denied(target, &stop.denial));
        let speech = match stop.speech {
            Speech::Unknown => listen(&mut client, target.port).await,
            known => known,
        };
        let answer = match speech {
            Speech::Tls => alert(alert_for(stop.denial.reason)).to_vec(),
            Speech::Http => page(target, &stop.denial),
            Speech::Ssh => disconnect(&sentence(target, &stop.denial)),
            Speech::Unknown | Speech::Other => return client.reset(),
        };
        match pump::write(&client.stream, &answer).await {
            Ok(()) => client.finish().await,
            Err(_) => client.reset(),
        }
    }
}

/// Finds out what a client speaks whose connection is denied anyway.
async fn listen(client: &mut Client, port: u16) -> Speech {
    if port == 22 {
        return Speech::Ssh;
    }
    client.deadline = Instant::now() + if SPEAKING_FIRST.contains(&port) { LONG } else { SHORT };
    match client.first_byte().await {
        Ok(first) => of(first),
        Err(_) => Speech::Other,
    }
}

/// What begins with this byte.
pub(super) fn of(first: u8) -> Speech {
    match first {
        22 => Speech::Tls,
        // `SSH-`, and no method of HTTP that is in use begins like that but SEARCH.
        b'S' => Speech::Ssh,
        b'A'..=b'Z' => Speech::Http,
        _ => Speech::Other,
    }
}

fn alert_for(reason: Reason) -> Alert {
    match reason {
        Reason::SniMismatch | Reason::NoSni => Alert::UnrecognizedName,
        Reason::Malformed | Reason::Timeout | Reason::NotHttp => Alert::DecodeError,
        Reason::NoSuchHost | Reason::Unreachable | Reason::Limit => Alert::InternalError,
        _ => Alert::AccessDenied,
    }
}

/// One line that says what, why, and what would help.
pub(super) fn sentence(target: &Target, denial: &Denial<'_>) -> String {
    let text = format!("sandtable: {target} is denied: {denial} [{}]", denial.reason.code());
    match &denial.suggestion {
        Some(rule) => format!("{text}; outside of the sandbox, the rule `{rule}` would allow it"),
        None => text,
    }
}

/// An answer of HTTP with the sentence as its page.
pub(super) fn page(target: &Target, denial: &Denial<'_>) -> Vec<u8> {
    let status = match denial.reason {
        Reason::Malformed | Reason::NotHttp => "400 Bad Request",
        Reason::HostMismatch => "421 Misdirected Request",
        Reason::Timeout => "408 Request Timeout",
        Reason::NoSuchHost | Reason::Unreachable => "502 Bad Gateway",
        Reason::Limit => "503 Service Unavailable",
        _ => "403 Forbidden",
    };
    let text = sentence(target, denial);
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         X-Proxy-Error: blocked-by-sandtable\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{text}\n",
        text.len() + 1
    )
    .into_bytes()
}

/// The version line of an SSH server, and the message that ends the connection (RFC 4253, sections 4.2, 6 and 11.1).
fn disconnect(text: &str) -> Vec<u8> {
    const DISCONNECT: u8 = 1;
    const NOT_ALLOWED_TO_CONNECT: u32 = 1;
    let length = |bytes: usize| u32::try_from(bytes).expect("a sentence is short").to_be_bytes();
    let mut payload = vec![DISCONNECT];
    payload.extend(NOT_ALLOWED_TO_CONNECT.to_be_bytes());
    payload.extend(length(text.len()));
    payload.extend(text.as_bytes());
    payload.extend(length(0));
    // Length, length of the padding and payload fill blocks of eight bytes, with at least four bytes of padding.
    let padding = 4 + (8 - (4 + 1 + payload.len() + 4) % 8) % 8;
    let mut bytes = b"SSH-2.0-sandtable\r\n".to_vec();
    bytes.extend(length(1 + payload.len() + padding));
    bytes.push(u8::try_from(padding).expect("at most eleven"));
    bytes.extend(payload);
    bytes.extend(vec![0; padding]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_what_and_why_and_which_rule_would_allow_it() {
        let target = Target { host: "evil.example".parse().expect("a name"), port: 80 };
        let denial =
            Denial { suggestion: Some("evil.example".to_owned()), ..Denial::plain(Reason::NotAllowed) };
        let page = String::from_utf8(page(&target, &denial)).expect("text");
        let (head, body) = page.split_once("\r\n\r\n").expect("a head");
        assert!(
            head.starts_with("HTTP/1.1 403 Forbidden\r\n")
                && head.contains("X-Proxy-Error: blocked-by-sandtable")
        );
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
        assert_eq!(
            body,
            "sandtable: evil.example:80 is denied: no rule allows it [not-allowed]; outside of the sandbox, the rule \
             `evil.example` would allow it\n"
        );
    }

    #[test]
    fn the_end_of_an_ssh_connection_fills_blocks_of_eight() {
        for length in 0..40 {
            let bytes = disconnect(&"x".repeat(length));
            let packet = &bytes[b"SSH-2.0-sandtable\r\n".len()..];
            let stated = u32::from_be_bytes(packet[..4].try_into().expect("four bytes"));
            assert_eq!((packet.len() % 8, usize::try_from(stated)), (0, Ok(packet.len() - 4)), "{length}");
            assert!((4..=11).contains(&packet[4]));
            assert_eq!(packet.len(), 4 + 1 + (1 + 4 + 4 + length + 4) + usize::from(packet[4]));
        }
    }
}
