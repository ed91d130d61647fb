//! The extra tree of a snapshot: what its commit's own tree cannot say.

use super::{Store, StoreError};
use crate::id::ObjectId;
use crate::object::{EntryMode, ObjectKind, ReadObjects, Tree, TreeEntry, WriteError, WriteObjects};
use crate::state::State;

const VERSION: &[u8] = b"sandtable-extra 1\n";

/// Writes the extra tree of a state.
pub fn write_extra(to: &dyn WriteObjects, state: &State) -> Result<ObjectId, WriteError> {
    let entry = |mode, name: &str, id| TreeEntry { mode, name: name.as_bytes().to_vec(), id };
    let version = to.write(ObjectKind::Blob, VERSION)?;
    let mut entries = vec![
        entry(EntryMode::Tree, "manifest", state.manifest),
        entry(EntryMode::Tree, "times", state.times),
        entry(EntryMode::File, "version", version),
    ];
    entries.extend(state.layer.map(|layer| entry(EntryMode::Tree, "layer", layer)));
    entries.extend(state.left_out.map(|left_out| entry(EntryMode::File, "left-out", left_out)));
    let tree = Tree::new(entries).expect("these names are different and plain");
    to.write(ObjectKind::Tree, &tree.encode())
}

/// The state whose files are `tree` and whose extra tree is `extra`.
pub fn read_extra(from: &dyn ReadObjects, tree: ObjectId, extra: &ObjectId) -> Result<State, StoreError> {
    let wrong = |what: &str| StoreError::Extra { id: *extra, what: what.to_owned() };
    let data = from.read_kind(extra, ObjectKind::Tree)?;
    let parts = Tree::parse(extra.kind(), &data).map_err(|error| wrong(&error.to_string()))?;
    let part = |name: &str| parts.get(name.as_bytes()).filter(|entry| entry.mode == EntryMode::Tree);
    let version = parts.get(b"version").ok_or_else(|| wrong("it has no version"))?;
    if from.read_kind(&version.id, ObjectKind::Blob)? != VERSION {
        return Err(wrong("it is of a version that is not known"));
    }
    Ok(State {
        tree,
        manifest: part("manifest").ok_or_else(|| wrong("it has no manifest"))?.id,
        times: part("times").ok_or_else(|| wrong("it has no times"))?.id,
        layer: part("layer").map(|entry| entry.id),
        left_out: parts.get(b"left-out").filter(|entry| entry.mode == EntryMode::File).map(|entry| entry.id),
    })
}

impl Store {
    /// What a snapshot holds.
    pub fn state(&self, snapshot: &ObjectId) -> Result<State, StoreError> {
        let row = self.meta.snapshot(snapshot)?;
        read_extra(&self.objects, row.tree, &row.extra)
    }
}
