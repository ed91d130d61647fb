//! The snapshots of a store with what each was made from.

use std::collections::{BTreeMap, HashMap};

use sandtable_store::id::ObjectId;
use sandtable_store::meta::OperationKind;
use sandtable_store::meta::{Filter, Snapshot};
use sandtable_store::object::commit::SnapshotCommit;
use sandtable_store::object::{ObjectKind, ReadObjects as _};
use sandtable_store::store::{Store, StoreError};

use super::BoardError;

/// A snapshot in its history.
#[derive(Clone, Debug)]
pub struct Descendant {
    pub snapshot: Snapshot,
    /// Those that are still there.
    pub parents: Vec<ObjectId>,
    /// What made it.
    pub operation: String,
}

/// The snapshots of a subject and all that they come from, or every one of the store: newest first, none before what
/// was made from it.
pub fn history(store: &Store, subject: Option<&str>) -> Result<Vec<Descendant>, BoardError> {
    let snapshots: HashMap<ObjectId, Snapshot> =
        store.meta().snapshots()?.into_iter().map(|snapshot| (snapshot.id, snapshot)).collect();
    let operations = store.meta().operations(&Filter::default())?;
    let kinds: HashMap<i64, OperationKind> =
        operations.into_iter().map(|operation| (operation.number, operation.kind)).collect();
    let wanted = |snapshot: &&Snapshot| subject.is_none_or(|subject| snapshot.subject == subject);
    let mut open: Vec<ObjectId> = snapshots.values().filter(wanted).map(|snapshot| snapshot.id).collect();
    let mut found = BTreeMap::new();
    while let Some(id) = open.pop() {
        let Some(snapshot) = snapshots.get(&id) else { continue };
        if found.contains_key(&(snapshot.operation, id)) {
            continue;
        }
        let data = store.objects().read_kind(&id, ObjectKind::Commit).map_err(StoreError::from)?;
        let parents = SnapshotCommit::parse(&data).map(|commit| commit.parents).unwrap_or_default();
        let parents: Vec<ObjectId> =
            parents.into_iter().filter(|parent| snapshots.contains_key(parent)).collect();
        open.extend(&parents);
        let operation = kinds.get(&snapshot.operation).map(ToString::to_string).unwrap_or_default();
        found.insert((snapshot.operation, id), Descendant { snapshot: snapshot.clone(), parents, operation });
    }
    Ok(found.into_values().rev().collect())
}
