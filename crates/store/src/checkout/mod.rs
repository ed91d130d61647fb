//! Writes exactly a state into an empty directory.
//!
//! Everything is made by handle, under names that do not exist yet and are never followed: directories first, then
//! files, then symlinks, and the modes and times of directories at last. So nothing that a state says can lead outside,
//! whoever else writes to the directory meanwhile. A name that stands for `.git` somewhere makes a state refused.
//!
//! What could not be written as it is said in [`CheckoutOutcome::skipped`]. After an error, or when told to stop, what was
//! written is taken away again, as far as it still is what was written. Ownership is not part of a state.

mod make;
mod undo;
mod way;
mod work;

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

pub use make::{Lost, Times};
pub(crate) use make::{MakeError, Maker};
pub(crate) use undo::take_away;
pub(crate) use way::{Near, Way};

use crate::dir::{names, reopen};
use crate::object::{ReadError, ReadObjects};
use crate::path::RelPath;
use crate::state::{Limits, State, StateError};

/// How to write.
pub struct CheckoutOptions<'a> {
    pub times: Times,
    pub limits: Limits,
    /// How many threads write.
    pub workers: usize,
    /// Called after every file, from several threads.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Asked before every entry.
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl std::fmt::Debug for CheckoutOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { times, limits, workers, .. } = self;
        f.debug_struct("Options")
            .field("times", times)
            .field("limits", limits)
            .field("workers", workers)
            .finish_non_exhaustive()
    }
}

impl Default for CheckoutOptions<'_> {
    fn default() -> Self {
        Self {
            times: Times::Recorded,
            limits: Limits { entries: 5_000_000, ..Limits::default() },
            workers: 2,
            progress: &|_| {},
            cancelled: &|| false,
        }
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub files: u64,
    pub bytes: u64,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckoutOutcome {
    pub files: u64,
    pub directories: u64,
    pub symlinks: u64,
    pub bytes: u64,
    /// What is not there as the state has it, sorted by path.
    pub skipped: Vec<CheckoutSkipped>,
}

/// An entry that was not written, or not with all it has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckoutSkipped {
    pub path: RelPath,
    pub why: CheckoutSkipReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckoutSkipReason {
    /// Written, but without something.
    Without(Lost),
    /// Another repository, of which only the commit is known: an empty directory stands for it.
    Repository,
    /// Something of this name is there already: the file system takes two names for one, or somebody else writes.
    NameTaken,
    /// Its content is not in the store: it was recorded by its looks only.
    NotStored,
}

impl CheckoutSkipReason {
    pub const ALL: [Self; 5] = [
        Self::Without(Lost::SpecialBits),
        Self::Without(Lost::Attributes),
        Self::Repository,
        Self::NameTaken,
        Self::NotStored,
    ];

    /// A stable word for scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Without(Lost::SpecialBits) => "special-bits",
            Self::Without(Lost::Attributes) => "attributes",
            Self::Repository => "repository",
            Self::NameTaken => "name-taken",
            Self::NotStored => "not-stored",
        }
    }
}

impl std::fmt::Display for CheckoutSkipReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Without(Lost::SpecialBits) => "was written without its special permission bits",
            Self::Without(Lost::Attributes) => "was written without some of its attributes",
            Self::Repository => "is another repository, of which only the commit is known",
            Self::NameTaken => "has a name that is taken there",
            Self::NotStored => "has no content in the store",
        })
    }
}

/// Why a state could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    #[error("the directory is not empty: `{}` is in it", .0.display_escaped())]
    NotEmpty(RelPath),
    #[error("cannot write `{}`", path.display_escaped())]
    Write { path: RelPath, source: io::Error },
    #[error("cannot read `{}`", path.display_escaped())]
    Look { path: RelPath, source: io::Error },
    #[error("cannot read what `{}` shall hold", path.display_escaped())]
    Read { path: RelPath, source: ReadError },
    #[error("the state has `{}`, which stands for `.git` on some system", .0.display_escaped())]
    Git(RelPath),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("it was stopped")]
    Cancelled,
}

/// Writes `state` into the empty directory `target`.
pub fn checkout(
    objects: &dyn ReadObjects,
    state: &State,
    target: BorrowedFd<'_>,
    options: &CheckoutOptions<'_>,
) -> Result<CheckoutOutcome, CheckoutError> {
    must_be_empty(target)?;
    let done = work::run(objects, state, target, options);
    if done.is_err() {
        // What cannot be taken away again stays; the error that follows is the one that matters.
        let _left = take_away(objects, state, target);
    }
    done
}

pub(crate) fn must_be_empty(target: BorrowedFd<'_>) -> Result<(), CheckoutError> {
    let root = RelPath::root();
    let found = reopen(target).and_then(|again| names(again.as_fd()));
    let found = found.map_err(|errno| write_error(&root, errno))?;
    found
        .first()
        .map_or(Ok(()), |first| Err(CheckoutError::NotEmpty(root.join(&first.bytes).unwrap_or(root))))
}

pub(crate) fn write_error(path: &RelPath, errno: rustix::io::Errno) -> CheckoutError {
    CheckoutError::Write { path: path.clone(), source: errno.into() }
}

/// What is there could not be looked at.
pub(crate) fn read_error(path: &RelPath, errno: rustix::io::Errno) -> CheckoutError {
    CheckoutError::Look { path: path.clone(), source: errno.into() }
}

pub(crate) fn make_error(path: &RelPath, error: MakeError) -> CheckoutError {
    match error {
        MakeError::Read(source) => CheckoutError::Read { path: path.clone(), source },
        MakeError::Io(errno) => write_error(path, errno),
    }
}
