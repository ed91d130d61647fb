//! Checking one snapshot: every byte that it names.

use super::{Fault, Report, chain_of, check_snapshot};
use crate::id::ObjectId;
use crate::object::{ObjectKind, ReadObjects as _};
use crate::reach::{History, Reached, Wanted};
use crate::store::{Store, StoreError};

/// Reads everything that a snapshot names, without its history, and hashes it again. Nothing is deleted meanwhile.
pub fn snapshot(store: &Store, id: &ObjectId) -> Result<Report, StoreError> {
    let _lock = store.share()?;
    store.objects().refresh()?;
    let row = store.meta().snapshot(id)?;
    let mut report = Report { snapshots: 1, ..Report::default() };
    check_snapshot(store, &row, &mut report);
    let mut reached = Reached::default();
    reached.follow(store.objects(), (row.id, Wanted::Commit), History::Leave);
    reached.follow(store.objects(), (row.extra, Wanted::Tree), History::Leave);
    report.objects = reached.objects.len();
    report
        .faults
        .extend(reached.faults.iter().map(|(id, error)| Fault::Object { id: *id, what: chain_of(error) }));
    let unreadable: Vec<ObjectId> = reached.faults.into_iter().map(|(id, _)| id).collect();
    let mut ids: Vec<ObjectId> = reached.objects.into_iter().filter(|id| !unreadable.contains(id)).collect();
    ids.sort_unstable();
    for id in ids {
        // Commits and trees were read to follow them; what was only known to be there are contents.
        let read = store.objects().header(&id).and_then(|(kind, _)| match kind {
            ObjectKind::Blob => store.objects().stream(&id, &mut std::io::sink()).map(|_| ()),
            _ => Ok(()),
        });
        report.faults.extend(read.err().map(|error| Fault::Object { id, what: chain_of(&error) }));
    }
    Ok(report)
}
