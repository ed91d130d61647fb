//! Taking an entry of one pack over into another.

use std::sync::Arc;

use super::{BaseCache, EntryError, Pack, PackError, PackWriter, Place};
use crate::id::ObjectId;
use crate::object::{Object, ObjectKind, ReadError, hash};

/// Why an entry could not be taken over.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Pack(#[from] PackError),
    #[error("cannot write a pack")]
    Write(#[source] std::io::Error),
}

impl Pack {
    /// Kind and size of the object at a place.
    pub fn described(&self, place: &Place) -> Result<(ObjectKind, u64), ReadError> {
        self.header(place.offset).map_err(|error| named(place.id, error))
    }

    /// Whether the entry at a place is no delta.
    pub fn is_whole(&self, place: &Place) -> Result<bool, ReadError> {
        self.stands_alone(place.offset).map_err(|error| named(place.id, error))
    }

    /// The object at a place, which is what its id says.
    pub fn checked(&self, place: &Place, cache: &BaseCache) -> Result<Arc<Object>, ReadError> {
        let object = self.rebuilt(place.offset, cache).map_err(|error| named(place.id, error))?;
        if hash(place.id.kind(), object.kind, &object.data) != Ok(place.id) {
            return Err(damaged(place.id, "its content is that of another"));
        }
        Ok(object)
    }
}

impl PackWriter {
    /// Adds the object at a place of another pack: as it stands there, or rebuilt if it is a delta.
    pub fn copy(&self, pack: &Pack, place: &Place, cache: &BaseCache) -> Result<(), CopyError> {
        let id = place.id;
        if pack.is_whole(place)? {
            // What is copied as it is must be as it was: a flipped bit must not get a new checksum.
            if pack.crc(place)? != place.crc {
                return Err(damaged(id, "its checksum does not fit").into());
            }
            return self.add_raw(pack, place).map_err(CopyError::Write);
        }
        let object = pack.checked(place, cache)?;
        self.add(&id, object.kind, &object.data).map_err(CopyError::Write)
    }
}

fn named(id: ObjectId, error: EntryError) -> ReadError {
    match error {
        EntryError::Io(source) => ReadError::Io { id, source },
        EntryError::Damaged(what) => ReadError::Damaged { id, what },
        EntryError::TooLarge(size) => ReadError::TooLarge { id, size },
    }
}

fn damaged(id: ObjectId, what: &str) -> ReadError {
    ReadError::Damaged { id, what: what.to_owned() }
}
