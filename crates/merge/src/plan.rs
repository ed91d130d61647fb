//! A result that can be delivered, as data. [`planning`](super::planning) makes it.

use std::collections::BTreeSet;

use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;

use super::convert::Conversion;
use super::error::Error;
use super::file_step::FileStep;
use super::history::Commits;
use super::index::Index;
use super::scratch::Scratch;
use super::target::Target;
use super::tree::Change;
use super::whole::Whole;
use super::worktree::Worktree;

/// A result that can be delivered.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) scratch: Scratch,
    pub(super) target: Target,
    /// Base and snapshot, as far as they were asked for.
    pub(super) base: ObjectId,
    pub(super) theirs: ObjectId,
    /// The tree the target has now, and the one it shall have.
    pub(super) ours: ObjectId,
    pub(super) result: ObjectId,
    pub(super) concurrency: Concurrency,
    /// From `ours` to `result`.
    pub(super) delivery: Vec<Change>,
    /// What to do with files on disk.
    pub(super) files: Vec<FileStep>,
    pub(super) conversion: Conversion,
    /// The tree whose attributes say how files become blobs.
    pub(super) attributes: ObjectId,
    pub(super) index: Option<Index>,
    /// Paths that the user's sparse checkout does not show.
    pub(super) unshown: BTreeSet<RelPath>,
    /// Commits made inside that come along.
    pub(super) history: Option<Commits>,
    /// What a plain directory gets besides files.
    pub(super) whole: Whole,
}

/// Whether the target had moved since the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concurrency {
    FastForward,
    Merged,
}

impl Plan {
    pub(super) fn worktree(&self) -> Result<Worktree, Error> {
        Worktree::open(self.target.root().expect("preflight looked").as_path())
    }
}
