//! Deleting, under the exclusive lock: rows, then refs, then indexes, then packs.

use std::io;

use super::packs::{self, PackUse};
use super::{GcOptions, GcOutcome, Needed};
use crate::meta::{Origin, PackRow};
use crate::reach::Reached;
use crate::store::{Store, StoreError, refs};

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
