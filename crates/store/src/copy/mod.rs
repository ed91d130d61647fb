//! A whole copy of a directory of the user.
//!
//! For sources that no overlay can stand on. The copy shares blocks with the source where the file system can
//! (`FICLONE`), else the kernel copies (`copy_file_range`), else the bytes go through this process. Holes stay
//! holes. Modes, modification times, symlinks, names of one file and `user.*` attributes are kept, and the
//! owners too where the caller may give files away.
//!
//! The source is the user's, so mounts below it belong to it and are copied as well; but nothing is reached by
//! a joined path and no symlink is followed, since someone may be at work there. Sockets and devices are not
//! copied, and what may not be read cannot be: both are listed in [`CopyOutcome::skipped`].

mod content;
mod entry;
mod work;

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use crate::dir::Kind;
use crate::path::RelPath;
use crate::source::Stamp;

/// What to copy, whom to tell, when to stop. Called from several threads.
pub struct CopyOptions<'a> {
    /// Whether an entry, with everything below it, is left out.
    pub leave_out: &'a (dyn Fn(&RelPath, Kind) -> bool + Sync),
    /// Told after every file.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Asked before every file and now and then in a large one; `true` ends it with [`CopyError::Cancelled`].
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl fmt::Debug for CopyOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub files: u64,
    pub bytes: u64,
}

/// What was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOutcome {
    pub copied: Progress,
    /// Sorted by path.
    pub skipped: Vec<CopySkipped>,
    /// Whatever has an earlier change time in the copy was not touched after it was made.
    pub finished: Stamp,
}

/// An entry that is not in the copy, or not as it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CopySkipped {
    pub path: RelPath,
    pub why: &'static str,
}

/// Why there is no copy. What was made so far is left to the caller to remove.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("cannot read `{}` in the source", path.display_escaped())]
    Read { path: RelPath, source: io::Error },
    #[error("cannot write `{}` in the copy", path.display_escaped())]
    Write { path: RelPath, source: io::Error },
    #[error("the copying was cancelled")]
    Cancelled,
}

/// Copies everything in the directory `source` into the directory `target`, which must be empty and known to
/// nobody else.
pub fn copy(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    options: &CopyOptions<'_>,
) -> Result<CopyOutcome, CopyError> {
    let (copied, skipped) = work::run(source, target, options)?;
    Ok(CopyOutcome { copied, skipped, finished: Stamp::after_all() })
}

#[cfg(test)]
mod tests;
