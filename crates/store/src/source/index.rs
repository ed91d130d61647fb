//! The user's git index: which files git knows, and what they looked like when it did.
//!
//! Only read, never locked or refreshed. It may be any bytes: whatever is not understood makes it [`Unusable`], and files
//! are hashed instead. So are those of an index that refers to others (a split index), leaves directories out
//! (sparse directories), or was told by a monitor which files to look at.

use super::Stamp;
use crate::dir::{Kind, Meta};
use crate::id::{HashKind, ObjectId};
use crate::object::Hasher;

/// A larger index is not read.
pub const FILE_LIMIT: u64 = 512 << 20;

/// What paths and ids may take in memory, times the size of the file. Version 4 leaves out what a path has in common with
/// the one before, which saves half of a usual index; a made-up one grows by the square of its size.
const GROWTH: usize = 8;
/// Those of a small file always may take as much.
const ALWAYS: usize = 64 << 20;

/// Two ticks of the slowest clock that files are stamped with.
const TICK: i64 = 20_000_000;

/// An index.
#[derive(Debug)]
pub struct Index {
    /// Sorted by path.
    entries: Vec<Slim>,
    /// The paths and ids, one after the other.
    bytes: Vec<u8>,
    /// How many bytes these may be.
    most: usize,
    hash: HashKind,
    /// When it was written.
    written: Stamp,
    sparse: bool,
}

/// An entry of an index. Numbers are cut to 32 bits, as git has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry<'a> {
    pub path: &'a [u8],
    pub id: ObjectId,
    pub mode: u32,
    look: Look,
    flags: Flags,
}

/// Why an index is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("the index is damaged: {0}")]
    Damaged(&'static str),
    #[error("the index is too large")]
    TooLarge,
    #[error("the index is of version {0}")]
    Version(u32),
    #[error("the index is not complete in itself: it has the extension `{}`", .0.escape_ascii())]
    Extension([u8; 4]),
}

