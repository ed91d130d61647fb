//! What the files of a directory looked like when they were last read, so that they need not be read again.
//!
//! An entry is *clean* when everything `statx` says is what it was **and** the entry was settled: its change time lay before
//! the walk that read it began. The walk waits for the clock to pass everything that happened before it was asked
//! for ([`Moment::passed`]), so a file that changes once more, even within the same tick and with the same size, gets a
//! change time that no settled entry has. Everything else is read again. The modification time, which a program can set
//! at will, decides nothing alone.
//!
//! That the content of a clean file is still in the store must be known too. Looking that up for every file would take longer
//! than anything else, so each entry says whether its content was in a pack, and the cache which packs there were. Packs are
//! never changed: as long as none of them is gone, everything that was in one is there. After a `gc` each is looked up
//! once more. In the same way a directory without directories in it, of which every file is clean, is what it was written
//! as ([`Whole`]), and is not put together again. Whoever changes how a directory is written changes the version of the cache.
//!
//! The file is made anew by each walk, directory by directory as they come, and never held in memory. It can be
//! rebuilt: one that is damaged, of another version, or of another directory is taken for none.
//!
//! [`Moment::passed`]: crate::source::Moment::passed

mod format;
mod read;
mod write;

pub use read::{CachedDirectory, StatCache};
pub(crate) use write::Block;
pub use write::Writer;

use sha2::Digest as _;

use crate::dir::{Kind, Meta};
use crate::id::ObjectId;
use crate::state::{Attributes, Directory};

/// Which directory a cache is of. One at the same path that is another is not the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    pub dev: (u32, u32),
    pub ino: u64,
}

impl Subject {
    pub const fn new(root: &Meta) -> Self {
        Self { dev: root.dev, ino: root.ino }
    }
}

/// A pack of a store. A pack is named by what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackName([u8; 16]);

impl PackName {
    pub fn new(name: &[u8]) -> Self {
        Self(first_bytes(&sha2::Sha256::digest(name)))
    }
}

/// The place of a directory, made from the names that lead to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 16]);

impl Key {
    pub const ROOT: Self = Self([0; 16]);

    /// The key of a directory in this one.
    #[must_use]
    pub fn below(self, name: &[u8]) -> Self {
        let mut hasher = sha2::Sha256::new();
        hasher.update(self.0);
        hasher.update(name);
        Self(first_bytes(&hasher.finalize()))
    }
}

impl Key {
    /// The key of a further piece of a large directory. No directory has it: a name has no slash.
    fn piece(self, number: u32) -> Self {
        if number == 0 { self } else { self.below(&[b"/", &number.to_le_bytes()[..]].concat()) }
    }
}

/// What is remembered of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    pub look: Look,
    /// Whether it was settled when it was read.
    pub settled: Settled,
    /// Its content and attributes; `None` for one that is known by its looks only.
    pub content: Option<(ObjectId, Attributes)>,
    /// Whether the content was in one of the packs that the cache names.
    pub in_store: InStore,
}

/// Whether something was in one of the packs that a cache names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InStore {
    Yes,
    Perhaps,
}

/// The trees that a directory was written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    pub directory: Directory,
    /// Whether all that they are made of was in one of the packs that the cache names, but for the content of the files.
    pub in_store: InStore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    Yes,
    /// It may have changed since without showing it.
    No,
}

/// All that `statx` says of a file and that a change of it would move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub kind: Kind,
    pub mode: u16,
    pub size: u64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
    pub ino: u64,
    pub dev: (u32, u32),
}

impl From<&Meta> for Look {
    fn from(meta: &Meta) -> Self {
        let Meta { kind, mode, size, mtime_ns, ctime_ns, ino, dev, .. } = *meta;
        Self { kind, mode, size, mtime_ns, ctime_ns, ino, dev }
    }
}

impl Cached {
    /// Whether the file is still what it was.
    pub fn is_clean(&self, meta: &Meta) -> bool {
        self.settled == Settled::Yes && self.look == Look::from(meta)
    }
}

fn first_bytes(hash: &[u8]) -> [u8; 16] {
    *hash.first_chunk().expect("a SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests;
