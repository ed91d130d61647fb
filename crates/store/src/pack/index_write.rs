//! Writing the index of a pack.

use std::io::{self, Write};

use crate::id::{HashKind, ObjectId};
use crate::object::Hasher;

/// An object in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    pub id: ObjectId,
    pub offset: u64,
    /// Over the entry as it is in the pack.
    pub crc: u32,
}

/// Writes the index of a pack whose checksum is `pack`; sorts the entries.
pub fn write_index(
    to: &mut dyn Write,
    hash: HashKind,
    entries: &mut [IndexEntry],
    pack: &[u8],
) -> io::Result<()> {
    entries.sort_unstable_by_key(|entry| entry.id);
    let mut out = Summed { to, hasher: Hasher::checksum(hash) };
    out.put(&[0xff, b't', b'O', b'c', 0, 0, 0, 2])?;
    for first in 0..=255_u8 {
        let count = entries.partition_point(|entry| entry.id.as_bytes()[0] <= first);
        out.put(&u32::try_from(count).map_err(io::Error::other)?.to_be_bytes())?;
    }
    for entry in &*entries {
        out.put(entry.id.as_bytes())?;
    }
    for entry in &*entries {
        out.put(&entry.crc.to_be_bytes())?;
    }
    let mut long = Vec::new();
    for entry in &*entries {
        let place = match u32::try_from(entry.offset) {
            Ok(place) if place < 1 << 31 => place,
            _ => {
                long.push(entry.offset);
                1 << 31 | u32::try_from(long.len() - 1).map_err(io::Error::other)?
            }
        };
        out.put(&place.to_be_bytes())?;
    }
    for place in long {
        out.put(&place.to_be_bytes())?;
    }
    out.put(pack)?;
    let checksum = out.hasher.finish().map_err(io::Error::other)?;
    out.to.write_all(checksum.as_bytes())
}

struct Summed<'a> {
    to: &'a mut dyn Write,
    hasher: Hasher,
}

impl Summed<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.to.write_all(bytes)
    }
}