impl IndexEntry<'_> {
    /// It has several versions: a merge is not finished.
    pub const fn is_unmerged(&self) -> bool {
        self.flags.any(Flags::STAGE)
    }

    /// It is a commit of another repository.
    pub const fn is_gitlink(&self) -> bool {
        self.mode == 0o160_000
    }

    /// It is not meant to be in the directory.
    pub const fn is_skipped(&self) -> bool {
        self.flags.any(Flags::SKIP_WORKTREE)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    ctime: (u32, u32),
    mtime: (u32, u32),
    ino: u32,
    uid: u32,
    gid: u32,
    size: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flags(u32);

impl Flags {
    const ASSUME_VALID: u32 = 1 << 15;
    const STAGE: u32 = 3 << 12;
    const EXTENDED: u32 = 1 << 14;
    const SKIP_WORKTREE: u32 = 1 << 30;
    const INTENT_TO_ADD: u32 = 1 << 29;

    const fn any(self, mask: u32) -> bool {
        self.0 & mask != 0
    }
}

#[derive(Clone, Copy, Debug)]
struct Slim {
    at: u32,
    path: u32,
    mode: u32,
    look: Look,
    flags: Flags,
}

impl Index {
    /// `mtime_ns` is the modification time of the file.
    pub fn parse(data: &[u8], hash: HashKind, mtime_ns: i64) -> Result<Self, Unusable> {
        let content = data.len().checked_sub(hash.bytes()).ok_or(Unusable::Damaged("it is too short"))?;
        let (content, checksum) = data.split_at(content);
        verify(content, checksum, hash)?;
        let mut rest = Input(content);
        if rest.array()? != *b"DIRC" {
            return Err(Unusable::Damaged("it does not begin as one"));
        }
        let version = rest.number()?;
        if !(2..=4).contains(&version) {
            return Err(Unusable::Version(version));
        }
        let count = rest.number()?;
        // Each entry has at least this much, so a lying count takes no memory.
        let room = content.len() / (42 + hash.bytes());
        let mut index = Self {
            entries: Vec::with_capacity(room.min(count as usize)),
            bytes: Vec::with_capacity(content.len() / 2),
            most: most(content.len()),
            hash,
            written: Stamp::from_nanoseconds(mtime_ns.saturating_sub(TICK)),
            sparse: false,
        };
        for _ in 0..count {
            index.entry(&mut rest, version)?;
        }
        extensions(rest)?;
        // Only a split index may have such entries, and that was told by its extension.
        if index.entries.iter().any(|slim| slim.path == 0) {
            return Err(Unusable::Damaged("an entry has no path"));
        }
        Ok(index)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether some files are known to git but deliberately not in the directory.
    pub const fn is_sparse(&self) -> bool {
        self.sparse
    }

    pub fn entries(&self) -> impl Iterator<Item = IndexEntry<'_>> {
        self.entries.iter().map(|slim| self.full(slim))
    }

    /// The entry at a path; of one with conflicts, the first.
    pub fn find(&self, path: &[u8]) -> Option<IndexEntry<'_>> {
        self.get(self.first_from(path, 0)).filter(|entry| entry.path == path)
    }

    /// The entry at a place in the order of paths.
    pub(super) fn get(&self, at: usize) -> Option<IndexEntry<'_>> {
        self.entries.get(at).map(|slim| self.full(slim))
    }

    /// The first place whose path is not before `path`, looked for from `near` on in growing steps.
    pub(super) fn first_from(&self, path: &[u8], near: usize) -> usize {
        let is_before = |slim: &Slim| self.path(slim) < path;
        let (passed, rest) = self.entries.split_at(near.min(self.entries.len()));
        if passed.last().is_some_and(|slim| !is_before(slim)) {
            return passed.partition_point(is_before);
        }
        let (mut low, mut step) = (0, 1);
        while rest.get(low + step - 1).is_some_and(is_before) {
            low += step;
            step *= 2;
        }
        let high = rest.len().min(low + step - 1);
        passed.len() + low + rest[low..high].partition_point(is_before)
    }

    /// Whether git knows anything below the directory at `path`.
    pub fn has_below(&self, path: &[u8]) -> bool {
        let is_before = |slim: &Slim| self.path(slim).iter().lt(path.iter().chain(b"/"));
        let at = self.entries.partition_point(is_before);
        self.entries
            .get(at)
            .is_some_and(|slim| self.path(slim).strip_prefix(path).is_some_and(|rest| rest.starts_with(b"/")))
    }

    /// The commit of another repository that git knows at a path.
    pub fn gitlink(&self, path: &[u8]) -> Option<ObjectId> {
        self.find(path).filter(IndexEntry::is_gitlink).map(|entry| entry.id)
    }

    /// The blob that git has for the file at `path`, if the file is beyond doubt the one that git saw. Its bytes are those of
    /// the blob unless git converted them.
    pub fn id_of(&self, path: &[u8], meta: &Meta) -> Option<ObjectId> {
        self.find(path).filter(|entry| self.vouches(entry, meta)).map(|entry| entry.id)
    }

    /// Whether a file is beyond doubt the one that git saw.
    pub(super) fn vouches(&self, entry: &IndexEntry<'_>, meta: &Meta) -> bool {
        let unsure = Flags::ASSUME_VALID | Flags::STAGE | Flags::SKIP_WORKTREE | Flags::INTENT_TO_ADD;
        let is_file = meta.kind == Kind::File && matches!(entry.mode, 0o100_644 | 0o100_755);
        // A file that changed after git had looked at it, but before it wrote the index, may look the same.
        let is_racy = self.written.may_precede(meta.ctime_ns) || self.written.may_precede(meta.mtime_ns);
        is_file && !entry.flags.any(unsure) && !is_racy && Some(entry.look) == Look::of(meta)
    }

    fn entry(&mut self, rest: &mut Input<'_>, version: u32) -> Result<(), Unusable> {
        let before = rest.0.len();
        let ctime = (rest.number()?, rest.number()?);
        let mtime = (rest.number()?, rest.number()?);
        let [_dev, ino, mode, uid, gid, size] = rest.numbers()?;
        let id = rest.bytes(self.hash.bytes())?;
        let low = u32::from(u16::from_be_bytes(rest.array()?));
        let high = if low & Flags::EXTENDED != 0 {
            if version < 3 {
                return Err(Unusable::Damaged("an entry has flags of a later version"));
            }
            u32::from(u16::from_be_bytes(rest.array()?))
        } else {
            0
        };
        let flags = Flags(low | high << 16);
        let at = self.bytes.len();
        match version {
            4 => self.compressed_path(rest)?,
            _ => self.padded_path(rest, before)?,
        }
        let path = self.bytes.len() - at;
        if mode == 0o040_000 {
            return Err(Unusable::Extension(*b"sdir"));
        }
        self.sparse |= flags.any(Flags::SKIP_WORKTREE);
        self.has_room(id.len())?;
        self.bytes.extend_from_slice(id);
        let number = |value: usize| u32::try_from(value).map_err(|_| Unusable::TooLarge);
        let look = Look { ctime, mtime, ino, uid, gid, size };
        let slim = Slim { at: number(at)?, path: number(path)?, mode, look, flags };
        if let Some(last) = self.entries.last() {
            let key = |slim: &Slim| (self.path(slim), slim.flags.0 & Flags::STAGE);
            if path > 0 && key(last) >= key(&slim) {
                return Err(Unusable::Damaged("it is not sorted"));
            }
        }
        self.entries.push(slim);
        Ok(())
    }

    /// Ends with a zero, and with more until the entry has a multiple of eight bytes.
    fn padded_path(&mut self, rest: &mut Input<'_>, before: usize) -> Result<(), Unusable> {
        let path = rest.until_zero()?;
        self.has_room(path.len())?;
        self.bytes.extend_from_slice(path);
        let taken = before - rest.0.len();
        rest.bytes(taken.next_multiple_of(8) - taken)?;
        Ok(())
    }

    /// How many bytes of the path before are not its beginning, and what follows instead.
    fn compressed_path(&mut self, rest: &mut Input<'_>) -> Result<(), Unusable> {
        let cut = rest.offset()?;
        let (start, length) = match self.entries.last() {
            Some(last) => (last.at as usize, last.path as usize),
            None => (0, 0),
        };
        let keep = length.checked_sub(cut).ok_or(Unusable::Damaged("a path begins before the last"))?;
        let end = rest.until_zero()?;
        self.has_room(keep + end.len())?;
        self.bytes.extend_from_within(start..start + keep);
        self.bytes.extend_from_slice(end);
        Ok(())
    }

    /// Asked before paths and ids grow, so that their places always fit into 32 bits.
    fn has_room(&self, more: usize) -> Result<(), Unusable> {
        if self.bytes.len().saturating_add(more) > self.most { Err(Unusable::TooLarge) } else { Ok(()) }
    }

    fn path(&self, slim: &Slim) -> &[u8] {
        &self.bytes[slim.at as usize..(slim.at + slim.path) as usize]
    }

    fn full(&self, slim: &Slim) -> IndexEntry<'_> {
        let end = (slim.at + slim.path) as usize;
        let id = ObjectId::from_bytes(&self.bytes[end..end + self.hash.bytes()]);
        IndexEntry {
            path: self.path(slim),
            id: id.expect("the length is that of the hash"),
            mode: slim.mode,
            look: slim.look,
            flags: slim.flags,
        }
    }
}

