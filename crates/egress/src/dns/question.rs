//! The one question of a message from inside.

use crate::name::HostName;

use super::message::{CLASS_IN, HEADER, Reader, decode_name, kind};

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub id: u16,
    /// As it was sent, in its own mixture of cases: it goes back like that.
    pub(super) wire: Vec<u8>,
    pub kind: u16,
    pub(super) recursion: bool,
    pub(super) edns: bool,
}

/// What to do with bytes that are no question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not even an answer: too short, too long, or itself an answer.
    Silence,
    /// An answer with an error code.
    Code { id: u16, code: u8 },
}

impl Refusal {
    /// The message to send back, if any.
    pub fn encode(self) -> Option<Vec<u8>> {
        let Self::Code { id, code } = self else { return None };
        let mut message = id.to_be_bytes().to_vec();
        message.extend([0x80, 0x80 | code]);
        message.extend([0; 8]);
        Some(message)
    }
}

/// More than any client sends in one question.
const LONGEST: usize = 1232;
const FORM_ERROR: u8 = 1;
const NOT_IMPLEMENTED: u8 = 4;

impl Question {
    /// Reads a message: one question, nothing in the other sections but the options of EDNS, nothing behind them.
    pub fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        if bytes.len() < HEADER || bytes.len() > LONGEST || bytes[2] & 0x80 != 0 {
            return Err(Refusal::Silence);
        }
        let id = u16::from_be_bytes([bytes[0], bytes[1]]);
        match bytes[2] >> 3 & 0xf {
            0 => sections(bytes).ok_or(Refusal::Code { id, code: FORM_ERROR }),
            _ => Err(Refusal::Code { id, code: NOT_IMPLEMENTED }),
        }
    }

    /// The name as the name of a host, if it can be one.
    pub fn host(&self) -> Option<HostName> {
        decode_name(&self.wire)?.parse().ok()
    }
}

fn sections(bytes: &[u8]) -> Option<Question> {
    let mut reader = Reader::new(bytes);
    let (id, flags) = (reader.number()?, reader.number()?);
    let counts = [reader.number()?, reader.number()?, reader.number()?, reader.number()?];
    let [1, 0, 0, additional @ (0 | 1)] = counts else { return None };
    let wire = reader.plain_name()?.to_vec();
    let (kind, class) = (reader.number()?, reader.number()?);
    if additional == 1 {
        options(&mut reader)?;
    }
    let question = Question { id, wire, kind, recursion: flags & 0x100 != 0, edns: additional == 1 };
    (reader.is_at_end() && class == CLASS_IN).then_some(question)
}

/// The pseudo-record of EDNS: at the root, with options that nobody here reads.
fn options(reader: &mut Reader<'_>) -> Option<()> {
    let is_at_root = reader.byte()? == 0;
    let is_options = reader.number()? == kind::OPT;
    let (_size, _flags, length) = (reader.number()?, reader.long()?, reader.number()?);
    reader.take(usize::from(length))?;
    (is_at_root && is_options).then_some(())
}
