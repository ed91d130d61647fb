//! The wire format that questions and answers share (RFC 1035, section 4).

/// Types of records.
pub mod kind {
    pub const A: u16 = 1;
    pub const CNAME: u16 = 5;
    pub const PTR: u16 = 12;
    pub const AAAA: u16 = 28;
    pub const OPT: u16 = 41;
}

pub(super) const CLASS_IN: u16 = 1;
pub(super) const HEADER: usize = 12;
/// A name with its lengths and the root.
const LONGEST_NAME: usize = 255;
const LONGEST_LABEL: u8 = 63;

/// Reads a message from its beginning to its end. Every step returns `None` where there is nothing sound.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(super) fn number(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn long(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Another reader that begins where this one is.
    pub(super) fn clone_at_here(&self) -> Self {
        Self { bytes: self.bytes, at: self.at }
    }

    /// How far this one has read since it was `other`.
    pub(super) fn distance_from(&self, other: &Self) -> usize {
        self.at - other.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// A name without pointers, as it lies there.
    pub(super) fn plain_name(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        loop {
            match self.byte()? {
                0 => break,
                length @ 1..=LONGEST_LABEL => drop(self.take(usize::from(length))?),
                _ => return None,
            }
        }
        Some(&self.bytes[start..self.at]).filter(|name| name.len() <= LONGEST_NAME)
    }

    /// A name with pointers, which lead only backwards, so that there is an end to them. In lower case.
    pub(super) fn name(&mut self) -> Option<Vec<u8>> {
        let (mut name, mut at, mut lowest, mut after) = (Vec::new(), self.at, self.at, None);
        loop {
            let length = *self.bytes.get(at)?;
            match length {
                0 => break,
                1..=LONGEST_LABEL => {
                    let end = at + 1 + usize::from(length);
                    name.extend(self.bytes.get(at..end)?.to_ascii_lowercase());
                    at = end;
                }
                0xc0.. => {
                    let low = *self.bytes.get(at + 1)?;
                    let to = usize::from(length & 0x3f) << 8 | usize::from(low);
                    after.get_or_insert(at + 2);
                    if to >= lowest {
                        return None;
                    }
                    (at, lowest) = (to, to);
                }
                _ => return None,
            }
            if name.len() >= LONGEST_NAME {
                return None;
            }
        }
        name.push(0);
        self.at = after.unwrap_or(at + 1);
        Some(name)
    }
}

/// Labels with their lengths in front, from a text with dots.
pub(super) fn encode_name(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len() + 2);
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).expect("a label of a name has at most 63 bytes"));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

/// A text with dots, from labels; `None` where a label contains what no name of a host does.
pub(super) fn decode_name(wire: &[u8]) -> Option<String> {
    let (mut text, mut at) = (String::new(), 0);
    while wire[at] != 0 {
        let end = at + 1 + usize::from(wire[at]);
        let label = str::from_utf8(&wire[at + 1..end]).ok().filter(|label| !label.contains('.'))?;
        text.push_str(if at > 0 { "." } else { "" });
        text.push_str(label);
        at = end;
    }
    Some(text)
}