/// How many bytes the paths and ids of an index of so many bytes may take.
fn most(size: usize) -> usize {
    size.saturating_mul(GROWTH).clamp(ALWAYS, 1 << 30)
}

impl Look {
    /// `None` for times that an index cannot have.
    #[expect(clippy::cast_possible_truncation, reason = "git keeps the lower half of these numbers")]
    fn of(meta: &Meta) -> Option<Self> {
        let time = |nanoseconds: i64| {
            let second = u32::try_from(nanoseconds.div_euclid(1_000_000_000)).ok()?;
            Some((second, u32::try_from(nanoseconds.rem_euclid(1_000_000_000)).ok()?))
        };
        Some(Self {
            ctime: time(meta.ctime_ns)?,
            mtime: time(meta.mtime_ns)?,
            ino: meta.ino as u32,
            uid: meta.uid,
            gid: meta.gid,
            size: u32::try_from(meta.size).ok()?,
        })
    }
}

/// One that git was told not to compute (`index.skipHash`) is all zeros, and vouches for nothing.
fn verify(content: &[u8], checksum: &[u8], hash: HashKind) -> Result<(), Unusable> {
    let mut hasher = Hasher::checksum(hash);
    hasher.update(content);
    match hasher.finish() {
        Ok(found) if found.as_bytes() == checksum => Ok(()),
        _ => Err(Unusable::Damaged("its checksum is wrong")),
    }
}

/// Those with a capital letter may be passed over, by git's own rule; some of them say that entries are not to be trusted.
fn extensions(mut rest: Input<'_>) -> Result<(), Unusable> {
    while !rest.0.is_empty() {
        let name: [u8; 4] = rest.array()?;
        let length = rest.number()?;
        rest.bytes(usize::try_from(length).map_err(|_| Unusable::Damaged("an extension is too long"))?)?;
        if !name[0].is_ascii_uppercase() || name == *b"FSMN" {
            return Err(Unusable::Extension(name));
        }
    }
    Ok(())
}

/// What is left to be parsed.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Unusable> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(Unusable::Damaged("it is cut off"))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unusable> {
        self.bytes(N).map(|bytes| *bytes.first_chunk().expect("that many were taken"))
    }

    fn number(&mut self) -> Result<u32, Unusable> {
        self.array().map(u32::from_be_bytes)
    }

    fn numbers<const N: usize>(&mut self) -> Result<[u32; N], Unusable> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Ok(numbers)
    }

    fn until_zero(&mut self) -> Result<&'a [u8], Unusable> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(Unusable::Damaged("a path has no end"))?;
        let bytes = self.bytes(end)?;
        self.bytes(1)?;
        Ok(bytes)
    }

    /// Seven bits at a time, the highest first, each but the last with its top bit set and counting from one.
    fn offset(&mut self) -> Result<usize, Unusable> {
        let mut value = 0_usize;
        for place in 0..5 {
            let [byte] = self.array()?;
            value = value << 7 | usize::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            if place < 4 {
                value += 1;
            }
        }
        Err(Unusable::Damaged("a number is too long"))
    }
}

#[cfg(test)]
mod tests;
