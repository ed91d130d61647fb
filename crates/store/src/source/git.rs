//! The few files that tell whether the repository itself moved.
//!
//! A git directory holds thousands of objects that are only ever added. What a branch switch, commit, fetch
//! or staging changes is among these names; git replaces them by rename, so the directory of the branches
//! shows a moved branch by its own change time.

use std::os::fd::{AsFd as _, BorrowedFd};

use super::stamp::Stamp;
use crate::dir::{Meta, open_dir, stat_at};

/// Directory below the git directory (or itself) and name there.
const FILES: [(Option<&[u8]>, &[u8]); 5] = [
    (None, b"HEAD"),
    (None, b"index"),
    (None, b"packed-refs"),
    (Some(b"refs"), b"heads"),
    (Some(b"logs"), b"HEAD"),
];

/// What these files looked like; `None` for one that is not there or cannot be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GitState([Option<Look>; FILES.len()]);

/// What tells one version of such a file from the next. Not its change time: a sandbox that is made gives a large one
/// another link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    ino: u64,
    size: u64,
    mtime_ns: i64,
}

impl Look {
    const fn of(meta: &Meta) -> Self {
        Self { ino: meta.ino, size: meta.size, mtime_ns: meta.mtime_ns }
    }
}

impl GitState {
    /// Looks at the git directory `name` in `parent`.
    pub(super) fn at(parent: BorrowedFd<'_>, name: &[u8]) -> Self {
        match open_dir(parent, name) {
            Ok(git) => Self::of(git.as_fd()),
            Err(_) => Self([None; FILES.len()]),
        }
    }

    /// Looks at a git directory.
    pub(crate) fn of(git: BorrowedFd<'_>) -> Self {
        Self(FILES.map(|(folder, name)| {
            let found = match folder {
                None => stat_at(git, name),
                Some(folder) => stat_at(open_dir(git, folder).ok()?.as_fd(), name),
            };
            found.ok().as_ref().map(Look::of)
        }))
    }

    pub(super) fn moved_since(&self, moment: Stamp) -> bool {
        self.0.iter().flatten().any(|look| moment.may_precede(look.mtime_ns))
    }
}
