//! Packs made by hand, with whatever lies in them.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::object::Hasher;
use sandtable_store::pack::{IndexEntry, write_index};

pub(crate) const BLOB: u8 = 3;
pub(crate) const OFFSET: u8 = 6;
pub(crate) const REFERENCE: u8 = 7;

pub(crate) fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// The head of an entry that says it has `size` bytes.
pub(crate) fn head(kind: u8, size: u64) -> Vec<u8> {
    let byte = |value: u64| u8::try_from(value & 0x7f).unwrap();
    let mut bytes = vec![kind << 4 | byte(size & 0x0f)];
    let mut rest = size >> 4;
    while rest > 0 {
        *bytes.last_mut().unwrap() |= 0x80;
        bytes.push(byte(rest));
        rest >>= 7;
    }
    bytes
}

/// How far back the base of a delta stands.
pub(crate) fn back(distance: u64) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(distance & 0x7f).unwrap()];
    let mut rest = distance >> 7;
    while rest > 0 {
        rest -= 1;
        bytes.insert(0, 0x80 | u8::try_from(rest & 0x7f).unwrap());
        rest >>= 7;
    }
    bytes
}

/// A number as deltas have it.
pub(crate) fn number(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).unwrap();
        value >>= 7;
        bytes.push(if value > 0 { low | 0x80 } else { low });
        if value == 0 {
            return bytes;
        }
    }
}

pub(crate) fn id(number: usize) -> ObjectId {
    let mut bytes = [7; 20];
    bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
    ObjectId::from_bytes(&bytes).unwrap()
}

/// Writes a pack whose entries have the ids 0, 1, … and an index that fits it.
pub(crate) fn forge(dir: &Path, entries: &[Vec<u8>]) -> PathBuf {
    let path = dir.join("pack-forged.pack");
    let count = u32::try_from(entries.len()).unwrap();
    let mut pack = [&b"PACK\0\0\0\x02"[..], &count.to_be_bytes()].concat();
    let mut index = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let mut crc = flate2::Crc::new();
        crc.update(entry);
        index.push(IndexEntry { id: id(number), offset: pack.len() as u64, crc: crc.sum() });
        pack.extend_from_slice(entry);
    }
    let mut hasher = Hasher::bare(HashKind::Sha1);
    hasher.update(&pack);
    let checksum = hasher.finish().unwrap();
    pack.extend_from_slice(checksum.as_bytes());
    fs_err::write(&path, pack).unwrap();
    let mut file = fs_err::File::create(path.with_extension("idx")).unwrap();
    write_index(&mut file, HashKind::Sha1, &mut index, checksum.as_bytes()).unwrap();
    path
}
