//! Writing objects, and noticing whether all of them had been committed before.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Store;
use crate::id::{HashKind, ObjectId};
use crate::object::{ObjectKind, WriteError, WriteObjects};
use crate::statcache::InStore;

/// Passes everything on to a store.
pub(super) struct Noticing<'a> {
    store: Store<'a>,
    something_new: AtomicBool,
}

impl<'a> Noticing<'a> {
    pub(super) const fn new(store: Store<'a>) -> Self {
        Self { store, something_new: AtomicBool::new(false) }
    }

    /// Whether all that was written is in the store, whatever becomes of what is being written.
    pub(super) fn in_store(&self) -> InStore {
        if self.something_new.load(Ordering::Relaxed) { InStore::Perhaps } else { InStore::Yes }
    }

    fn notice(&self, id: ObjectId) -> ObjectId {
        if !self.store.objects.keeps(&id) {
            self.something_new.store(true, Ordering::Relaxed);
        }
        id
    }
}

impl WriteObjects for Noticing<'_> {
    fn hash_kind(&self) -> HashKind {
        self.store.sink.hash_kind()
    }

    fn write(&self, kind: ObjectKind, data: &[u8]) -> Result<ObjectId, WriteError> {
        self.store.sink.write(kind, data).map(|id| self.notice(id))
    }

    fn write_blob(&self, size: u64, content: &mut dyn Read) -> Result<ObjectId, WriteError> {
        self.store.sink.write_blob(size, content).map(|id| self.notice(id))
    }
}
