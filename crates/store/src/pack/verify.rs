//! Looking at every byte of a pack.

use std::os::unix::fs::FileExt as _;

use flate2::Crc;

use super::{BaseCache, EntryError, Pack, PackError, Place};
use crate::id::ObjectId;
use crate::object::{Hasher, ObjectKind};

/// What is wrong with a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The object it is about; none if it is the file as a whole.
    pub object: Option<ObjectId>,
    pub what: String,
}

/// Reads all of a pack and of its index, and decompresses and hashes every object.
pub fn verify(pack: &Pack) -> Result<Vec<Fault>, PackError> {
    let mut faults = Vec::new();
    if let Err(error) = pack.index.verify() {
        faults.push(Fault { object: None, what: error.to_string() });
    }
    if !checksum_fits(pack)? {
        let what = PackError::damaged(pack.path(), "its checksum does not fit").to_string();
        faults.push(Fault { object: None, what });
    }
    let cache = BaseCache::default();
    let mut expected = 12;
    for place in pack.places()? {
        if place.offset != expected {
            let what = format!("its entry is not at its place in `{}`", pack.path().display());
            faults.push(Fault { object: Some(place.id), what });
        }
        expected = place.end;
        if let Some(what) = fault(pack, &cache, &place)? {
            faults.push(Fault { object: Some(place.id), what });
        }
    }
    Ok(faults)
}

/// What is wrong with one object.
fn fault(pack: &Pack, cache: &BaseCache, place: &Place) -> Result<Option<String>, PackError> {
    let &Place { id, offset, end, crc: expected } = place;
    if end <= offset || end > pack.end() {
        return Ok(Some("its place is outside of the pack".to_owned()));
    }
    if pack.crc(place)? != expected {
        return Ok(Some("its checksum does not fit".to_owned()));
    }
    let mut hasher: Option<Hasher> = None;
    let size = match pack.header(offset) {
        Ok((_, size)) => size,
        Err(error) => return text(pack, error).map(Some),
    };
    let read = pack.stream(offset, cache, &mut |kind: ObjectKind, data: &[u8]| {
        hasher.get_or_insert_with(|| Hasher::new(pack.hash(), kind, size)).update(data);
        Ok(())
    });
    if let Err(error) = read {
        return text(pack, error).map(Some);
    }
    // Nothing was handed over for an empty object.
    let kind = pack.header(offset).map_or(ObjectKind::Blob, |(kind, _)| kind);
    let hasher = hasher.unwrap_or_else(|| Hasher::new(pack.hash(), kind, 0));
    Ok(match hasher.finish() {
        Ok(found) if found == id => None,
        Ok(found) => Some(format!("its content is that of `{found}`")),
        Err(error) => Some(error.to_string()),
    })
}

fn text(pack: &Pack, error: EntryError) -> Result<String, PackError> {
    match error {
        EntryError::Io(source) => Err(PackError::io(pack.path())(source)),
        EntryError::Damaged(what) => Ok(what),
        EntryError::TooLarge(size) => Ok(format!("its {size} bytes are too many")),
    }
}

impl Pack {
    /// The checksum of an entry as it stands there now.
    pub fn crc(&self, place: &Place) -> Result<u32, PackError> {
        let mut crc = Crc::new();
        each_block(self, (place.offset, place.end), &mut |block| crc.update(block))?;
        Ok(crc.sum())
    }
}

fn checksum_fits(pack: &Pack) -> Result<bool, PackError> {
    let mut hasher = Hasher::checksum(pack.hash());
    each_block(pack, (0, pack.end()), &mut |block| hasher.update(block))?;
    let trailer = pack.trailer().map_err(PackError::io(pack.path()))?;
    Ok(hasher.finish().is_ok_and(|found| found.as_bytes() == trailer))
}

fn each_block(pack: &Pack, range: (u64, u64), with: &mut dyn FnMut(&[u8])) -> Result<(), PackError> {
    let mut block = vec![0; 64 << 10];
    let (mut at, end) = range;
    while at < end {
        let size = usize::try_from(end - at).unwrap_or(usize::MAX).min(block.len());
        pack.file().read_exact_at(&mut block[..size], at).map_err(PackError::io(pack.path()))?;
        with(&block[..size]);
        at += size as u64;
    }
    Ok(())
}
