//! What a sandbox changed, read from the upper directory of its overlay.
//!
//! An overlay mounted with `userxattr` leaves in its upper directory what was written, and marks for what
//! was removed: a character device `0:0` in place of a removed name (a *whiteout*), and the attribute
//! `user.overlay.opaque` on a directory that hides everything below it in the lower layers. A file that was
//! merely opened for writing is there too, as an unchanged copy. [`read`] holds all of that against the
//! lower layers and says what differs for someone who looks at the merged tree.
//!
//! The upper directory is foreign. Nothing in it is followed: a symlink is compared by its target text, a
//! pipe, socket or device is never opened, a mount is not entered. Attributes that would make an overlay
//! take content from another path (`redirect`, `metacopy`) are never obeyed, because the mounts made here
//! never write them; they are listed in [`LayerOutcome::foreign`].
//!
//! Ownership and times are not compared: a copy has new ones by nature.

mod attribute;
mod capture;
mod compare;
mod covers;
mod findings;
pub mod hold;
mod lower;
pub mod opaque;
mod outcome;
pub mod pins;
mod reader;
pub mod tree;
pub mod write;

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

pub use attribute::ForeignReason;
pub use capture::{CaptureOptions, Captured, Run, Watch, capture};
pub use covers::covers;
pub use lower::Lower;
pub use outcome::{
    Change, ChangeKind, EntryType, Foreign, GitState, LayerOutcome, LayerSkipReason, LayerSkipped,
};

use crate::dir::Moved;
use crate::path::RelPath;

/// How to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerOptions {
    /// What to do with the top-level `.git`.
    pub git: Git,
    /// After how many findings to stop; the outcome is then marked truncated.
    pub limit: usize,
}

/// What to do with entries of the top-level `.git`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Git {
    /// Say only that something changed there.
    Collapse,
    /// List them like any other.
    List,
}

impl Default for LayerOptions {
    fn default() -> Self {
        Self { git: Git::Collapse, limit: 1_000_000 }
    }
}

/// Why a layer could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    #[error("cannot open the layer")]
    Open(#[source] io::Error),
    #[error("cannot read `{}` in the layer", path.display_escaped())]
    Upper { path: RelPath, source: io::Error },
    #[error("cannot read `{}` below the layer", path.display_escaped())]
    Lower { path: RelPath, source: io::Error },
    #[error("the tree was changed while it was read")]
    Moved(#[from] Moved),
}

/// What the overlay of `upper` on `lower` shows that `lower` alone does not.
///
/// To be called while nothing has the layer mounted: a change during the walk is detected where it matters
/// for safety, but makes the outcome meaningless.
pub fn read(
    upper: BorrowedFd<'_>,
    lower: &Lower,
    options: &LayerOptions,
) -> Result<LayerOutcome, LayerError> {
    reader::Reader::new(upper, lower, *options)?.run()
}

/// The errors that concern one entry only and must not hide the others.
const fn is_unreadable(errno: Errno) -> bool {
    matches!(errno, Errno::ACCESS | Errno::PERM)
}
