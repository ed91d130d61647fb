//! What reading a layer yields.

use std::fmt;

use super::attribute::ForeignReason;
pub use crate::change::{ChangeKind, EntryType};
use crate::dir::Kind;
use crate::path::RelPath;

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerOutcome {
    /// Sorted by path.
    pub changes: Vec<Change>,
    /// Entries that could not be judged, or not completely; sorted by path.
    pub skipped: Vec<LayerSkipped>,
    /// Attributes that the overlay did not leave there or that must not be obeyed; sorted by path.
    pub foreign: Vec<Foreign>,
    /// Whether the top-level `.git`, or anything below it, changed.
    pub git: GitState,
    /// The limit was reached; there is more.
    pub truncated: bool,
}

/// One path that differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    pub path: RelPath,
    pub kind: ChangeKind,
    /// What it is now, or was before it was removed.
    pub entry: EntryType,
    /// How many files, symlinks and special files were below a directory that is gone.
    pub below: u64,
}

/// An entry that was not judged, or not completely.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LayerSkipped {
    pub path: RelPath,
    pub why: LayerSkipReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LayerSkipReason {
    Fifo,
    Socket,
    Device,
    /// Something is mounted there in the layer.
    Mount,
    /// It may not be read in the layer.
    Unreadable,
    /// It may not be read in a lower layer, so there is nothing to compare with.
    LowerUnreadable,
    /// Something is mounted there in a lower layer, which hides what the overlay saw.
    LowerMount,
    /// It was exchanged between two looks.
    Moved,
}

/// An attribute of the overlay's name space that is not obeyed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Foreign {
    pub path: RelPath,
    /// The full name, escaped for a terminal.
    pub attribute: String,
    pub why: ForeignReason,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GitState {
    #[default]
    Untouched,
    Changed,
}

impl From<Kind> for EntryType {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::File => Self::File,
            Kind::Directory => Self::Directory,
            Kind::Symlink => Self::Symlink,
            Kind::Fifo | Kind::Socket | Kind::Character | Kind::Block => Self::Special,
        }
    }
}

impl fmt::Display for LayerSkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "is a named pipe",
            Self::Socket => "is a socket",
            Self::Device => "is a device",
            Self::Mount => "is a mount point in the layer",
            Self::Unreadable => "may not be read in the layer",
            Self::LowerUnreadable => "may not be read in the source",
            Self::LowerMount => "is a mount point in the source",
            Self::Moved => "was exchanged while it was read",
        })
    }
}
