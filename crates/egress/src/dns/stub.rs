//! Questions of the gate itself, to the nameservers of the machine, and their answers.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::name::HostName;

use super::message::{CLASS_IN, Reader, encode_name, kind};

/// Which addresses are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    fn kind(self) -> u16 {
        match self {
            Self::V4 => kind::A,
            Self::V6 => kind::AAAA,
        }
    }
}

/// What a nameserver said about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub addresses: Vec<IpAddr>,
    pub seconds_to_live: u32,
}

/// Why an answer is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StubError {
    /// Another question's, or nobody's: the right one may still come.
    #[error("the message does not answer the question")]
    Foreign,
    #[error("the answer is malformed")]
    Malformed,
    #[error("the answer does not fit, and has to be asked for over TCP")]
    Truncated,
    #[error("the name does not exist")]
    NoSuchName,
    #[error("the nameserver refused with code {0}")]
    Code(u8),
}

const MOST_RECORDS: u16 = 256;
const MOST_ALIASES: usize = 16;
/// More addresses of one name are not tried.
const MOST_ADDRESSES: usize = 16;

/// The message that asks for the addresses of a name.
pub fn query(id: u16, name: &HostName, family: Family) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    message.extend(encode_name(name.as_str()));
    message.extend(family.kind().to_be_bytes());
    message.extend(CLASS_IN.to_be_bytes());
    message
}

/// Reads the answer to [`query`].
pub fn read(bytes: &[u8], id: u16, name: &HostName, family: Family) -> Result<Found, StubError> {
    let mut reader = Reader::new(bytes);
    let asked = encode_name(name.as_str());
    let (flags, answers) = header(&mut reader, id, &asked, family).ok_or(StubError::Foreign)?;
    if flags & 0x0200 != 0 {
        return Err(StubError::Truncated);
    }
    match u8::try_from(flags & 0xf).expect("four bits") {
        0 => {}
        3 => return Err(StubError::NoSuchName),
        code => return Err(StubError::Code(code)),
    }
    if answers > MOST_RECORDS {
        return Err(StubError::Malformed);
    }
    records(&mut reader, answers).map(|records| records.follow(asked, family)).ok_or(StubError::Malformed)
}

/// The flags and the number of answers, if this is an answer to that question.
fn header(reader: &mut Reader<'_>, id: u16, asked: &[u8], family: Family) -> Option<(u16, u16)> {
    let (own, flags) = (reader.number()?, reader.number()?);
    let (questions, answers) = (reader.number()?, reader.number()?);
    let (_authority, _additional) = (reader.number()?, reader.number()?);
    let is_answer = own == id && flags & 0xf800 == 0x8000 && questions == 1;
    let name = is_answer.then(|| reader.name()).flatten()?;
    let is_same = name == asked && reader.number()? == family.kind() && reader.number()? == CLASS_IN;
    is_same.then_some((flags, answers))
}

/// What the answer section says, by name.
#[derive(Default)]
struct Records {
    aliases: HashMap<Vec<u8>, (Vec<u8>, u32)>,
    addresses: Vec<(Vec<u8>, IpAddr, u32)>,
}

fn records(reader: &mut Reader<'_>, count: u16) -> Option<Records> {
    let mut records = Records::default();
    for _ in 0..count {
        let owner = reader.name()?;
        let (kind, class, live) = (reader.number()?, reader.number()?, reader.long()?);
        let length = usize::from(reader.number()?);
        match (kind, length) {
            (_, _) if class != CLASS_IN => drop(reader.take(length)?),
            (kind::A, 4) => {
                let address: [u8; 4] = reader.take(4)?.try_into().ok()?;
                records.addresses.push((owner, Ipv4Addr::from(address).into(), live));
            }
            (kind::AAAA, 16) => {
                let address: [u8; 16] = reader.take(16)?.try_into().ok()?;
                records.addresses.push((owner, Ipv6Addr::from(address).into(), live));
            }
            (kind::A | kind::AAAA, _) => return None,
            (kind::CNAME, _) => {
                let target = reader.alias(length)?;
                records.aliases.entry(owner).or_insert((target, live));
            }
            _ => drop(reader.take(length)?),
        }
    }
    Some(records)
}

impl Reader<'_> {
    /// A name that fills its record exactly.
    fn alias(&mut self, length: usize) -> Option<Vec<u8>> {
        let mut inside = self.clone_at_here();
        let target = inside.name()?;
        let used = inside.distance_from(self);
        self.take(length)?;
        (used == length).then_some(target)
    }
}

impl Records {
    /// From the name that was asked for, alias by alias, to the addresses.
    fn follow(&self, asked: Vec<u8>, family: Family) -> Found {
        let (mut name, mut live) = (asked, u32::MAX);
        for _ in 0..MOST_ALIASES {
            let is_of =
                |row: &&(Vec<u8>, IpAddr, u32)| row.0 == name && row.1.is_ipv4() == (family == Family::V4);
            let own: Vec<_> = self.addresses.iter().filter(is_of).take(MOST_ADDRESSES).collect();
            if !own.is_empty() {
                live = own.iter().fold(live, |least, row| least.min(row.2));
                return Found { addresses: own.iter().map(|row| row.1).collect(), seconds_to_live: live };
            }
            let Some((target, own)) = self.aliases.get(&name) else { break };
            live = live.min(*own);
            name.clone_from(target);
        }
        Found { addresses: Vec::new(), seconds_to_live: 0 }
    }
}

#[cfg(test)]
mod tests;
