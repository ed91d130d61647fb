//! The bytes of a stat cache.
//!
//! A header, then a block for each directory, then a table of the blocks sorted by key and the packs that were there, then
//! the end, which says where the table is. Header, table, packs and end have one checksum, each block its own. A block
//! begins with the trees that the directory was written as, where those are known.

use sha2::Digest as _;

use super::{Cached, InStore, Key, Look, Settled, Subject, Whole, first_bytes};
use crate::dir::Kind;
use crate::id::{HashKind, ObjectId};
use crate::state::{Attribute, Attributes, Directory};

pub(super) const MAGIC: &[u8; 24] = b"sandtable-stat-cache 2\n\n";
/// Magic, kind of hash, device, inode, generation.
pub(super) const HEADER: usize = 24 + 1 + 8 + 8 + 8;
/// Key, offset, length.
pub(super) const ROW: usize = 16 + 8 + 4;
/// Where the table is, how many rows it has, how many packs follow, checksum.
pub(super) const END: usize = 8 + 8 + 8 + 16;
/// The name of a pack, hashed.
pub(super) const PACK: usize = 16;
pub(super) const SUM: usize = 16;

pub(super) fn header(hash: HashKind, subject: Subject, generation: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.push(u8::try_from(hash.bytes()).expect("a hash is shorter than 256 bytes"));
    bytes.extend(subject.dev.0.to_le_bytes());
    bytes.extend(subject.dev.1.to_le_bytes());
    bytes.extend(subject.ino.to_le_bytes());
    bytes.extend(generation.to_le_bytes());
    bytes
}

pub(super) fn sum(parts: &[&[u8]]) -> [u8; SUM] {
    let mut hasher = sha2::Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    first_bytes(&hasher.finalize())
}

pub(super) fn row(key: Key, offset: u64, length: u32) -> [u8; ROW] {
    let mut row = [0; ROW];
    row[..16].copy_from_slice(&key.0);
    row[16..24].copy_from_slice(&offset.to_le_bytes());
    row[24..].copy_from_slice(&length.to_le_bytes());
    row
}

/// What stands before the entries of a block.
pub(super) fn put_whole(to: &mut Vec<u8>, whole: Option<&Whole>) {
    let Some(Whole { directory, in_store }) = whole else { return to.push(0) };
    let Directory { tree, manifest, times } = directory;
    let ids = [tree, manifest, times];
    let there = ids.iter().enumerate().map(|(place, id)| u8::from(id.is_some()) << (place + 2));
    to.push(1 | u8::from(*in_store == InStore::Yes) << 1 | there.sum::<u8>());
    ids.into_iter().flatten().for_each(|id| to.extend(id.as_bytes()));
}

/// Takes it off again. Of what could not have been written nothing is left.
pub(super) fn take_whole(block: &mut &[u8], hash: HashKind) -> Option<Whole> {
    let [flags] = take_array(block)?;
    if flags & 1 == 0 {
        return None;
    }
    let whole = whole(block, flags, hash);
    if whole.is_none() {
        *block = &[];
    }
    whole
}

fn whole(block: &mut &[u8], flags: u8, hash: HashKind) -> Option<Whole> {
    let mut ids = [None; 3];
    for (place, id) in ids.iter_mut().enumerate() {
        if flags & 1 << (place + 2) != 0 {
            let (bytes, rest) = block.split_at_checked(hash.bytes())?;
            *block = rest;
            *id = Some(ObjectId::from_bytes(bytes).ok()?);
        }
    }
    let [tree, manifest, times] = ids;
    let in_store = if flags & 2 == 0 { InStore::Perhaps } else { InStore::Yes };
    Some(Whole { directory: Directory { tree, manifest, times }, in_store })
}

/// Adds the entry of one file to a block.
pub(super) fn put(block: &mut Vec<u8>, name: &[u8], cached: &Cached) {
    put_bytes(block, name);
    let Look { kind, mode, size, mtime_ns, ctime_ns, ino, dev } = cached.look;
    let flags = u8::from(cached.settled == Settled::Yes)
        | u8::from(cached.content.is_some()) << 1
        | u8::from(kind == Kind::Symlink) << 2
        | u8::from(cached.in_store == InStore::Yes) << 3;
    block.push(flags);
    block.extend(mode.to_le_bytes());
    for number in [size, mtime_ns.cast_unsigned(), ctime_ns.cast_unsigned(), ino] {
        block.extend(number.to_le_bytes());
    }
    block.extend(dev.0.to_le_bytes());
    block.extend(dev.1.to_le_bytes());
    if let Some((id, attributes)) = &cached.content {
        block.extend(id.as_bytes());
        let count = u32::try_from(attributes.iter().count()).expect("attributes are bounded");
        block.extend(count.to_le_bytes());
        for attribute in attributes.iter() {
            put_bytes(block, &attribute.name);
            put_bytes(block, &attribute.value);
        }
    }
}

fn put_bytes(block: &mut Vec<u8>, bytes: &[u8]) {
    block.extend(u32::try_from(bytes.len()).expect("names and values are short").to_le_bytes());
    block.extend(bytes);
}

/// Takes the first entry off a block; `None` if there is none, or none that could have been written.
pub(super) fn take<'a>(block: &mut &'a [u8], hash: HashKind) -> Option<(&'a [u8], Cached)> {
    let name = take_bytes(block)?;
    let flags = take_array::<1>(block)?[0];
    let mode = u16::from_le_bytes(take_array(block)?);
    let size = u64::from_le_bytes(take_array(block)?);
    let mtime_ns = i64::from_le_bytes(take_array(block)?);
    let ctime_ns = i64::from_le_bytes(take_array(block)?);
    let ino = u64::from_le_bytes(take_array(block)?);
    let dev = (u32::from_le_bytes(take_array(block)?), u32::from_le_bytes(take_array(block)?));
    let content = if flags & 2 == 0 { None } else { Some(content(block, hash)?) };
    let settled = if flags & 1 == 1 { Settled::Yes } else { Settled::No };
    let kind = if flags & 4 == 0 { Kind::File } else { Kind::Symlink };
    let in_store = if flags & 8 == 0 { InStore::Perhaps } else { InStore::Yes };
    let look = Look { kind, mode, size, mtime_ns, ctime_ns, ino, dev };
    Some((name, Cached { look, settled, content, in_store }))
}

fn content(block: &mut &[u8], hash: HashKind) -> Option<(ObjectId, Attributes)> {
    let (id, rest) = block.split_at_checked(hash.bytes())?;
    *block = rest;
    let mut attributes = Vec::new();
    for _ in 0..u32::from_le_bytes(take_array(block)?) {
        let name = take_bytes(block)?.into();
        attributes.push(Attribute { name, value: take_bytes(block)?.into() });
    }
    Some((ObjectId::from_bytes(id).ok()?, Attributes::new(attributes)))
}

fn take_bytes<'a>(block: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(u32::from_le_bytes(take_array(block)?)).ok()?;
    let (bytes, rest) = block.split_at_checked(length)?;
    *block = rest;
    Some(bytes)
}

pub(super) fn take_array<const N: usize>(block: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = block.split_first_chunk()?;
    *block = rest;
    Some(*array)
}
