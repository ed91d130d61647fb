//! The merge that needs no judgement: both sides changed, and neither touched what the other did.

use std::collections::BTreeMap;

use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;

use super::error::Error;
use super::scratch::Scratch;
use super::tree::{Change, Entry};

/// The result where it is beyond doubt: nothing is gone on either side, so nothing can have been renamed, and where both
/// changed one path they made the same of it. For everything else there is git.
pub(super) fn union(
    scratch: &Scratch,
    base: &ObjectId,
    (ours, theirs): (&ObjectId, &ObjectId),
) -> Result<Option<ObjectId>, Error> {
    let (mine, other) = (scratch.changes(base, ours)?, scratch.changes(base, theirs)?);
    if mine.iter().chain(&other).any(|change| change.new.is_none()) {
        return Ok(None);
    }
    let by_path = |changes: &[Change]| -> BTreeMap<RelPath, Option<Entry>> {
        changes.iter().map(|change| (change.path.clone(), change.new)).collect()
    };
    let (mine, other) = (by_path(&mine), by_path(&other));
    let agree = other.iter().all(|(path, new)| mine.get(path).is_none_or(|known| known == new));
    if !agree || is_nested(&mine, &other) {
        return Ok(None);
    }
    let edits = other.iter().filter(|(path, _)| !mine.contains_key(path));
    scratch.edited(ours, edits.map(|(path, new)| (path, *new))).map(Some)
}

/// Whether a file of one side is a directory for the other. With all paths in the order of a walk, what is above a path
/// is on the way to it, so nothing is looked up.
fn is_nested(mine: &BTreeMap<RelPath, Option<Entry>>, other: &BTreeMap<RelPath, Option<Entry>>) -> bool {
    let sides =
        mine.keys().map(|path| (path, Side::Mine)).chain(other.keys().map(|path| (path, Side::Other)));
    let mut all: Vec<(&RelPath, Side)> = sides.collect();
    all.sort_by(|one, two| one.0.components().cmp(two.0.components()));
    let mut above: Vec<(&RelPath, Side)> = Vec::new();
    for (path, side) in all {
        while above.last().is_some_and(|(folder, _)| !path.is_within(folder)) {
            above.pop();
        }
        if above.iter().any(|(folder, of)| *of != side && *folder != path) {
            return true;
        }
        above.push((path, side));
    }
    false
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Mine,
    Other,
}
