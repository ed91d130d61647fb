//! An index with some entries exchanged, made byte by byte.
//!
//! Everything that is not changed is copied as it is. Only the plain form is understood: versions 2 and 3, whole in
//! itself, with no extension but the tree cache (whose touched directories are marked as unknown) and the two tables of
//! offsets that large ones have (which are left out; git makes them again). For any other, git does the work.

use std::collections::{BTreeMap, BTreeSet};

use sandtable_store::dir::Meta;
use sandtable_store::id::HashKind;
use sandtable_store::object::Hasher;

use crate::tree::Entry;

/// The version an entry gets: what it is, and the file if that is known to be it.
pub(super) type New = (Entry, Option<Meta>);

/// The length of an entry up to the id of its object.
const STAT: usize = 40;
const STAGE: u16 = 3 << 12;
const EXTENDED: u16 = 1 << 14;
const LONGEST: usize = 0xfff;

/// The index with these paths exchanged, added or removed; nothing if it is not of the plain form.
pub(super) fn rewritten(
    data: &[u8],
    hash: HashKind,
    edits: &BTreeMap<&[u8], Option<New>>,
) -> Option<Vec<u8>> {
    let end = data.len().checked_sub(hash.bytes())?;
    let (content, checksum) = data.split_at(end);
    if checksum != sum(content, hash)? {
        return None;
    }
    let version = number(content, 4)?;
    if content.get(..4)? != b"DIRC" || !(2..=3).contains(&version) {
        return None;
    }
    let mut at = 12;
    let mut kept: Vec<(&[u8], u16, Vec<u8>)> = Vec::new();
    for _ in 0..number(content, 8)? {
        let (name, stage, length) = entry(content, at, hash)?;
        if !edits.contains_key(name) {
            kept.push((name, stage, content.get(at..at + length)?.to_vec()));
        }
        at += length;
    }
    let names: BTreeSet<&[u8]> = kept.iter().map(|(name, ..)| *name).collect();
    for (name, new) in edits.iter().filter_map(|(name, new)| Some((*name, new.as_ref()?))) {
        if is_in_the_way(&names, name) {
            return None;
        }
        kept.push((name, 0, encoded(name, new)));
    }
    kept.sort_by(|one, other| (one.0, one.1).cmp(&(other.0, other.1)));
    let mut made = b"DIRC".to_vec();
    made.extend_from_slice(&version.to_be_bytes());
    made.extend_from_slice(&u32::try_from(kept.len()).ok()?.to_be_bytes());
    for (_, _, bytes) in &kept {
        made.extend_from_slice(bytes);
    }
    made.extend(extensions(content.get(at..)?, hash, edits)?);
    let checksum = sum(&made, hash)?;
    made.extend_from_slice(&checksum);
    Some(made)
}

fn sum(content: &[u8], hash: HashKind) -> Option<Vec<u8>> {
    let mut hasher = Hasher::checksum(hash);
    hasher.update(content);
    Some(hasher.finish().ok()?.as_bytes().to_vec())
}

fn number(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*data.get(at..at + 4)?.first_chunk()?))
}

/// Name, stage and length of the entry that starts here.
fn entry(data: &[u8], at: usize, hash: HashKind) -> Option<(&[u8], u16, usize)> {
    let flags_at = at + STAT + hash.bytes();
    let flags = u16::from_be_bytes(*data.get(flags_at..flags_at + 2)?.first_chunk()?);
    let name_at = flags_at + if flags & EXTENDED == 0 { 2 } else { 4 };
    let rest = data.get(name_at..)?;
    let name = &rest[..rest.iter().position(|byte| *byte == 0)?];
    let length = (name_at - at + name.len() + 8) & !7;
    Some((name, flags & STAGE, length))
}

/// Whether an entry of this name could not stand beside the others: a file where there is a directory, or below a file.
fn is_in_the_way(names: &BTreeSet<&[u8]>, name: &[u8]) -> bool {
    let below = [name, b"/"].concat();
    let mut after =
        names.range::<[u8], _>((std::ops::Bound::Included(below.as_slice()), std::ops::Bound::Unbounded));
    let mut above = name.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &name[..at]);
    after.next().is_some_and(|next| next.starts_with(&below)) || above.any(|above| names.contains(above))
}

