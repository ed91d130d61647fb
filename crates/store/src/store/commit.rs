//! Making a batch a snapshot, in the order that a crash can do nothing to.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Batch, Store, StoreError, boot, refs};
use crate::id::ObjectId;
use crate::meta::{Durability, HeadChange, Made, OperationDraft, OperationKind, Origin, PackRow, Snapshot};
use crate::object::commit::{Consistency, SnapshotCommit, State};
use crate::object::{ObjectKind, ReadObjects as _, WriteObjects as _};
use crate::pack::{Sync, Written};

/// A snapshot to be made of what is in a batch and in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotDraft {
    /// The sandbox or directory whose state it is; its head is moved to it.
    pub subject: String,
    pub parents: Vec<ObjectId>,
    pub tree: ObjectId,
    /// The extra tree; its entry `manifest` is part of the state.
    pub extra: ObjectId,
    pub message: String,
    pub consistency: Consistency,
    pub at: SystemTime,
    /// Kind and details of the operation that it is made by.
    pub operation: OperationKind,
    pub details: String,
    pub durability: Durability,
}

impl Store {
    /// Makes a snapshot. When this returns it exists; if it fails nothing does.
    pub fn commit(&self, batch: Batch<'_>, draft: &SnapshotDraft) -> Result<Snapshot, StoreError> {
        let commit = describe(&batch, draft)?;
        let id = batch.write(ObjectKind::Commit, &commit.encode())?;
        let sync = match draft.durability {
            Durability::Durable => Sync::Now,
            Durability::Batched | Durability::Volatile => Sync::Later,
        };
        // The lock is held until the refs are written.
        let Batch { writer, lock: _lock, .. } = batch;
        let pack = writer.finish(&self.pack_dir(), sync)?;
        let pack = pack.map(|written| row(written, Origin::Snapshot, draft.durability));
        let snapshot = Snapshot {
            id,
            operation: 0,
            subject: draft.subject.clone(),
            at: draft.at,
            tree: draft.tree,
            extra: draft.extra,
            state: commit.state,
            consistency: draft.consistency,
            message: draft.message.clone(),
            borrowed: self.borrows(),
        };
        let operation = OperationDraft {
            subject: draft.subject.clone(),
            kind: draft.operation.clone(),
            at: draft.at,
            head: HeadChange::Set(id),
            details: draft.details.clone(),
        };
        let snapshot = self.meta.add_snapshot(Made { snapshot, pack, operation }, draft.durability)?;
        refs::write(self, &snapshot)?;
        Ok(snapshot)
    }

    /// Whether some objects may be in the user's repository alone.
    pub fn borrows(&self) -> bool {
        self.git_dir().join("objects/info/alternates").exists()
    }
}

fn describe(batch: &Batch<'_>, draft: &SnapshotDraft) -> Result<SnapshotCommit, StoreError> {
    let wrong = |what: &str| StoreError::Draft(what.to_owned());
    let state = super::read_extra(batch, draft.tree, &draft.extra)?;
    if !batch.contains(&draft.tree) {
        return Err(wrong("its tree is not there"));
    }
    if draft.parents.iter().any(|parent| !batch.contains(parent)) {
        // Somebody else may have recorded it since the packs were looked at.
        batch.store.objects.refresh()?;
    }
    if let Some(parent) = draft.parents.iter().find(|parent| !batch.contains(parent)) {
        return Err(wrong(&format!("its parent `{parent}` is not there")));
    }
    Ok(SnapshotCommit {
        tree: draft.tree,
        parents: draft.parents.clone(),
        seconds: draft.at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        message: draft.message.clone(),
        extra: draft.extra,
        state: State::of(&draft.tree, &state.manifest),
        consistency: draft.consistency,
    })
}

/// What is written down of a pack.
pub(crate) fn row(written: Written, origin: Origin, durability: Durability) -> PackRow {
    PackRow {
        name: written.name,
        origin,
        objects: written.objects as u64,
        bytes: written.bytes,
        unsynced: (durability != Durability::Durable).then(boot),
    }
}
