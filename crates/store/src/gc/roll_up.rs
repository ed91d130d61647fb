//! Rolling up: many small packs into one, so that there are never many to look into.
//!
//! Sizes are kept in steps: a pack is merged only with those that together are not much smaller, so that each
//! object is copied a few times in its life and not with every snapshot. Packs brought in from the source stay as
//! they are, and so do compact ones, whose deltas would be lost.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::{packs, sweep};
use crate::meta::{Origin, PackRow};
use crate::pack::{Pack, Place};
use crate::store::{Store, StoreError};

/// There are at most as many packs of ours after a roll-up.
pub const MOST_PACKS: usize = 32;
/// A pack stays if it is at least so much larger than all smaller ones together.
const STEP: u64 = 2;

/// A lock may be held for a moment by someone who only starts a program.
const PATIENCE: Duration = Duration::from_millis(20);

/// What a roll-up did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RollUp {
    /// Packs that became one.
    pub merged: usize,
    /// The one they became.
    pub into: Option<String>,
}

/// Merges packs if there are many. Nobody is waited for: files that cannot be removed now go the next time.
pub fn roll_up(store: &Store) -> Result<RollUp, StoreError> {
    let outcome = merge(store)?;
    remove_superseded(store, PATIENCE)?;
    Ok(outcome)
}

/// Rolls up once snapshots have left more packs than there are to be: every pack is opened when something is looked for.
pub fn keep_few(store: &Store) -> Result<RollUp, StoreError> {
    let rows = store.meta().packs()?;
    let ours = rows.iter().filter(|row| is_plain(row)).count();
    if ours > MOST_PACKS { roll_up(store) } else { Ok(RollUp::default()) }
}

fn merge(store: &Store) -> Result<RollUp, StoreError> {
    let _lock = store.share()?;
    let rows = store.meta().packs()?;
    let mut ours: Vec<&PackRow> = rows.iter().filter(|row| is_plain(row)).collect();
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
    Ok(RollUp { merged: count, into: Some(row.name) })
}

/// Whether a pack is ours, with whole objects that can be taken as they are.
fn is_plain(row: &PackRow) -> bool {
    matches!(row.origin, Origin::Snapshot | Origin::RollUp)
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

/// Whether files that are of no use any more could be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    Done,
    /// Others were writing all the time.
    Deferred,
}

/// Removes packs without a row whose objects are all in packs that have one, unless others write all the time.
pub(super) fn remove_superseded(store: &Store, wait: Duration) -> Result<Removal, StoreError> {
    if without_row(store)?.0.is_empty() {
        return Ok(Removal::Done);
    }
    // Under the lock, since the pack of someone who is just about to commit has no row either.
    let Some(_lock) = store.exclusive(wait)? else { return Ok(Removal::Deferred) };
    // Or else the row of such a pack might come to light after the pack is gone.
    store.meta().settle()?;
    let (without, with) = without_row(store)?;
    for pack in without {
        let mut is_superseded = true;
        for located in pack.index.all()? {
            let id = located?.id;
            is_superseded &= with.iter().any(|other| matches!(other.index.find(&id), Ok(Some(_))));
        }
        if is_superseded {
            sweep::remove(store, &packs::name_of(&pack))?;
        }
    }
    store.objects().refresh()?;
    Ok(Removal::Done)
}

type Packs = Vec<Arc<Pack>>;

/// The packs that have no row, and those that have one.
fn without_row(store: &Store) -> Result<(Packs, Packs), StoreError> {
    store.objects().refresh()?;
    let rows: HashSet<String> = store.meta().packs()?.into_iter().map(|row| row.name).collect();
    Ok(store.objects().packs()?.into_iter().partition(|pack| !rows.contains(&packs::name_of(pack))))
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