/// An entry as git writes it; numbers are cut to 32 bits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "git keeps the lower half of these numbers"
)]
fn encoded(name: &[u8], (new, meta): &New) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(STAT + 40 + name.len());
    let time = |nanoseconds: i64| {
        [nanoseconds.div_euclid(1_000_000_000) as u32, nanoseconds.rem_euclid(1_000_000_000) as u32]
    };
    let mode = u32::from_str_radix(new.mode.octal(), 8).expect("a number of octal digits");
    let numbers = match meta {
        Some(meta) => {
            let ([ctime, ctime_ns], [mtime, mtime_ns]) = (time(meta.ctime_ns), time(meta.mtime_ns));
            let dev = meta.dev.0 << 8 | meta.dev.1;
            [
                ctime,
                ctime_ns,
                mtime,
                mtime_ns,
                dev,
                meta.ino as u32,
                mode,
                meta.uid,
                meta.gid,
                meta.size as u32,
            ]
        }
        None => [0, 0, 0, 0, 0, 0, mode, 0, 0, 0],
    };
    for number in numbers {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    bytes.extend_from_slice(new.id.as_bytes());
    bytes.extend_from_slice(&(name.len().min(LONGEST) as u16).to_be_bytes());
    bytes.extend_from_slice(name);
    let length = (bytes.len() + 8) & !7;
    bytes.resize(length, 0);
    bytes
}

fn extensions(mut rest: &[u8], hash: HashKind, edits: &BTreeMap<&[u8], Option<New>>) -> Option<Vec<u8>> {
    let mut made = Vec::new();
    while !rest.is_empty() {
        let name = rest.get(..4)?;
        let length = usize::try_from(number(rest, 4)?).ok()?;
        let payload = rest.get(8..8 + length)?;
        match name {
            b"TREE" => {
                let payload = unknown(payload, hash, edits)?;
                made.extend_from_slice(name);
                made.extend_from_slice(&u32::try_from(payload.len()).ok()?.to_be_bytes());
                made.extend(payload);
            }
            b"EOIE" | b"IEOT" => {}
            _ => return None,
        }
        rest = &rest[8 + length..];
    }
    Some(made)
}

/// The tree cache, without the ids of directories that something changed in.
fn unknown(mut rest: &[u8], hash: HashKind, edits: &BTreeMap<&[u8], Option<New>>) -> Option<Vec<u8>> {
    let mut touched: BTreeSet<&[u8]> = BTreeSet::from([&b""[..]]);
    for path in edits.keys() {
        touched.extend(path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]));
    }
    let mut made = Vec::with_capacity(rest.len());
    // The directories that one is in, each with how many below it are still to come.
    let mut above: Vec<(Vec<u8>, u64)> = Vec::new();
    while !rest.is_empty() {
        let zero = rest.iter().position(|byte| *byte == 0)?;
        let line = zero + 1 + rest.get(zero + 1..)?.iter().position(|byte| *byte == b'\n')?;
        let (count, below) = str::from_utf8(&rest[zero + 1..line]).ok()?.split_once(' ')?;
        let (name, known) = (&rest[..zero], !count.starts_with('-'));
        let id = rest.get(line + 1..line + 1 + if known { hash.bytes() } else { 0 })?;
        let path = match above.last() {
            Some((folder, _)) if !folder.is_empty() => [folder.as_slice(), b"/", name].concat(),
            _ => name.to_vec(),
        };
        made.extend_from_slice(&rest[..=zero]);
        if known && touched.contains(path.as_slice()) {
            made.extend_from_slice(format!("-1 {below}\n").as_bytes());
        } else {
            made.extend_from_slice(&rest[zero + 1..=line]);
            made.extend_from_slice(id);
        }
        rest = &rest[line + 1 + id.len()..];
        above.push((path, below.parse().ok()?));
        while above.last().is_some_and(|(_, left)| *left == 0) {
            above.pop();
            if let Some((_, left)) = above.last_mut() {
                *left -= 1;
            }
        }
    }
    above.is_empty().then_some(made)
}
