//! The first message of a TLS client (RFC 8446, section 4.1.2). It is read completely or refused: whatever a server could
//! read differently, such as two names or an extension that comes twice, is an error.

use crate::name::{Host, HostName};

use super::records::{self, HANDSHAKE, HEADER, Record};

/// What a client says before anything is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    pub server_name: ServerName,
    /// Whether the name of the server, or something in the place of one, is encrypted.
    pub has_encrypted_name: bool,
    /// Protocols in the order of the client (ALPN).
    pub protocols: Vec<Vec<u8>>,
}

/// The server that a client means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerName {
    Missing,
    /// Which the standard forbids.
    Address,
    Name(HostName),
}

/// Why bytes are no first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    #[error("the client does not speak TLS")]
    NotTls,
    #[error("the first message of TLS is malformed")]
    Malformed,
    #[error("the first message of TLS is too long")]
    TooLong,
}

/// Collects the message from the records it comes in.
#[derive(Debug, Default)]
pub struct HelloReader {
    message: Vec<u8>,
    at: usize,
}

const CLIENT_HELLO: u8 = 1;
/// As long as one record; the largest that are known, with keys of post-quantum methods, have a tenth of that.
const LONGEST: usize = 1 << 14;
const SERVER_NAME: u16 = 0;
const PROTOCOLS: u16 = 16;
/// Encrypted client hello and its drafts, and the encrypted server name before them.
const ENCRYPTED: [u16; 8] = [0xfd00, 0xfe08, 0xfe09, 0xfe0a, 0xfe0b, 0xfe0c, 0xfe0d, 0xffce];

impl HelloReader {
    /// Looks at what has arrived: all of it each time, since the beginning. `None` if the message is not complete.
    pub fn read(&mut self, bytes: &[u8]) -> Option<Result<ClientHello, HelloError>> {
        self.read_after(bytes, &[])
    }

    /// The same where records of other kinds may come before: after a server asked for a second message.
    pub fn read_after(&mut self, bytes: &[u8], skipped: &[u8]) -> Option<Result<ClientHello, HelloError>> {
        loop {
            match records::first(&bytes[self.at..]) {
                Record::More => return None,
                Record::Whole { kind: HANDSHAKE, payload } => {
                    self.message.extend(payload);
                    self.at += HEADER + payload.len();
                }
                Record::Whole { kind, payload } if self.message.is_empty() && skipped.contains(&kind) => {
                    self.at += HEADER + payload.len();
                    continue;
                }
                _ if self.message.is_empty() => return Some(Err(HelloError::NotTls)),
                _ => return Some(Err(HelloError::Malformed)),
            }
            if let Some(read) = self.message() {
                return Some(read);
            }
        }
    }

    /// The message, once its last byte is there. More in the same record would be a message that nobody read.
    fn message(&self) -> Option<Result<ClientHello, HelloError>> {
        match self.message.first() {
            Some(&CLIENT_HELLO) => {}
            _ => return Some(Err(HelloError::Malformed)),
        }
        let &[_, high, middle, low, ref body @ ..] = &self.message[..] else { return None };
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        match body.len() {
            _ if length > LONGEST => Some(Err(HelloError::TooLong)),
            there if there < length => None,
            there if there > length => Some(Err(HelloError::Malformed)),
            _ => Some(hello(body).ok_or(HelloError::Malformed)),
        }
    }
}

fn hello(body: &[u8]) -> Option<ClientHello> {
    let mut rest = body;
    let (_version, _random) = (take(&mut rest, 2)?, take(&mut rest, 32)?);
    let session = short_vector(&mut rest)?;
    let suites = long_vector(&mut rest)?;
    let compressions = short_vector(&mut rest)?;
    if session.len() > 32 || suites.is_empty() || suites.len() % 2 != 0 || compressions.is_empty() {
        return None;
    }
    let mut found =
        ClientHello { server_name: ServerName::Missing, has_encrypted_name: false, protocols: Vec::new() };
    if rest.is_empty() {
        return Some(found);
    }
    let mut extensions = long_vector(&mut rest)?;
    if !rest.is_empty() {
        return None;
    }
    let mut seen = Vec::new();
    while !extensions.is_empty() {
        let kind = number(&mut extensions)?;
        let content = long_vector(&mut extensions)?;
        if seen.contains(&kind) {
            return None;
        }
        seen.push(kind);
        match kind {
            SERVER_NAME => found.server_name = server_name(content)?,
            PROTOCOLS => found.protocols = protocols(content)?,
            kind if ENCRYPTED.contains(&kind) => found.has_encrypted_name = true,
            _ => {}
        }
    }
    Some(found)
}

/// A list of exactly one name, of the one kind that there is.
fn server_name(content: &[u8]) -> Option<ServerName> {
    let mut rest = content;
    let mut list = long_vector(&mut rest)?;
    let kind = take(&mut list, 1)?[0];
    let name = long_vector(&mut list)?;
    if kind != 0 || !list.is_empty() || !rest.is_empty() || name.ends_with(b".") {
        return None;
    }
    match str::from_utf8(name).ok()?.parse().ok()? {
        Host::Name(name) => Some(ServerName::Name(name)),
        Host::Address(_) => Some(ServerName::Address),
    }
}

fn protocols(content: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut rest = content;
    let mut list = long_vector(&mut rest)?;
    let mut found = Vec::new();
    while !list.is_empty() {
        found.push(short_vector(&mut list).filter(|name| !name.is_empty())?.to_vec());
    }
    (rest.is_empty() && !found.is_empty()).then_some(found)
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u16> {
    take(rest, 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

fn short_vector<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take(rest, 1)?[0];
    take(rest, length.into())
}

fn long_vector<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number(rest)?;
    take(rest, length.into())
}

#[cfg(test)]
mod tests;
