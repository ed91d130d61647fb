//! Which packs hold what is needed, and copying the needed part of some.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use super::{GcOptions, PackPlan};
use crate::id::ObjectId;
use crate::meta::{Durability, Origin, PackRow};
use crate::pack::{BaseCache, Pack, PackWriter, Place, Sync};
use crate::reach::Reached;
use crate::store::{Store, StoreError};

/// A pack of more objects is kept as a whole or dropped as a whole: a list of its places would be too long.
pub(super) const LARGE: u32 = 2_000_000;

/// A pack and what it is used for.
#[derive(Debug)]
pub(super) struct PackUse {
    pub(super) pack: Arc<Pack>,
    pub(super) name: String,
    /// What `meta.db` says of it; nothing if its writer did not come to an end.
    pub(super) row: Option<PackRow>,
    pub(super) bytes: u64,
    pub(super) live: u64,
    /// Whether its bytes are the user's as well, so that removing it frees nothing.
    shared: bool,
    /// The objects for which it is the place.
    needed: Vec<Place>,
}

impl PackUse {
    pub(super) fn plan(&self) -> PackPlan {
        PackPlan { name: self.name.clone(), bytes: self.bytes, live: self.live }
    }
}

/// Gives every needed object one place: in the first pack of `first`, else in one that has a row, the others last.
pub(super) fn uses(store: &Store, reached: &Reached, first: &[String]) -> Result<Vec<PackUse>, StoreError> {
    let rows = store.meta().packs()?;
    let mut packs = Vec::new();
    for pack in store.objects().packs()? {
        let name = name_of(&pack);
        let row = rows.iter().find(|row| row.name == name).cloned();
        packs.push((!first.contains(&name), row.is_none(), name, row, pack));
    }
    packs.sort_by(|one, other| (one.0, one.1, &one.2).cmp(&(other.0, other.1, &other.2)));
    let mut placed: HashSet<ObjectId> = HashSet::with_capacity(reached.objects.len());
    let mut uses = Vec::new();
    for (_, _, name, row, pack) in packs {
        let mut is_needed = |id: &ObjectId| reached.objects.contains(id) && placed.insert(*id);
        let (live, needed) = if pack.index.count() > LARGE {
            (count_needed(&pack, &mut is_needed)?, vec![])
        } else {
            let all = pack.places()?.into_iter();
            let needed: Vec<Place> = all.filter(|place| is_needed(&place.id)).collect();
            (needed.iter().map(|place| place.end.saturating_sub(place.offset)).sum(), needed)
        };
        let metadata = fs_err::metadata(pack.path())?;
        let index = fs_err::metadata(pack.path().with_extension("idx"))?;
        let (bytes, shared) = (metadata.len() + index.len(), metadata.nlink() > 1);
        uses.push(PackUse { pack, name, row, bytes, live, shared, needed });
    }
    Ok(uses)
}

/// About how many bytes of a pack are needed, without looking where each object is.
fn count_needed(pack: &Pack, is_needed: &mut dyn FnMut(&ObjectId) -> bool) -> Result<u64, StoreError> {
    let mut needed = 0_u64;
    for located in pack.index.all()? {
        needed += u64::from(is_needed(&located?.id));
    }
    let share = u128::from(pack.length()) * u128::from(needed) / u128::from(pack.index.count().max(1));
    // One that is needed is never nothing.
    Ok(u64::try_from(share).unwrap_or(u64::MAX).max(needed))
}

/// The packs that are worth copying, the best first, as long as there is room.
pub(super) fn to_copy<'u>(uses: &'u [PackUse], options: &GcOptions, mut room: u64) -> Vec<&'u PackUse> {
    let worth = |one: &&PackUse| {
        !one.shared
            && !one.needed.is_empty()
            && one.live > 0
            && one.live * 100 < one.pack.length() * options.copy_below
    };
    let mut worthy: Vec<&PackUse> = uses.iter().filter(worth).collect();
    worthy.sort_by_key(|one| std::cmp::Reverse(one.bytes - one.live));
    worthy.retain(|one| {
        // A delta that is copied becomes a whole object again, so more is needed than it takes now.
        let fits = one.live.saturating_mul(4) <= room;
        if fits {
            room -= one.live;
        }
        fits
    });
    worthy
}

/// Copies the needed part of the packs that are worth it into a new one; gives its name.
pub(super) fn copy(store: &Store, reached: &Reached, options: &GcOptions) -> Result<Vec<String>, StoreError> {
    let uses = uses(store, reached, &[])?;
    let chosen = to_copy(&uses, options, store.room()?.left());
    let parts: Vec<(&Pack, &[Place])> =
        chosen.iter().map(|one| (one.pack.as_ref(), one.needed.as_slice())).collect();
    let Some(row) = write(store, &parts)? else { return Ok(vec![]) };
    store.meta().exchange(std::slice::from_ref(&row), &[], &[])?;
    store.objects().refresh()?;
    Ok(vec![row.name])
}

/// Writes parts of packs into a new pack, which has no row yet.
pub(super) fn write(store: &Store, parts: &[(&Pack, &[Place])]) -> Result<Option<PackRow>, StoreError> {
    if parts.is_empty() {
        return Ok(None);
    }
    let writer = PackWriter::create(&store.temporary("pack"), store.hash_kind())?;
    let cache = BaseCache::default();
    for (pack, places) in parts {
        for place in *places {
            writer.copy(pack, place, &cache)?;
        }
    }
    let written = writer.finish(&store.pack_dir(), Sync::Now)?;
    Ok(written.map(|written| crate::store::pack_row(written, Origin::RollUp, Durability::Durable)))
}

/// The name of a pack, without an extension.
pub(super) fn name_of(pack: &Pack) -> String {
    pack.path().file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
