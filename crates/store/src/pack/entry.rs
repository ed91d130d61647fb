//! The head of an entry: what it is, how large, and what it builds on.

use super::EntryError;
use super::input::Input;
use crate::id::{HashKind, ObjectId};
use crate::object::ObjectKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    Whole(ObjectKind),
    /// A delta on the entry at this place.
    Offset(u64),
    /// A delta on the object of this name.
    Reference(ObjectId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: EntryKind,
    /// Of what follows, decompressed.
    pub(super) size: u64,
}

/// Reads the head of the entry at `at`, where `input` stands.
pub(super) fn read(input: &mut Input<'_>, at: u64, hash: HashKind) -> Result<Head, EntryError> {
    let first = input.byte()?;
    let mut size = u64::from(first & 0x0f);
    let (mut shift, mut more) = (4_u32, first & 0x80 != 0);
    while more {
        let byte = input.byte()?;
        if shift > 57 {
            return Err(EntryError::damaged("its size is no number"));
        }
        size |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        more = byte & 0x80 != 0;
    }
    let kind = match first >> 4 & 7 {
        1 => EntryKind::Whole(ObjectKind::Commit),
        2 => EntryKind::Whole(ObjectKind::Tree),
        3 => EntryKind::Whole(ObjectKind::Blob),
        4 => EntryKind::Whole(ObjectKind::Tag),
        6 => EntryKind::Offset(base(input, at)?),
        7 => {
            let mut id = [0; 32];
            let id = &mut id[..hash.bytes()];
            input.bytes(id)?;
            EntryKind::Reference(ObjectId::from_bytes(id).expect("the length is that of the hash"))
        }
        _ => return Err(EntryError::damaged("it is of no known kind")),
    };
    Ok(Head { kind, size })
}

fn base(input: &mut Input<'_>, at: u64) -> Result<u64, EntryError> {
    let wrong = || EntryError::damaged("its delta has no base");
    let mut byte = input.byte()?;
    let mut back = u64::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = input.byte()?;
        back = back.checked_add(1).filter(|back| *back < 1 << 56).ok_or_else(wrong)? << 7;
        back |= u64::from(byte & 0x7f);
    }
    at.checked_sub(back).filter(|base| back > 0 && *base >= 12).ok_or_else(wrong)
}

/// The head of an object that stands for itself.
pub(super) fn encode(kind: ObjectKind, size: u64) -> Vec<u8> {
    let number = match kind {
        ObjectKind::Commit => 1_u8,
        ObjectKind::Tree => 2,
        ObjectKind::Blob => 3,
        ObjectKind::Tag => 4,
    };
    sized(number, size)
}

/// The head of a delta of `size` bytes on the entry that starts `back` bytes before this one.
pub(super) fn encode_delta(size: u64, back: u64) -> Vec<u8> {
    let mut head = sized(6, size);
    // The last seven bits come last; each byte before says one more than is needed, since there is at least one.
    let mut bytes = vec![low(back, 0x7f)];
    let mut rest = back >> 7;
    while rest > 0 {
        rest -= 1;
        bytes.push(0x80 | low(rest, 0x7f));
        rest >>= 7;
    }
    head.extend(bytes.iter().rev());
    head
}

fn sized(number: u8, size: u64) -> Vec<u8> {
    let mut head = vec![number << 4 | low(size, 0x0f)];
    let mut rest = size >> 4;
    while rest > 0 {
        *head.last_mut().expect("there is one from the start") |= 0x80;
        head.push(low(rest, 0x7f));
        rest >>= 7;
    }
    head
}

fn low(value: u64, mask: u64) -> u8 {
    u8::try_from(value & mask).expect("masked to a byte")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn heads_of_deltas_are_read_as_they_were_written() {
        let at = 1_u64 << 40;
        for back in [1, 2, 127, 128, 129, 16_511, 16_512, 2_113_663, 2_113_664, u64::from(u32::MAX), at - 12]
        {
            for size in [0, 15, 16, 2047, 2048, 1 << 33] {
                let head = encode_delta(size, back);
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(&head).unwrap();
                let mut input = Input::new(&file, 0, head.len() as u64);
                let found = read(&mut input, at, HashKind::Sha1).unwrap();
                assert_eq!(found, Head { kind: EntryKind::Offset(at - back), size });
                assert_eq!(input.remaining(), 0, "{back} {size}");
            }
        }
    }
}
