//! Deleting, under the exclusive lock: rows, then refs, then indexes, then packs.

use std::io;
use std::time::{Duration, Instant};

use super::packs::{self, PackUse};
use super::{GcOptions, GcOutcome, Needed};
use crate::lock::FileLock;
use crate::meta::{Origin, PackRow};
use crate::reach::Reached;
use crate::store::{Store, StoreError, refs};

/// The exclusive lock, if those who write come to an end in time.
pub(super) fn exclusive(store: &Store, wait: Duration) -> Result<Option<FileLock>, StoreError> {
    let end = Instant::now() + wait;
    loop {
        match FileLock::try_exclusive(&store.lock_path())? {
            None if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            other => return Ok(other),
        }
    }
}

/// Deletes what is not needed. `reached` is what was needed a while ago, `fresh` the packs copied since.
pub(super) fn sweep(
    store: &Store,
    reached: Reached,
    (fresh, options): (&[String], &GcOptions),
) -> Result<GcOutcome, StoreError> {
    store.objects().refresh()?;
    let needed = Needed::now(store, reached, options)?;
    let uses = packs::uses(store, &needed.reached, fresh)?;
    let (dropped, kept): (Vec<&PackUse>, Vec<&PackUse>) = uses.iter().partition(|one| one.live == 0);
    let adopted: Vec<PackRow> = kept.iter().filter(|one| one.row.is_none()).map(|one| adopt(one)).collect();
    let names: Vec<String> = dropped.iter().map(|one| one.name.clone()).collect();
    refs::remove(store, || store.meta().exchange(&adopted, &names, &needed.gone))?;
    for one in &dropped {
        remove(store, &one.name)?;
    }
    store.objects().refresh()?;
    Ok(GcOutcome {
        snapshots: needed.gone,
        packs_removed: dropped.len(),
        bytes_freed: dropped.iter().map(|one| one.bytes).sum(),
        deferred: false,
    })
}

/// Removes the files of a pack. The caller holds the exclusive lock.
pub(super) fn remove(store: &Store, name: &str) -> io::Result<()> {
    for extension in ["idx", "pack"] {
        match fs_err::remove_file(store.pack_dir().join(format!("{name}.{extension}"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// A pack whose writer died, but in which something is needed by now.
fn adopt(found: &PackUse) -> PackRow {
    PackRow {
        name: found.name.clone(),
        origin: Origin::RollUp,
        objects: u64::from(found.pack.index.count()),
        bytes: found.bytes,
        unsynced: None,
    }
}
