//! SOCKS 5 (RFC 1928), for clients that are told to use a proxy: no authentication, `CONNECT` only.

use crate::name::Host;
use crate::verdict::Target;

/// The first byte of a client.
pub const VERSION: u8 = 5;

/// What has been read so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    More,
    /// What was read, and how many bytes it took.
    Done(T, usize),
    Refused(Reply),
}

/// How a request ends; the codes are those of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Connected = 0,
    Failed = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

impl Reply {
    /// The message; the address in it means nothing to clients of `CONNECT`.
    pub fn encode(self) -> [u8; 10] {
        [VERSION, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// The answer to a greeting that offers to go without authentication.
pub const NO_AUTHENTICATION: [u8; 2] = [VERSION, 0];
/// The answer to one that does not.
pub const NO_METHOD: [u8; 2] = [VERSION, 0xff];

/// The greeting: whether the client goes without authentication.
pub fn greeting(bytes: &[u8]) -> Step<bool> {
    let [version, count, rest @ ..] = bytes else {
        return if bytes.first().is_none_or(|version| *version == VERSION) {
            Step::More
        } else {
            Step::Refused(Reply::Failed)
        };
    };
    let count = usize::from(*count);
    match rest.get(..count) {
        _ if *version != VERSION || count == 0 => Step::Refused(Reply::Failed),
        Some(methods) => Step::Done(methods.contains(&0), 2 + count),
        None => Step::More,
    }
}

/// The request: where the client wants to go.
pub fn request(bytes: &[u8]) -> Step<Target> {
    let Some(&[version, command, reserved, kind]) = bytes.first_chunk() else { return Step::More };
    if version != VERSION || reserved != 0 {
        return Step::Refused(Reply::Failed);
    }
    if command != 1 {
        return Step::Refused(Reply::CommandNotSupported);
    }
    let (start, length) = match (kind, bytes.get(4)) {
        (1, _) => (4, 4),
        (3, Some(length)) => (5, usize::from(*length)),
        (3, None) => return Step::More,
        (4, _) => (4, 16),
        _ => return Step::Refused(Reply::AddressTypeNotSupported),
    };
    let end = start + length + 2;
    let Some(whole) = bytes.get(start..end) else { return Step::More };
    let (address, port) = whole.split_at(length);
    let port = u16::from_be_bytes([port[0], port[1]]);
    match host(kind, address) {
        Some(host) if port != 0 => Step::Done(Target { host, port }, end),
        _ => Step::Refused(Reply::Failed),
    }
}

fn host(kind: u8, address: &[u8]) -> Option<Host> {
    match kind {
        1 => <[u8; 4]>::try_from(address).ok().map(|it| Host::address(it.into())),
        4 => <[u8; 16]>::try_from(address).ok().map(|it| Host::address(it.into())),
        _ => str::from_utf8(address).ok()?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &[u8], port: u16) -> Vec<u8> {
        let length = u8::try_from(name.len()).expect("short");
        [&[5, 1, 0, 3, length][..], name, &port.to_be_bytes()].concat()
    }

    fn shown(bytes: &[u8]) -> String {
        match request(bytes) {
            Step::More => "more".to_owned(),
            Step::Done(target, used) => format!("{target} {used}"),
            Step::Refused(reply) => format!("{reply:?}"),
        }
    }

    #[test]
    fn a_request_names_one_host() {
        assert_eq!(shown(&named(b"GitHub.com.", 443)), "github.com:443 18");
        assert_eq!(shown(&named(b"0x7f.1", 80)), "127.0.0.1:80 13");
        assert_eq!(shown(&[5, 1, 0, 1, 93, 184, 216, 34, 1, 187, 9]), "93.184.216.34:443 10");
        let mapped = [&[5, 1, 0, 4][..], &[0; 10], &[0xff, 0xff, 127, 0, 0, 1, 0, 80]].concat();
        assert_eq!(shown(&mapped), "127.0.0.1:80 22");
        let sound = named(b"github.com", 443);
        for end in 0..sound.len() {
            assert_eq!(shown(&sound[..end]), "more", "{end}");
        }
    }

    #[test]
    fn names_that_are_none_and_other_commands_are_refused() {
        for name in [
            &b"a\0b.org"[..],
            b"a%00.org",
            b"a b.org",
            b"a\r\nb.org",
            b"",
            b".",
            b"a..org",
            b"\xc3\xa4.org",
            b"\xff",
            b"u@a.org",
        ] {
            assert_eq!(shown(&named(name, 443)), "Failed", "{}", name.escape_ascii());
        }
        assert_eq!(shown(&named(&[b'a'; 255], 443)), "Failed");
        assert_eq!(shown(&named(b"a.org", 0)), "Failed");
        assert_eq!(shown(&[5, 2, 0, 1]), "CommandNotSupported");
        assert_eq!(shown(&[5, 3, 0, 1]), "CommandNotSupported");
        assert_eq!(shown(&[5, 1, 0, 2]), "AddressTypeNotSupported");
        assert_eq!(shown(&[4, 1, 0, 1]), "Failed");
        assert_eq!(shown(&[5, 1, 9, 1]), "Failed");
    }

    #[test]
    fn a_greeting_offers_to_go_without_authentication() {
        assert_eq!(greeting(&[5, 2, 2, 0, 9]), Step::Done(true, 4));
        assert_eq!(greeting(&[5, 1, 2]), Step::Done(false, 3));
        for bytes in [&[][..], &[5], &[5, 2, 0]] {
            assert_eq!(greeting(bytes), Step::More);
        }
        for bytes in [&[4][..], &[4, 1, 0], &[5, 0]] {
            assert_eq!(greeting(bytes), Step::Refused(Reply::Failed));
        }
    }
}
