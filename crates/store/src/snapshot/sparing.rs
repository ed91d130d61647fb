//! Writing a state, but for the trees that the user's repository has in a pack.
//!
//! What git's index vouches for comes into the store with the user's packs. So do the trees that git made of it, and most
//! directories of a clean repository are written exactly as git wrote them: of these only the id is needed.

use std::io::Read;
use std::sync::{Mutex, PoisonError};

use super::{SizeOf, Store};
use crate::id::{HashKind, ObjectId};
use crate::object::{ObjectKind, WriteError, WriteObjects, hash};

/// Passes on to a store what has to be written.
pub(super) struct Sparing<'a> {
    store: Store<'a>,
    users: Option<&'a dyn SizeOf>,
    /// What only the user's repository has.
    borrowed: Mutex<Vec<ObjectId>>,
}

impl<'a> Sparing<'a> {
    pub(super) const fn new(store: Store<'a>, users: Option<&'a dyn SizeOf>) -> Self {
        Self { store, users, borrowed: Mutex::new(Vec::new()) }
    }

    pub(super) fn into_borrowed(self) -> Vec<ObjectId> {
        self.borrowed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriteObjects for Sparing<'_> {
    fn hash_kind(&self) -> HashKind {
        self.store.sink.hash_kind()
    }

    fn write(&self, kind: ObjectKind, data: &[u8]) -> Result<ObjectId, WriteError> {
        let (ObjectKind::Tree, Some(users)) = (kind, self.users) else {
            return self.store.sink.write(kind, data);
        };
        let id = hash(self.hash_kind(), kind, data)?;
        if self.store.objects.keeps(&id) {
            return Ok(id);
        }
        if users.has_packed(&id) {
            self.borrowed.lock().unwrap_or_else(PoisonError::into_inner).push(id);
            return Ok(id);
        }
        self.store.sink.write_as(&id, kind, data).map(|()| id)
    }

    fn write_blob(&self, size: u64, content: &mut dyn Read) -> Result<ObjectId, WriteError> {
        self.store.sink.write_blob(size, content)
    }
}
