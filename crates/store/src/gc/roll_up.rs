//! Rolling up: many small packs into one, so that there are never many to look into.
//!
//! Sizes are kept in steps: a pack is merged only with those that together are not much smaller, so that each
//! object is copied a few times in its life and not with every snapshot. Packs brought in from the source stay as
//! they are.

use std::sync::Arc;

use super::{packs, sweep};
use crate::lock::FileLock;
use crate::meta::{Origin, PackRow};
use crate::pack::{Pack, Place};
use crate::store::{Store, StoreError};

/// There are at most as many packs of ours after a roll-up.
pub const MOST_PACKS: usize = 32;
/// A pack stays if it is at least so much larger than all smaller ones together.
const STEP: u64 = 2;

/// What a roll-up did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RollUp {
    /// Packs that became one.
    pub merged: usize,
    /// The one they became.
    pub into: Option<String>,
}

/// Merges packs if there are many. Nothing is waited for: files that cannot be removed now go with the next
/// collection.
pub fn roll_up(store: &Store) -> Result<RollUp, StoreError> {
    let lock = store.share()?;
    let rows = store.meta().packs()?;
    let mut ours: Vec<&PackRow> = rows.iter().filter(|row| row.origin != Origin::Source).collect();
    ours.sort_by_key(|row| row.bytes);
    let count = to_merge(&ours.iter().map(|row| row.bytes).collect::<Vec<u64>>());
    let names: Vec<String> = ours[..count].iter().map(|row| row.name.clone()).collect();
    let total: u64 = ours[..count].iter().map(|row| row.bytes).sum();
    if count < 2 || store.room()?.left() < total {
        return Ok(RollUp::default());
    }
    store.objects().refresh()?;
    let is_chosen = |pack: &Arc<Pack>| names.contains(&packs::name_of(pack));
    let chosen: Vec<Arc<Pack>> = store.objects().packs()?.into_iter().filter(is_chosen).collect();
    if chosen.len() != count {
        // One is damaged or gone: that is for the check to say.
        return Ok(RollUp::default());
    }
    let places = chosen.iter().map(|pack| pack.places()).collect::<Result<Vec<_>, _>>()?;
    let parts: Vec<(&Pack, &[Place])> =
        chosen.iter().zip(&places).map(|(pack, places)| (pack.as_ref(), places.as_slice())).collect();
    let Some(row) = packs::write(store, &parts)? else { return Ok(RollUp::default()) };
    let old: Vec<String> = names.into_iter().filter(|name| *name != row.name).collect();
    store.meta().exchange(std::slice::from_ref(&row), &old, &[])?;
    drop(lock);
    remove_superseded(store, &old)?;
    Ok(RollUp { merged: count, into: Some(row.name) })
}

/// How many of the smallest packs are merged. `sizes` ascend.
fn to_merge(sizes: &[u64]) -> usize {
    if sizes.len() <= MOST_PACKS / 4 {
        return 0;
    }
    let mut below = 0;
    let mut count = 0;
    for (index, size) in sizes.iter().enumerate() {
        if *size < STEP * below {
            count = index + 1;
        }
        below += size;
    }
    count.max((sizes.len() + 1).saturating_sub(MOST_PACKS))
}

/// Removes the packs whose objects are in another by now, if nobody writes at the moment.
fn remove_superseded(store: &Store, names: &[String]) -> Result<(), StoreError> {
    let Some(lock) = FileLock::try_exclusive(&store.lock_path())? else { return Ok(()) };
    // Someone may have brought one of them back meanwhile, by writing the same pack again.
    let rows = store.meta().packs()?;
    for name in names.iter().filter(|name| rows.iter().all(|row| row.name != **name)) {
        sweep::remove(store, name)?;
    }
    drop(lock);
    Ok(store.objects().refresh()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stay_in_steps() {
        assert_eq!(to_merge(&[1; 8]), 0, "few are left alone");
        assert_eq!(to_merge(&[1; 9]), 9);
        let steps: Vec<u64> = (0..20).map(|step| 3_u64.pow(step)).collect();
        assert_eq!(to_merge(&steps), 0, "each is larger than all before");
        let small_and_large = [&[1; 9][..], &[1000, 10_000]].concat();
        assert_eq!(to_merge(&small_and_large), 9);
        let steps: Vec<u64> = (0..38).map(|step| 3_u64.pow(step)).collect();
        assert_eq!(to_merge(&steps), 7, "but never more than there may be");
    }

    #[test]
    fn many_snapshots_are_copied_few_times() {
        let mut sizes: Vec<u64> = vec![100_000];
        let (mut copied, mut most) = (0, 0);
        for _ in 0..2000 {
            sizes.push(10);
            sizes.sort_unstable();
            let count = to_merge(&sizes);
            let sum: u64 = sizes.drain(..count).sum();
            if sum > 0 {
                copied += sum;
                sizes.push(sum);
                sizes.sort_unstable();
            }
            most = most.max(sizes.len());
        }
        assert!(most <= MOST_PACKS, "{most}");
        assert!(copied < 2000 * 10 * 12, "{copied} bytes were copied for 20000");
    }
}
