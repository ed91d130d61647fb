//! The extra tree of a snapshot: everything of a state that is not git's own tree.

use super::{State, StateError};
use crate::id::ObjectId;
use crate::object::{EntryMode, ObjectKind, ReadObjects, Tree, TreeEntry, WriteError, WriteObjects};

/// What the blob `version` holds.
const VERSION: &[u8] = b"sandtable-extra 1\n";

impl State {
    /// Writes the extra tree.
    pub fn write_extra(&self, sink: &dyn WriteObjects) -> Result<ObjectId, WriteError> {
        let entry = |name: &str, mode, id| TreeEntry { mode, name: name.as_bytes().to_vec(), id };
        let mut entries = vec![
            entry("manifest", EntryMode::Tree, self.manifest),
            entry("times", EntryMode::Tree, self.times),
            entry("version", EntryMode::File, sink.write(ObjectKind::Blob, VERSION)?),
        ];
        entries.extend(self.layer.map(|layer| entry("layer", EntryMode::Tree, layer)));
        let tree = Tree::new(entries).expect("four names of our own, each once");
        sink.write(ObjectKind::Tree, &tree.encode())
    }

    /// The state of a snapshot that has these two trees. One of another version is refused.
    pub fn read(objects: &dyn ReadObjects, tree: ObjectId, extra: ObjectId) -> Result<Self, StateError> {
        let unfit = |what| StateError::Unfit { id: extra, what };
        let data = objects.read_kind(&extra, ObjectKind::Tree)?;
        let parsed =
            Tree::parse(extra.kind(), &data).map_err(|source| StateError::Tree { id: extra, source })?;
        let part = |name: &[u8]| parsed.get(name).map(|entry| entry.id);
        let version = part(b"version").ok_or_else(|| unfit("it names no version"))?;
        if objects.read_kind(&version, ObjectKind::Blob)? != VERSION {
            return Err(unfit("it is of a version that is not known here"));
        }
        Ok(Self {
            tree,
            manifest: part(b"manifest").ok_or_else(|| unfit("it has no manifest"))?,
            times: part(b"times").ok_or_else(|| unfit("it has no times"))?,
            layer: part(b"layer"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::HashKind;
    use crate::object::Memory;

    #[test]
    fn a_state_is_read_as_it_was_written_and_another_version_is_refused() {
        let memory = Memory::new(HashKind::Sha1);
        let empty = State::empty(&memory).unwrap();
        for state in [empty, State { layer: Some(empty.tree), ..empty }] {
            let extra = state.write_extra(&memory).unwrap();
            assert_eq!(State::read(&memory, state.tree, extra).unwrap(), state);
        }
        let version = memory.write(ObjectKind::Blob, b"sandtable-extra 2\n").unwrap();
        let newer = TreeEntry { mode: EntryMode::File, name: b"version".to_vec(), id: version };
        let newer = memory.write(ObjectKind::Tree, &Tree::new(vec![newer]).unwrap().encode()).unwrap();
        assert!(matches!(State::read(&memory, empty.tree, newer), Err(StateError::Unfit { .. })));
        assert!(matches!(State::read(&memory, empty.tree, empty.tree), Err(StateError::Unfit { .. })));
    }
}
