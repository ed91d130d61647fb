//! What systemd sends, read strictly: another byte order, a length that does not fit, padding that is not
//! nought, text that is not text end the talk. Of a message only what we wait for is looked at; the rest
//! is skipped by its length.

use std::io::Read;

/// The longest message that is taken. A signal of systemd has a few hundred bytes.
const LONGEST: usize = 1 << 20;

/// Why bytes are no message.
#[derive(Debug, thiserror::Error)]
pub(in crate::outside::cgroup) enum Malformed {
    #[error("{0}")]
    Rule(&'static str),
    #[error("the connection ended: {0}")]
    Ended(#[from] std::io::Error),
}

/// The four kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Call,
    Return,
    Error,
    Signal,
}

/// One message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) member: Option<String>,
    pub(super) error: Option<String>,
    pub(super) answers: Option<u32>,
    pub(super) signature: String,
    body: Vec<u8>,
}

impl Message {
    /// Takes one message from a stream, and nothing behind it.
    pub(super) fn read(stream: &mut impl Read) -> Result<Self, Malformed> {
        let mut head = [0; 16];
        stream.read_exact(&mut head)?;
        let kind = match head[..4] {
            [b'l', 1, _, 1] => Kind::Call,
            [b'l', 2, _, 1] => Kind::Return,
            [b'l', 3, _, 1] => Kind::Error,
            [b'l', 4, _, 1] => Kind::Signal,
            _ => return Err(Malformed::Rule("not the start of a message")),
        };
        let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let (body, fields) = (number(4) as usize, number(12) as usize);
        if body > LONGEST || fields > LONGEST {
            return Err(Malformed::Rule("a message that is too long"));
        }
        let mut bytes = vec![0; fields.next_multiple_of(8) + body];
        stream.read_exact(&mut bytes)?;
        let body = bytes.split_off(fields.next_multiple_of(8));
        if bytes[fields..].iter().any(|byte| *byte != 0) {
            return Err(Malformed::Rule("padding that is not nought"));
        }
        bytes.truncate(fields);
        let mut message =
            Self { kind, member: None, error: None, answers: None, signature: String::new(), body };
        message.take_fields(&bytes)?;
        Ok(message)
    }

    fn take_fields(&mut self, fields: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader { bytes: fields, at: 0 };
        while reader.at < fields.len() {
            reader.align(8)?;
            let code = reader.byte()?;
            match (code, reader.signature()?.as_str()) {
                (3, "s") => self.member = Some(reader.text()?),
                (4, "s") => self.error = Some(reader.text()?),
                (5, "u") => self.answers = Some(reader.number()?),
                (8, "g") => self.signature = reader.signature()?,
                (3 | 4 | 5 | 8, _) => return Err(Malformed::Rule("a field of another type")),
                (_, "s" | "o") => drop(reader.text()?),
                (_, "g") => drop(reader.signature()?),
                (_, "u") => drop(reader.number()?),
                _ => return Err(Malformed::Rule("a field of an unknown type")),
            }
        }
        Ok(())
    }

    /// The first text of the body, where it starts with one.
    pub(super) fn text(&self) -> Result<String, Malformed> {
        if !self.signature.starts_with('s') {
            return Ok(String::new());
        }
        Reader { bytes: &self.body, at: 0 }.text()
    }

    /// Unit and result, of a signal that says how a job ended. `None` for any other message.
    pub(super) fn ended_job(&self) -> Result<Option<(String, String)>, Malformed> {
        if self.kind != Kind::Signal
            || self.member.as_deref() != Some("JobRemoved")
            || self.signature != "uoss"
        {
            return Ok(None);
        }
        let mut reader = Reader { bytes: &self.body, at: 0 };
        reader.number()?;
        reader.text()?;
        let ended = (reader.text()?, reader.text()?);
        if reader.at != self.body.len() {
            return Err(Malformed::Rule("more than its signature says"));
        }
        Ok(Some(ended))
    }
}

/// Takes values from bytes that start at an offset which is a multiple of eight.
#[derive(Debug)]
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Result<&[u8], Malformed> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or(Malformed::Rule("a length that does not fit"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn align(&mut self, to: usize) -> Result<(), Malformed> {
        let padding = self.take(self.at.next_multiple_of(to) - self.at)?;
        if padding.iter().any(|byte| *byte != 0) {
            return Err(Malformed::Rule("padding that is not nought"));
        }
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u32, Malformed> {
        self.align(4)?;
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four were taken")))
    }

    fn text(&mut self) -> Result<String, Malformed> {
        let length = self.number()? as usize;
        self.ended_by_nought(length)
    }

    fn signature(&mut self) -> Result<String, Malformed> {
        let length = usize::from(self.byte()?);
        self.ended_by_nought(length)
    }

    fn ended_by_nought(&mut self, length: usize) -> Result<String, Malformed> {
        let text = self.take(length)?.to_vec();
        if self.byte()? != 0 || text.contains(&0) {
            return Err(Malformed::Rule("a text without its end"));
        }
        String::from_utf8(text).map_err(|_| Malformed::Rule("a text that is none"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A signal as systemd sends it.
    fn removed() -> Vec<u8> {
        let mut body = Vec::new();
        let text = |body: &mut Vec<u8>, text: &str| {
            body.resize(body.len().next_multiple_of(4), 0);
            body.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
            body.extend(text.as_bytes());
            body.push(0);
        };
        body.extend(7_u32.to_le_bytes());
        for word in ["/org/freedesktop/systemd1/job/7", "a.scope", "done"] {
            text(&mut body, word);
        }
        let fields = b"\x03\x01s\0\x0a\0\0\0JobRemoved\0\0\0\0\0\0\x08\x01g\0\x04uoss\0";
        let mut bytes = vec![b'l', 4, 1, 1];
        for number in [body.len(), 3, fields.len()] {
            bytes.extend(u32::try_from(number).unwrap().to_le_bytes());
        }
        bytes.extend(fields);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn the_end_of_a_job_is_understood() {
        let bytes = removed();
        let message = Message::read(&mut bytes.as_slice()).unwrap();
        let ended = message.ended_job().unwrap();
        assert_eq!(ended, Some(("a.scope".to_owned(), "done".to_owned())));
    }

    /// Whatever byte is wrong, the answer is a message or a refusal, never a panic or a wait for more.
    #[test]
    fn no_wrong_byte_does_harm() {
        let good = removed();
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0xff, good[at] ^ 0x20] {
                let mut bytes = good.clone();
                bytes[at] = value;
                if let Ok(message) = Message::read(&mut bytes.as_slice()) {
                    let _understood_or_not = (message.ended_job(), message.text());
                }
            }
            assert!(Message::read(&mut &good[..at]).is_err(), "cut off at {at}");
        }
    }

    #[test]
    fn what_breaks_a_rule_is_refused() {
        let broken = |at: usize, value: u8| {
            let mut bytes = removed();
            bytes[at] = value;
            Message::read(&mut bytes.as_slice()).err().map(|error| error.to_string())
        };
        assert_eq!(broken(0, b'B').as_deref(), Some("not the start of a message"));
        assert_eq!(broken(3, 2).as_deref(), Some("not the start of a message"));
        assert_eq!(broken(7, 0x40).as_deref(), Some("a message that is too long"));
        assert_eq!(broken(17, 2).as_deref(), Some("a text without its end"));
        assert_eq!(broken(18, b'v').as_deref(), Some("a field of another type"));
        assert_eq!(broken(36, 9).as_deref(), Some("padding that is not nought"));
    }
}
