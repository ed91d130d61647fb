//! What a question is answered with.

use std::net::Ipv4Addr;

use crate::name::HostName;

use super::message::{CLASS_IN, encode_name, kind};
use super::{Pool, Question};

/// An answer, before it is encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Address(Ipv4Addr),
    /// The name of an address.
    Pointer(HostName),
    /// The name exists and has no such record.
    NoData,
    NoSuchName,
    /// No name can get an address any more.
    Full,
}

/// Endings that public DNS does not have.
const LOCAL_ONLY: [&str; 5] = ["internal", "invalid", "local", "localhost", "onion"];
/// Short, because it costs nothing to ask again; the address does not change while the sandbox lives.
const SECONDS_TO_LIVE: u32 = 60;

/// Answers from the pool. A name gets its address at its first question.
pub fn answer(question: &Question, pool: &mut Pool) -> Answer {
    let Some(host) = question.host() else { return Answer::NoSuchName };
    if question.kind == kind::PTR {
        let name = reverse(&host).and_then(|address| pool.name_of(address));
        return name.map_or(Answer::NoSuchName, |name| Answer::Pointer(name.clone()));
    }
    if is_local_only(&host) {
        return Answer::NoSuchName;
    }
    match question.kind {
        kind::A => pool.address_of(&host).map_or(Answer::Full, Answer::Address),
        // No IPv6 inside, and no way to announce another port, protocol or key.
        _ => Answer::NoData,
    }
}

fn is_local_only(host: &HostName) -> bool {
    let mut labels = host.labels().rev();
    let last = labels.next().expect("a name has a label");
    labels.next().is_none() || (LOCAL_ONLY.contains(&last) && host.as_str() != METADATA)
}

/// A name that clients of a cloud provider ask for: with an address, its denial can be answered and named.
const METADATA: &str = "metadata.google.internal";

/// `4.3.2.1.in-addr.arpa` is 1.2.3.4.
fn reverse(host: &HostName) -> Option<Ipv4Addr> {
    let text = host.as_str().strip_suffix(".in-addr.arpa")?;
    let forward: Vec<&str> = text.split('.').rev().collect();
    forward.join(".").parse().ok()
}

impl Answer {
    /// The message to send back.
    pub fn encode(&self, question: &Question) -> Vec<u8> {
        let (code, record) = match self {
            Self::Address(address) => (0, Some((kind::A, address.octets().to_vec()))),
            Self::Pointer(name) => (0, Some((kind::PTR, encode_name(name.as_str())))),
            Self::NoData => (0, None),
            Self::Full => (2, None),
            Self::NoSuchName => (3, None),
        };
        let mut message = question.id.to_be_bytes().to_vec();
        message.extend([0x80 | u8::from(question.recursion), 0x80 | code]);
        for count in [1, u16::from(record.is_some()), 0, u16::from(question.edns)] {
            message.extend(count.to_be_bytes());
        }
        message.extend(&question.wire);
        message.extend(question.kind.to_be_bytes());
        message.extend(CLASS_IN.to_be_bytes());
        if let Some((kind, data)) = record {
            // The name is the one of the question, twelve bytes from the beginning.
            message.extend([0xc0, 12]);
            message.extend(kind.to_be_bytes());
            message.extend(CLASS_IN.to_be_bytes());
            message.extend(SECONDS_TO_LIVE.to_be_bytes());
            message.extend(u16::try_from(data.len()).expect("a name is short").to_be_bytes());
            message.extend(data);
        }
        if question.edns {
            message.extend([0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0]);
        }
        message
    }
}

#[cfg(test)]
mod tests;
