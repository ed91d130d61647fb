//! Whether a server answers the first message by asking for another one (RFC 8446, section 4.1.4). The second one could
//! name another host, so it must be read as well.

use super::records::{self, HANDSHAKE, HEADER, Record};

/// How a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstAnswer {
    /// It asks the client to begin again.
    Retry,
    /// Anything else: nothing more is sent in the clear that matters here.
    Other,
}

/// Collects the beginning of what a server sends.
#[derive(Debug, Default)]
pub struct ServerReader {
    message: Vec<u8>,
    at: usize,
}

const SERVER_HELLO: u8 = 2;
/// SHA-256 of `HelloRetryRequest`, in the place of a random value.
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

impl ServerReader {
    /// Looks at what has arrived: all of it each time, since the beginning. `None` if that is not enough.
    pub fn read(&mut self, bytes: &[u8]) -> Option<FirstAnswer> {
        loop {
            match records::first(&bytes[self.at..]) {
                Record::More => return None,
                Record::Whole { kind: HANDSHAKE, payload } => {
                    self.message.extend(payload);
                    self.at += HEADER + payload.len();
                }
                _ => return Some(FirstAnswer::Other),
            }
            if self.message.first().is_some_and(|kind| *kind != SERVER_HELLO) {
                return Some(FirstAnswer::Other);
            }
            // Type, length, version, random value.
            if let Some(random) = self.message.get(6..38) {
                return Some(if random == RETRY { FirstAnswer::Retry } else { FirstAnswer::Other });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(random: [u8; 32], chunk: usize) -> Vec<u8> {
        let message = [&[2, 0, 0, 44, 3, 3], &random[..], &[0, 0x13, 1, 0, 0, 0]].concat();
        let record = |part: &[u8]| [&[22, 3, 3, 0, u8::try_from(part.len()).expect("short")], part].concat();
        message.chunks(chunk).flat_map(record).collect()
    }

    #[test]
    fn a_request_to_begin_again_is_noticed_in_whatever_pieces_it_comes() {
        for chunk in [1, 7, 100] {
            for (random, expected) in [(RETRY, FirstAnswer::Retry), ([7; 32], FirstAnswer::Other)] {
                let bytes = hello(random, chunk);
                let mut reader = ServerReader::default();
                let found: Vec<_> = (0..=bytes.len()).filter_map(|end| reader.read(&bytes[..end])).collect();
                assert_eq!(found.first(), Some(&expected));
            }
        }
        assert_eq!(ServerReader::default().read(&[21, 3, 3, 0, 2, 2, 40]), Some(FirstAnswer::Other));
        assert_eq!(ServerReader::default().read(b"HTTP/1.1 400"), Some(FirstAnswer::Other));
    }
}
