//! Taking an entry of one pack over into another.

use super::{BaseCache, EntryError, Pack, PackError, PackWriter, Place};
use crate::object::{ReadError, hash};

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

impl PackWriter {
    /// Adds the object at a place of another pack: as it stands there, or rebuilt if it is a delta.
    pub fn copy(&self, pack: &Pack, place: &Place, cache: &BaseCache) -> Result<(), CopyError> {
        let id = place.id;
        let named = |error: EntryError| match error {
            EntryError::Io(source) => ReadError::Io { id, source },
            EntryError::Damaged(what) => ReadError::Damaged { id, what },
            EntryError::TooLarge(size) => ReadError::TooLarge { id, size },
        };
        let damaged = |what: &str| ReadError::Damaged { id, what: what.to_owned() };
        if pack.stands_alone(place.offset).map_err(named)? {
            // What is copied as it is must be as it was: a flipped bit must not get a new checksum.
            if pack.crc(place)? != place.crc {
                return Err(damaged("its checksum does not fit").into());
            }
            return self.add_raw(pack, place).map_err(CopyError::Write);
        }
        let object = pack.rebuilt(place.offset, cache).map_err(named)?;
        if hash(id.kind(), object.kind, &object.data) != Ok(id) {
            return Err(damaged("its content is that of another").into());
        }
        self.add(&id, object.kind, &object.data).map_err(CopyError::Write)
    }
}
