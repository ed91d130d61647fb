//! Entries of trees and the differences between two of them.

use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;
use serde::Serialize;

use super::error::RepositoryError;

/// What an entry of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    File,
    Executable,
    Symlink,
    /// A commit of another repository.
    Gitlink,
}

impl Mode {
    pub const fn octal(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Gitlink => "160000",
        }
    }

    /// From the bits that an index has.
    pub const fn of_bits(bits: u32) -> Option<Self> {
        Some(match bits {
            0o100_644 | 0o100_664 => Self::File,
            0o100_755 => Self::Executable,
            0o120_000 => Self::Symlink,
            0o160_000 => Self::Gitlink,
            _ => return None,
        })
    }

    /// The bits that an index has.
    pub const fn bits(self) -> u32 {
        match self {
            Self::File => 0o100_644,
            Self::Executable => 0o100_755,
            Self::Symlink => 0o120_000,
            Self::Gitlink => 0o160_000,
        }
    }

    pub const fn is_regular(self) -> bool {
        matches!(self, Self::File | Self::Executable)
    }
}

/// One side of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    pub mode: Mode,
    pub id: ObjectId,
}

/// A path that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: RelPath,
    pub old: Option<Entry>,
    pub new: Option<Entry>,
}

/// A path that came out of a tree; one that leaves it is refused by name.
pub fn foreign(bytes: &[u8]) -> Result<RelPath, RepositoryError> {
    RelPath::new(bytes)
        .map_err(|source| RepositoryError::Path { path: sandtable_store::path::escape(bytes), source })
}
