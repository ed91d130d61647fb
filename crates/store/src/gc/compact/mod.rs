//! Making compact: what snapshots wrote in haste becomes one pack with deltas and better compression.
//!
//! A snapshot must be quick, so its pack holds whole objects, barely compressed, and a roll-up takes them as they are.
//! Here time matters less: this is for `store gc`, which somebody calls for the sake of space. Sizes are kept
//! in steps as with a roll-up, so that a large compact pack is not made again for every few snapshots. Everything that is
//! in the old packs is in the new one before a row of theirs goes; a crash at any point leaves objects twice, never too few.

mod order;
mod window;
mod work;

use std::sync::Arc;

use super::{GcOptions, packs, roll_up};
use crate::meta::{Durability, Origin, PackRow};
use crate::pack::{Pack, PackWriter, Place, Sync as Wait};
use crate::store::{Store, StoreError};

/// A compact pack stays if it is at least so much larger than all that becomes compact.
const STEP: u64 = 2;

/// Who is told how many objects and bytes of them were read.
pub type Watch<'w> = &'w (dyn Fn(u64, u64) + Sync);

/// What making compact did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Packs that became one.
    pub packs: usize,
    /// What they took, and what the one takes.
    pub before: u64,
    pub after: u64,
    /// Others were writing all the time: the old files are still there.
    pub deferred: bool,
}

/// A pack that becomes part of the new one.
struct Part {
    pack: Arc<Pack>,
    places: Vec<Place>,
    /// Whether its objects are compressed well already.
    compact: bool,
}

/// Makes the packs of the store compact, as far as it is worth it and there is room, and `meta.db` as well.
pub fn compact(store: &Store, options: &GcOptions, watch: Watch<'_>) -> Result<Compacted, StoreError> {
    let mut done = merge(store, watch)?;
    done.deferred = roll_up::remove_superseded(store, options.wait)? == roll_up::Removal::Deferred;
    store.meta().shrink()?;
    Ok(done)
}

/// How many packs would become one at this moment.
pub fn to_compact(store: &Store) -> Result<usize, StoreError> {
    Ok(chosen(&store.meta().packs()?, store.room()?.left()).len())
}

fn merge(store: &Store, watch: Watch<'_>) -> Result<Compacted, StoreError> {
    let _lock = store.share()?;
    let rows = store.meta().packs()?;
    let room = store.room()?;
    let chosen = chosen(&rows, room.left());
    if chosen.is_empty() {
        return Ok(Compacted::default());
    }
    store.objects().refresh()?;
    let Some(parts) = parts(store, &chosen)? else { return Ok(Compacted::default()) };
    let entries = order::entries(&parts, &store.meta().snapshots()?)?;
    let writer = PackWriter::create(&store.temporary("pack"), store.hash_kind())?;
    work::Work::new(&parts, &writer, room, watch).all(&entries)?;
    let Some(written) = writer.finish(&store.pack_dir(), Wait::Now)? else {
        return Ok(Compacted::default());
    };
    let row = crate::store::pack_row(written, Origin::Compact, Durability::Durable);
    let old: Vec<String> =
        chosen.iter().map(|row| row.name.clone()).filter(|name| *name != row.name).collect();
    store.meta().exchange(std::slice::from_ref(&row), &old, &[])?;
    let before = chosen.iter().map(|row| row.bytes).sum();
    Ok(Compacted { packs: chosen.len(), before, after: row.bytes, deferred: false })
}

/// The packs that become one: those that are not compact, and of the compact those that are not much larger.
fn chosen(rows: &[PackRow], room: u64) -> Vec<&PackRow> {
    let mut ours: Vec<&PackRow> = rows.iter().filter(|row| row.origin != Origin::Source).collect();
    ours.sort_by_key(|row| (row.origin == Origin::Compact, row.bytes));
    let (mut bytes, mut objects) = (0, 0);
    ours.retain(|row| {
        let (all, count) = (bytes + row.bytes, objects + row.objects);
        let is_worth_it = row.origin != Origin::Compact || row.bytes < STEP * bytes;
        let is_chosen = is_worth_it && all <= room && count <= u64::from(packs::LARGE);
        if is_chosen {
            (bytes, objects) = (all, count);
        }
        is_chosen
    });
    ours
}

/// `None` if one of the packs is damaged or gone: that is for the check to say.
fn parts(store: &Store, chosen: &[&PackRow]) -> Result<Option<Vec<Part>>, StoreError> {
    let all = store.objects().packs()?;
    let mut parts = Vec::new();
    for row in chosen {
        let Some(pack) = all.iter().find(|pack| packs::name_of(pack) == row.name) else { return Ok(None) };
        let (pack, places) = (Arc::clone(pack), pack.places()?);
        parts.push(Part { pack, places, compact: row.origin == Origin::Compact });
    }
    Ok(Some(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(origin: Origin, bytes: u64, objects: u64) -> PackRow {
        PackRow { name: format!("{origin:?}-{bytes}"), origin, objects, bytes, unsynced: None }
    }

    #[test]
    fn a_large_compact_pack_is_left_alone() {
        use Origin::{Compact, RollUp, Snapshot, Source};
        let sizes =
            |rows: &[PackRow], room| -> Vec<u64> { chosen(rows, room).iter().map(|row| row.bytes).collect() };
        let all = [row(Compact, 100, 1), row(Snapshot, 5, 1), row(Source, 1, 1), row(RollUp, 20, 1)];
        assert_eq!(sizes(&all, 1000), [5, 20], "what is from the source is never touched");
        let grown = [&all[..], &[row(Snapshot, 30, 1)]].concat();
        assert_eq!(sizes(&grown, 1000), [5, 20, 30, 100]);
        assert_eq!(sizes(&grown, 60), [5, 20, 30], "as far as there is room");
        assert_eq!(sizes(&[row(Compact, 7, 1), row(Compact, 8, 1)], 1000), Vec::<u64>::new(), "nothing new");
        let many = [row(Snapshot, 5, 1), row(Snapshot, 6, 3_000_000), row(Snapshot, 7, 1)];
        assert_eq!(sizes(&many, 1000), [5, 7], "its places would not fit into memory");
    }
}
