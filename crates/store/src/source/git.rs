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
pub(super) struct GitState([Option<Meta>; FILES.len()]);

impl GitState {
    /// Looks at the git directory `name` in `parent`.
    pub(super) fn at(parent: BorrowedFd<'_>, name: &[u8]) -> Self {
        let Ok(git) = open_dir(parent, name) else { return Self([None; FILES.len()]) };
        Self(FILES.map(|(folder, name)| match folder {
            None => stat_at(git.as_fd(), name).ok(),
            Some(folder) => stat_at(open_dir(git.as_fd(), folder).ok()?.as_fd(), name).ok(),
        }))
    }

    pub(super) fn moved_since(&self, moment: Stamp) -> bool {
        self.0.iter().flatten().any(|meta| moment.may_precede(meta.ctime_ns))
    }
}
