//! After a power cut: packs that nobody had waited for may not have reached the disk.
//!
//! Those that did are found to be whole and are trusted from then on. What was lost is said by an operation of
//! its own, and the subject is set back to the newest state that is whole. Nothing that was made with
//! [`Durability::Durable`](crate::meta::Durability) can be among it.

use std::collections::HashSet;
use std::time::SystemTime;

use super::{Store, StoreError, boot, refs};
use crate::id::ObjectId;
use crate::lock::FileLock;
use crate::meta::{Filter, HeadChange, OperationDraft, OperationKind, PackRow};
use crate::pack::{self, Pack};
use crate::reach::{History, Reached, Wanted};

pub(super) fn settle(store: &Store) -> Result<(), StoreError> {
    if suspects(store)?.is_empty() {
        return Ok(());
    }
    // Nobody else may rely on what is about to be looked at.
    let _lock = FileLock::exclusive(&store.lock_path())?;
    let (whole, lost): (Vec<PackRow>, Vec<PackRow>) =
        suspects(store)?.into_iter().partition(|row| is_whole(store, row));
    let names = |rows: Vec<PackRow>| rows.into_iter().map(|row| row.name).collect::<Vec<String>>();
    store.meta.synced(&names(whole))?;
    if lost.is_empty() { Ok(()) } else { give_up(store, &names(lost)) }
}

/// Packs of another boot that were not waited for.
fn suspects(store: &Store) -> Result<Vec<PackRow>, StoreError> {
    let mut packs = store.meta.packs()?;
    let now = boot();
    packs.retain(|row| row.unsynced.as_ref().is_some_and(|then| *then != now));
    Ok(packs)
}

fn is_whole(store: &Store, row: &PackRow) -> bool {
    let path = store.pack_dir().join(format!("{}.pack", row.name));
    let opened = Pack::open(&path, store.hash).and_then(|pack| pack::verify(&pack));
    opened.is_ok_and(|faults| faults.is_empty())
}

fn give_up(store: &Store, packs: &[String]) -> Result<(), StoreError> {
    for name in packs {
        for extension in ["idx", "pack"] {
            let path = store.pack_dir().join(format!("{name}.{extension}"));
            if path.exists() {
                fs_err::remove_file(path)?;
            }
        }
    }
    store.objects.refresh()?;
    let mut lost = HashSet::new();
    for snapshot in store.meta.snapshots()? {
        let mut reached = Reached::default();
        reached.follow(&store.objects, (snapshot.id, Wanted::Commit), History::Follow);
        reached.follow(&store.objects, (snapshot.extra, Wanted::Tree), History::Follow);
        if !reached.faults.is_empty() {
            lost.insert(snapshot.id);
        }
    }
    set_back(store, &lost)?;
    let gone: Vec<ObjectId> = lost.into_iter().collect();
    refs::remove(store, || store.meta.exchange(&[], packs, &gone))
}

/// Sets every subject that is at something lost to the newest of its states that is not.
fn set_back(store: &Store, lost: &HashSet<ObjectId>) -> Result<(), StoreError> {
    let there: HashSet<ObjectId> = store.meta.snapshots()?.into_iter().map(|snapshot| snapshot.id).collect();
    for (subject, head) in store.meta.heads()? {
        if !lost.contains(&head.snapshot) {
            continue;
        }
        let filter = Filter { subject: Some(subject.clone()), ..Filter::default() };
        let states =
            store.meta.operations(&filter)?.into_iter().rev().filter_map(|operation| operation.after);
        let newest = states.into_iter().find(|state| there.contains(state) && !lost.contains(state));
        store.meta.append(&OperationDraft {
            subject,
            kind: OperationKind::Lost,
            at: SystemTime::now(),
            head: newest.map_or(HeadChange::Remove, HeadChange::Restart),
            details: format!("{{\"lost\":\"{}\"}}", head.snapshot),
        })?;
    }
    Ok(())
}
