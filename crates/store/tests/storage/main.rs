//! The store as a whole: objects, packs, snapshots, collection. Stock git is the judge.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod board;
mod bring_in;
mod caches;
mod compact;
mod faults;
mod forge;
mod git;
mod hostile;
mod life;
mod misplaced;
mod objects;
mod packs;
mod whole;
