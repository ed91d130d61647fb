//! Git's objects: how they are named, and the two seams by which everything else reads and writes them.
//!
//! [`ReadObjects`] and [`WriteObjects`] are all that snapshot, checkout and diff know of storage; the packs of a
//! store stand behind them, and in tests a map in memory.

pub mod commit;
mod hash;
mod memory;
pub mod name;
pub mod tree;

use std::fmt;
use std::io::{self, Read, Write};

pub(crate) use hash::hash_again;
pub use hash::{Collision, Hasher, hash};
pub use memory::Memory;
pub use tree::{EntryMode, Tree, TreeEntry, TreeError};

use crate::id::{HashKind, ObjectId};

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl ObjectKind {
    /// As git writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A whole object in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub kind: ObjectKind,
    pub data: Vec<u8>,
}

/// Why an object could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("there is no object `{0}`")]
    Missing(ObjectId),
    #[error("object `{id}` is a {found}, not a {wanted}")]
    Kind { id: ObjectId, found: ObjectKind, wanted: ObjectKind },
    /// Its bytes, or what encloses them, are not what was written.
    #[error("object `{id}` is damaged: {what}")]
    Damaged { id: ObjectId, what: String },
    #[error("object `{id}` is larger than can be read at once ({size} bytes)")]
    TooLarge { id: ObjectId, size: u64 },
    #[error("cannot read object `{id}`")]
    Io { id: ObjectId, source: io::Error },
}

/// Why an object could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Collision(#[from] Collision),
    /// What was read had another length than was announced: someone is writing to it.
    #[error("the content changed while it was read")]
    Torn,
    #[error("cannot read the content")]
    Content(#[source] io::Error),
    #[error("the store has no room for it: {have} of {quota} bytes are used")]
    Quota { have: u64, quota: u64 },
    #[error("the disk has no room for it: {free} bytes are free, and {kept} are left free")]
    NoSpace { free: u64, kept: u64 },
    #[error("cannot write to the store")]
    Io(#[source] io::Error),
}

/// Where objects come from. Every byte handed out was hashed and compared with the id.
pub trait ReadObjects: Sync {
    /// A whole object; [`ReadError::TooLarge`] for a blob that must be streamed.
    fn read(&self, id: &ObjectId) -> Result<Object, ReadError>;

    /// A blob of any size, piece by piece. After an error, what was written must be thrown away.
    fn stream(&self, id: &ObjectId, to: &mut dyn Write) -> Result<u64, ReadError>;

    /// Kind and size, without the content.
    fn header(&self, id: &ObjectId) -> Result<(ObjectKind, u64), ReadError>;

    fn contains(&self, id: &ObjectId) -> bool;

    /// Whether the object is in what was committed, and not only in what is being written. One who cannot tell says no.
    fn keeps(&self, _id: &ObjectId) -> bool {
        false
    }

    /// A blob that goes back to where files come from. Like every other it is hashed and compared with its id; that
    /// nobody made it to collide was seen to when it was recorded, and need not be looked for again.
    fn recorded(&self, id: &ObjectId) -> Result<Vec<u8>, ReadError> {
        self.read_kind(id, ObjectKind::Blob)
    }

    /// An object that must be of one kind.
    fn read_kind(&self, id: &ObjectId, wanted: ObjectKind) -> Result<Vec<u8>, ReadError> {
        of_kind(id, self.read(id)?, wanted)
    }
}

/// The bytes of an object that must be of one kind.
pub(crate) fn of_kind(id: &ObjectId, object: Object, wanted: ObjectKind) -> Result<Vec<u8>, ReadError> {
    if object.kind != wanted {
        return Err(ReadError::Kind { id: *id, found: object.kind, wanted });
    }
    Ok(object.data)
}

/// Tells how large an object is.
pub trait SizeOf: Sync + fmt::Debug {
    fn size_of(&self, id: &ObjectId) -> Option<u64>;

    /// Whether an object can be brought in together with many others. One who cannot tell says no.
    fn has_packed(&self, _id: &ObjectId) -> bool {
        false
    }

    /// The size of an object that can be brought in together with many others: one that lies in a file of its own is
    /// unpacked, hashed and packed for that, and to read the user's file instead is less work.
    fn packed_size_of(&self, id: &ObjectId) -> Option<u64> {
        self.size_of(id)
    }
}

/// Where objects go. Writing what is there already costs no space.
pub trait WriteObjects: Sync {
    fn hash_kind(&self) -> HashKind;

    fn write(&self, kind: ObjectKind, data: &[u8]) -> Result<ObjectId, WriteError>;

    /// An object whose id was found to be `id`.
    fn write_as(&self, _id: &ObjectId, kind: ObjectKind, data: &[u8]) -> Result<(), WriteError> {
        self.write(kind, data).map(|_| ())
    }

    /// A blob of exactly `size` bytes, without holding it in memory.
    fn write_blob(&self, size: u64, content: &mut dyn Read) -> Result<ObjectId, WriteError>;
}
