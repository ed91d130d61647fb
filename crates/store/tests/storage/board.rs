//! A store to play with.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::meta::{Durability, HeadChange, OperationDraft, OperationKind, Snapshot};
use sandtable_store::object::commit::Consistency;
use sandtable_store::object::{EntryMode, ObjectKind, Tree, TreeEntry, WriteObjects};
use sandtable_store::store::{SnapshotDraft, Store, StoreError};

pub(crate) struct Board {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: Store,
}

pub(crate) fn board(hash: HashKind) -> Board {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(&dir.path().join("store"), "/some/source".as_ref(), hash).unwrap();
    Board { dir, store }
}

/// Writes files into one directory.
pub(crate) fn tree(to: &dyn WriteObjects, files: &[(&str, &[u8])]) -> ObjectId {
    let entry = |(name, data): &(&str, &[u8])| TreeEntry {
        mode: EntryMode::File,
        name: name.as_bytes().to_vec(),
        id: to.write_blob(data.len() as u64, &mut &data[..]).unwrap(),
    };
    let entries = files.iter().map(entry).collect();
    to.write(ObjectKind::Tree, &Tree::new(entries).unwrap().encode()).unwrap()
}

/// An extra tree that says nothing, but for `note`.
pub(crate) fn extra(to: &dyn WriteObjects, note: &str) -> ObjectId {
    let empty = to.write(ObjectKind::Tree, b"").unwrap();
    let version = to.write(ObjectKind::Blob, b"sandtable-extra 1\n").unwrap();
    let times = tree(to, &[("+", note.as_bytes())]);
    let entry = |mode, name: &str, id| TreeEntry { mode, name: name.as_bytes().to_vec(), id };
    let entries = vec![
        entry(EntryMode::Tree, "manifest", empty),
        entry(EntryMode::Tree, "times", times),
        entry(EntryMode::File, "version", version),
    ];
    to.write(ObjectKind::Tree, &Tree::new(entries).unwrap().encode()).unwrap()
}

pub(crate) fn draft(subject: &str, tree: ObjectId, extra: ObjectId) -> SnapshotDraft {
    SnapshotDraft {
        subject: subject.to_owned(),
        parents: vec![],
        tree,
        extra,
        message: "a state".to_owned(),
        consistency: Consistency::Stable,
        at: at(1_700_000_000),
        operation: OperationKind::Snapshot,
        details: "{}".to_owned(),
        durability: Durability::Durable,
    }
}

pub(crate) fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// A snapshot of some files, on top of where the subject is.
pub(crate) fn snapshot(
    store: &Store,
    subject: &str,
    files: &[(&str, &[u8])],
) -> Result<Snapshot, StoreError> {
    let batch = store.begin()?;
    let tree = tree(&batch, files);
    let extra = extra(&batch, subject);
    let parents = store.meta().head(subject)?.map(|head| head.snapshot).into_iter().collect();
    store.commit(batch, &SnapshotDraft { parents, ..draft(subject, tree, extra) })
}

/// Bytes that do not compress.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

/// Ends a subject: nothing that only it was at is needed any more.
pub(crate) fn remove(store: &Store, subject: &str) {
    let draft = OperationDraft {
        subject: subject.to_owned(),
        kind: OperationKind::Remove,
        at: at(1),
        head: HeadChange::Remove,
        details: String::new(),
    };
    store.meta().append(&draft).unwrap();
}
