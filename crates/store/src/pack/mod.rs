//! Packs: many objects in one file, and the index by which they are found. The formats are git's.
//!
//! What is written here is written by many threads at once, each compressing its own objects, and holds deltas only
//! where packs are made compact. What is read may come from the user's repository: sizes it announces are checked before memory is
//! taken, deltas are bounded in depth and work, and nothing is mapped into memory, so that a file that
//! shrinks is an error and not a signal. An object is never believed here: whoever hands it on compares its hash.

mod copy;
mod deflate;
mod delta;
mod delta_write;
mod entry;
mod index;
mod index_write;
mod inflate;
mod input;
pub mod loose;
mod read;
mod spill;
mod verify;
mod write;

use std::io;
use std::path::{Path, PathBuf};

use crate::object::ObjectKind;

pub use copy::CopyError;
pub use delta_write::Base;
pub use index::{Index, Located};
pub use index_write::{IndexEntry, write_index};
pub use read::{BaseCache, Pack, Place};
pub use verify::{Fault, verify};
pub use write::{Delta, PackWriter, Sync, Written};

/// A blob above this is not read at once.
pub const BLOB_LIMIT: u64 = 64 << 20;
/// Nothing above this is held in memory: trees of a million entries fit, and so do the deltas git makes.
pub const OBJECT_LIMIT: u64 = 512 << 20;
/// How large an object of this kind may be to be read at once.
pub const fn limit(kind: ObjectKind) -> u64 {
    match kind {
        ObjectKind::Blob => BLOB_LIMIT,
        _ => OBJECT_LIMIT,
    }
}

/// Deltas on deltas; git itself makes 50, at most 4095.
const DEPTH_LIMIT: usize = 4096;

/// Why a pack or its index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("cannot use `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
}

impl PackError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.into() }
    }
}

/// Why an entry of a pack cannot be read.
#[derive(Debug)]
pub enum EntryError {
    Io(io::Error),
    Damaged(String),
    TooLarge(u64),
}

impl EntryError {
    fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }
}

impl From<io::Error> for EntryError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
