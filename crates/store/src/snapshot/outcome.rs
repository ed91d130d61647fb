//! What a snapshot yields besides the state.

use super::file::Given;
use crate::id::ObjectId;
use crate::path::RelPath;
use crate::state::{Skipped, State};

/// A state and how it came about.
#[derive(Clone, Debug)]
pub struct SnapshotOutcome {
    pub state: State,
    pub counts: Counts,
    /// What is not in the state; sorted by path. The list is bounded, [`Counts::skipped`] is not.
    pub skipped: Vec<Skipped>,
    pub changed: Changed,
    /// Ids taken from the git index, and of trees that git has too, whose objects are in no pack of the store yet; sorted.
    pub borrowed: Vec<ObjectId>,
    /// The rules of the repository about ignored files that are not in the tree.
    pub exclude: Vec<u8>,
}

/// How much there was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries that were looked at.
    pub entries: u64,
    /// Files whose bytes were read.
    pub files_read: u64,
    pub bytes_read: u64,
    /// Files whose id came from the stat cache or from git's index.
    pub files_known: u64,
    /// Ignored entries that were left out as asked; what lies below an ignored directory is not counted.
    pub ignored: u64,
    pub skipped: u64,
    /// The latest change time of any entry, in nanoseconds since 1970; what lies below an ignored directory has no part in it.
    pub newest_ns: i64,
}

impl Counts {
    /// Counts a file that was read, now or under another name.
    pub(crate) const fn add(&mut self, given: &Given) {
        if given.read == 0 && given.meta.size > 0 {
            self.files_known += 1;
        } else {
            self.files_read += 1;
        }
        self.bytes_read += given.read;
    }
}

/// What changed while it was read. Without any, the state is that of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    pub count: u64,
    /// The first of them.
    pub paths: Vec<RelPath>,
}
