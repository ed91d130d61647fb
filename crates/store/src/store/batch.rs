//! What is written for one snapshot: a pack that nobody sees until it is committed.

use std::io::{Read, Write};

use super::room::Budget;
use super::{Store, StoreError};
use crate::id::{HashKind, ObjectId};
use crate::lock::FileLock;
use crate::object::{Object, ObjectKind, ReadError, ReadObjects, WriteError, WriteObjects, hash};
use crate::pack::{BaseCache, EntryError, Pack, PackWriter, Place};

/// Objects on their way into the store. Dropping it leaves nothing behind.
#[derive(Debug)]
pub struct Batch<'s> {
    pub(super) store: &'s Store,
    pub(super) writer: PackWriter,
    budget: Budget,
    /// While it is held nothing is deleted, so what is there already need not be written again.
    pub(super) lock: FileLock,
}

impl<'s> Batch<'s> {
    pub(super) fn begin(store: &'s Store) -> Result<Self, StoreError> {
        let lock = store.share()?;
        // What was removed before the lock was taken must not be relied upon.
        store.objects.refresh()?;
        let budget = Budget::new(store.room()?);
        let writer = PackWriter::create(&store.temporary("pack"), store.hash)?;
        Ok(Self { store, writer, budget, lock })
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Number of objects that are new.
    pub fn objects(&self) -> usize {
        self.writer.objects()
    }

    /// The store that it will be committed to.
    pub fn store(&self) -> &'s Store {
        self.store
    }

    /// Adds an object of another pack.
    pub(crate) fn copy(&self, pack: &Pack, place: &Place, cache: &BaseCache) -> Result<(), StoreError> {
        if !self.is_there(&place.id) {
            self.budget.check(self.store, self.writer.bytes(), place.end.saturating_sub(place.offset))?;
            self.writer.copy(pack, place, cache)?;
        }
        Ok(())
    }

    fn is_there(&self, id: &ObjectId) -> bool {
        self.writer.contains(id) || self.store.objects.contains(id)
    }
}

impl WriteObjects for Batch<'_> {
    fn hash_kind(&self) -> HashKind {
        self.store.hash
    }

    fn write(&self, kind: ObjectKind, data: &[u8]) -> Result<ObjectId, WriteError> {
        let id = hash(self.store.hash, kind, data)?;
        self.write_as(&id, kind, data)?;
        Ok(id)
    }

    fn write_as(&self, id: &ObjectId, kind: ObjectKind, data: &[u8]) -> Result<(), WriteError> {
        if !self.is_there(id) {
            self.budget.check(self.store, self.writer.bytes(), 0)?;
            self.writer.add(id, kind, data).map_err(WriteError::Io)?;
        }
        Ok(())
    }

    fn write_blob(&self, size: u64, content: &mut dyn Read) -> Result<ObjectId, WriteError> {
        // What is large is refused before the disk is filled with it.
        let more = if size > 1 << 20 { size } else { 0 };
        self.budget.check(self.store, self.writer.bytes(), more)?;
        self.writer.add_blob(size, content, &|id| self.is_there(id))
    }
}

/// What was written can be read again, and so can all that is in the store.
impl ReadObjects for Batch<'_> {
    fn read(&self, id: &ObjectId) -> Result<Object, ReadError> {
        match self.writer.read(id) {
            Ok(Some(object)) => Ok(object),
            Ok(None) => self.store.objects.read(id),
            Err(EntryError::Io(source)) => Err(ReadError::Io { id: *id, source }),
            Err(EntryError::Damaged(what)) => Err(ReadError::Damaged { id: *id, what }),
            Err(EntryError::TooLarge(size)) => Err(ReadError::TooLarge { id: *id, size }),
        }
    }

    fn stream(&self, id: &ObjectId, to: &mut dyn Write) -> Result<u64, ReadError> {
        if !self.writer.contains(id) {
            return self.store.objects.stream(id, to);
        }
        let data = self.read_kind(id, ObjectKind::Blob)?;
        to.write_all(&data).map_err(|source| ReadError::Io { id: *id, source })?;
        Ok(data.len() as u64)
    }

    fn header(&self, id: &ObjectId) -> Result<(ObjectKind, u64), ReadError> {
        if !self.writer.contains(id) {
            return self.store.objects.header(id);
        }
        self.read(id).map(|object| (object.kind, object.data.len() as u64))
    }

    fn contains(&self, id: &ObjectId) -> bool {
        self.is_there(id)
    }

    fn keeps(&self, id: &ObjectId) -> bool {
        self.store.objects.has_packed(id)
    }
}
