//! Collection: taking away what no snapshot needs any more, and keeping the number of packs small.
//!
//! What is needed is what living subjects ever were at (so that undo works), what the caller reads in the log as needed,
//! what leases hold, and all that can be reached from there. Looking takes long and goes on beside everything else; what is found to be needed in
//! packs that are mostly not is copied into a new pack first, within the room there is. Only then, under the
//! exclusive lock and for a moment, is it looked at what came in meanwhile, and files are deleted. A crash at any
//! point leaves objects twice or files too many, never too few.

mod compact;
mod packs;
mod roll_up;
mod sweep;

use std::collections::HashSet;
use std::time::Duration;

pub use compact::{Compacted, Watch, compact, to_compact};
pub use roll_up::{MOST_PACKS, RollUp, keep_few, roll_up};

use crate::id::ObjectId;
use crate::meta::{Filter, Meta, MetaError, Operation};
use crate::objects::Objects;
use crate::reach::{History, Reached, Wanted};
use crate::store::{Store, StoreError};

/// How a collection goes about.
#[derive(Clone, Copy, Debug)]
pub struct GcOptions {
    /// How long to wait for those who write at the moment.
    pub wait: Duration,
    /// A pack is copied when less than this share of it is needed, in percent.
    pub copy_below: u64,
    /// Which states the log speaks of in words of the caller's. Those of them that are there are needed too.
    pub also: fn(&[Operation]) -> Vec<ObjectId>,
}

impl Default for GcOptions {
    fn default() -> Self {
        Self { wait: Duration::from_secs(10), copy_below: 40, also: |_| Vec::new() }
    }
}

/// A pack that a collection would do something with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackPlan {
    pub name: String,
    pub bytes: u64,
    /// How many of them are needed.
    pub live: u64,
}

/// What a collection would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcPlan {
    /// Snapshots of which nothing is left but the operation.
    pub snapshots: Vec<ObjectId>,
    /// Packs in which nothing is needed.
    pub drop: Vec<PackPlan>,
    /// Packs of which the needed part is copied.
    pub copy: Vec<PackPlan>,
}

/// What a collection did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcOutcome {
    pub snapshots: Vec<ObjectId>,
    pub packs_removed: usize,
    pub bytes_freed: u64,
    /// Others were writing all the time: nothing was deleted.
    pub deferred: bool,
}

/// What a collection would do at this moment.
pub fn plan(store: &Store, options: &GcOptions) -> Result<GcPlan, StoreError> {
    let _lock = store.share()?;
    store.objects().refresh()?;
    let needed = Needed::now(store, Reached::default(), options)?;
    let uses = packs::uses(store, &needed.reached, &[])?;
    Ok(GcPlan {
        snapshots: needed.gone,
        drop: uses.iter().filter(|one| one.live == 0).map(packs::PackUse::plan).collect(),
        copy: packs::to_copy(&uses, options, store.room()?.left())
            .into_iter()
            .map(packs::PackUse::plan)
            .collect(),
    })
}

/// Collects.
pub fn collect(store: &Store, options: &GcOptions) -> Result<GcOutcome, StoreError> {
    let (reached, fresh) = {
        let _lock = store.share()?;
        store.objects().refresh()?;
        let needed = Needed::now(store, Reached::default(), options)?;
        let fresh = packs::copy(store, &needed.reached, options)?;
        (needed.reached, fresh)
    };
    let Some(lock) = store.exclusive(options.wait)? else {
        return Ok(GcOutcome { deferred: true, ..GcOutcome::default() });
    };
    let outcome = sweep::sweep(store, reached, (&fresh, options));
    drop(lock);
    outcome
}

/// What is needed, and which snapshots are not.
struct Needed {
    reached: Reached,
    gone: Vec<ObjectId>,
}

impl Needed {
    /// Adds to `reached` what is needed now. Where something is damaged nothing may be deleted.
    fn now(store: &Store, mut reached: Reached, options: &GcOptions) -> Result<Self, StoreError> {
        let objects: &Objects = store.objects();
        let snapshots = store.meta().snapshots()?;
        let also = (options.also)(&store.meta().operations(&Filter::default())?);
        let there: HashSet<ObjectId> = snapshots.iter().map(|snapshot| snapshot.id).collect();
        let also = also.into_iter().filter(|id| there.contains(id));
        for root in roots(store.meta())?.into_iter().chain(also) {
            reached.follow(objects, (root, Wanted::Root), History::Follow);
        }
        let mut gone = Vec::new();
        for snapshot in snapshots {
            if reached.objects.contains(&snapshot.id) {
                reached.follow(objects, (snapshot.extra, Wanted::Tree), History::Follow);
            } else {
                gone.push(snapshot.id);
            }
        }
        match reached.faults.pop() {
            Some((_, error)) => Err(error.into()),
            None => Ok(Self { reached, gone }),
        }
    }
}

/// What living subjects were ever at, as far as it is still there, and what is leased.
fn roots(meta: &Meta) -> Result<Vec<ObjectId>, MetaError> {
    let mut roots = meta.states_of_living()?;
    roots.extend(meta.leased()?);
    Ok(roots)
}
