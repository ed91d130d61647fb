//! Objects in a map: what the tests of other modules read from and write to instead of a store.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};

use super::{Object, ObjectKind, ReadError, ReadObjects, WriteError, WriteObjects, hash};
use crate::id::{HashKind, ObjectId};

/// A map that is read and written as a store is. It is for tests: it keeps everything in memory for ever.
#[derive(Debug, Default)]
pub struct Memory {
    hash: HashKind,
    objects: Mutex<BTreeMap<ObjectId, Object>>,
}

impl Memory {
    pub fn new(hash: HashKind) -> Self {
        Self { hash, objects: Mutex::default() }
    }

    /// The ids of everything in it.
    pub fn ids(&self) -> Vec<ObjectId> {
        self.with(|objects| objects.keys().copied().collect())
    }

    /// Takes an object away, as a store that lost it.
    pub fn remove(&self, id: &ObjectId) -> Option<Object> {
        self.with(|objects| objects.remove(id))
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<ObjectId, Object>) -> T) -> T {
        work(&mut self.objects.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ReadObjects for Memory {
    fn read(&self, id: &ObjectId) -> Result<Object, ReadError> {
        self.with(|objects| objects.get(id).cloned()).ok_or(ReadError::Missing(*id))
    }

    fn stream(&self, id: &ObjectId, to: &mut dyn Write) -> Result<u64, ReadError> {
        let data = self.read_kind(id, ObjectKind::Blob)?;
        to.write_all(&data).map_err(|source| ReadError::Io { id: *id, source })?;
        Ok(data.len() as u64)
    }

    fn header(&self, id: &ObjectId) -> Result<(ObjectKind, u64), ReadError> {
        let found =
            self.with(|objects| objects.get(id).map(|object| (object.kind, object.data.len() as u64)));
        found.ok_or(ReadError::Missing(*id))
    }

    fn contains(&self, id: &ObjectId) -> bool {
        self.with(|objects| objects.contains_key(id))
    }

    fn keeps(&self, id: &ObjectId) -> bool {
        self.contains(id)
    }
}

impl WriteObjects for Memory {
    fn hash_kind(&self) -> HashKind {
        self.hash
    }

    fn write(&self, kind: ObjectKind, data: &[u8]) -> Result<ObjectId, WriteError> {
        let id = hash(self.hash, kind, data)?;
        self.with(|objects| {
            objects.entry(id).or_insert_with(|| Object { kind, data: data.to_vec() });
        });
        Ok(id)
    }

    fn write_blob(&self, size: u64, content: &mut dyn Read) -> Result<ObjectId, WriteError> {
        let mut data = Vec::new();
        content.take(size.saturating_add(1)).read_to_end(&mut data).map_err(WriteError::Content)?;
        if data.len() as u64 != size {
            return Err(WriteError::Torn);
        }
        self.write(ObjectKind::Blob, &data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_as_a_store_does() {
        let memory = Memory::new(HashKind::Sha256);
        let id = memory.write_blob(5, &mut &b"hello"[..]).unwrap();
        assert_eq!(memory.write(ObjectKind::Blob, b"hello").unwrap(), id);
        assert_eq!(memory.ids(), [id]);
        assert_eq!(memory.header(&id).unwrap(), (ObjectKind::Blob, 5));
        let mut out = Vec::new();
        assert_eq!(memory.stream(&id, &mut out).unwrap(), 5);
        assert_eq!(out, b"hello");
        for size in [4, 6] {
            assert!(matches!(memory.write_blob(size, &mut &b"hello"[..]), Err(WriteError::Torn)));
        }
        assert!(matches!(memory.read_kind(&id, ObjectKind::Tree), Err(ReadError::Kind { .. })));
        memory.remove(&id);
        assert!(!memory.contains(&id));
        assert!(matches!(memory.read(&id), Err(ReadError::Missing(_))));
    }
}
