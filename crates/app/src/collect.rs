//! Giving back the space of what no snapshot needs any more.
//!
//! A store knows which states its subjects are at. What the way back of merges and applies needs stands in the log in our
//! words, so it is added here: whoever collects by these functions keeps what `undo` and `redo` take.

use sandtable_sandbox::board;
use sandtable_store::gc::{self, Compacted, GcOptions, GcOutcome, GcPlan};
use sandtable_store::store::Store;

use crate::back::needed;

/// What a collection would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collectable {
    pub removed: GcPlan,
    /// How many packs would become one.
    pub compacted: usize,
}

/// What a collection did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub removed: GcOutcome,
    pub compacted: Compacted,
}

fn options() -> GcOptions {
    GcOptions { also: needed, ..GcOptions::default() }
}

/// What [`collect`] would do at this moment.
pub fn collectable(store: &Store) -> Result<Collectable, board::BoardError> {
    Ok(Collectable { removed: gc::plan(store, &options())?, compacted: gc::to_compact(store)? })
}

/// Removes what nobody needs, and makes the rest small. `watch` hears how many objects and bytes have been packed.
pub fn collect(store: &Store, watch: gc::Watch<'_>) -> Result<Collected, board::BoardError> {
    let options = options();
    let removed = gc::collect(store, &options)?;
    let compacted = gc::compact(store, &options, watch)?;
    // What there was no room for may still become fewer packs.
    gc::roll_up(store)?;
    Ok(Collected { removed, compacted })
}
