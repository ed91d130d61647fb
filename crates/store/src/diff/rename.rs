//! Pairs what was removed with what was added: first where the content is the same, then where it is alike.
//!
//! Of several that fit, one of the same file name wins, then the most alike, then the first by path. Empty files,
//! directories and repositories are not paired: that they are equal says nothing.

use std::collections::{BTreeMap, HashMap};

use super::similar::{ALIKE, Bag, could_be_alike};
use super::{Change, ChangeKind, Diff, DiffError, DiffOptions, EntryType, content};
use crate::id::ObjectId;
use crate::object::{ReadError, ReadObjects};

/// The largest file that is compared for likeness.
const LARGEST: u64 = 1 << 20;
/// How many pieces all files that are compared may have; a file of short lines has many.
const PIECES: usize = 2_000_000;
/// How many pieces may be looked up.
const LOOKS: usize = 50_000_000;

/// Replaces pairs of a removal and an addition by a rename.
pub(super) fn pair(
    objects: &dyn ReadObjects,
    diff: &mut Diff,
    options: &DiffOptions,
) -> Result<(), DiffError> {
    let one_sided = |change: &Change| matches!(change.kind, ChangeKind::Added | ChangeKind::Removed);
    let (candidates, mut rest): (Vec<Change>, Vec<Change>) =
        std::mem::take(&mut diff.changes).into_iter().partition(|change| {
            one_sided(change) && matches!(change.entry(), EntryType::File | EntryType::Symlink)
        });
    let (mut removed, mut added): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .map(Some)
        .partition(|change| change.as_ref().is_some_and(|change| change.kind == ChangeKind::Removed));
    for list in [&mut removed, &mut added] {
        sizes(objects, list)?;
    }
    rest.extend(same(&mut removed, &mut added));
    let pairs = removed.iter().flatten().count() * added.iter().flatten().count();
    if pairs > 0 && pairs <= options.pairs {
        rest.extend(alike(objects, &mut removed, &mut added, options)?);
    }
    rest.extend(removed.into_iter().chain(added).flatten());
    diff.changes = rest;
    Ok(())
}

fn sizes(objects: &dyn ReadObjects, list: &mut [Option<Change>]) -> Result<(), DiffError> {
    for side in list.iter_mut().flatten().flat_map(|change| [&mut change.old, &mut change.new]).flatten() {
        let Some(id) = side.id else { continue };
        match objects.header(&id) {
            Ok((_, size)) => side.size = size,
            Err(ReadError::Missing(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Pairs equal contents.
fn same(removed: &mut [Option<Change>], added: &mut [Option<Change>]) -> Vec<Change> {
    let mut by_id: HashMap<(ObjectId, EntryType), Vec<usize>> = HashMap::new();
    for (index, change) in removed.iter().enumerate() {
        if let Some(key) = key(change.as_ref()) {
            by_id.entry(key).or_default().push(index);
        }
    }
    let mut made = Vec::new();
    for place in added {
        let Some(from) = key(place.as_ref()).and_then(|key| by_id.get_mut(&key)) else { continue };
        let name = place.as_ref().and_then(|change| change.path.name());
        let named = |index: &usize| removed[*index].as_ref().and_then(|change| change.path.name()) == name;
        let chosen = from.iter().position(named).unwrap_or(0);
        if from.is_empty() {
            continue;
        }
        let index = from.remove(chosen);
        made.extend(removed[index].take().zip(place.take()).map(|(old, new)| renamed(old, new, 100)));
    }
    made
}

/// What must be equal for two entries to be one; nothing for what is not paired.
fn key(change: Option<&Change>) -> Option<(ObjectId, EntryType)> {
    let side = change.and_then(|change| change.old.as_ref().or(change.new.as_ref()))?;
    (side.size > 0).then_some((side.id?, side.entry))
}

/// Pairs contents that are alike, the most alike first.
fn alike(
    objects: &dyn ReadObjects,
    removed: &mut [Option<Change>],
    added: &mut [Option<Change>],
    options: &DiffOptions,
) -> Result<Vec<Change>, DiffError> {
    let (old, new) = (bags(objects, removed, options)?, bags(objects, added, options)?);
    let (mut scores, mut looks) = (Vec::new(), LOOKS);
    for (from, (old_size, old_bag)) in &old {
        for (to, (new_size, new_bag)) in &new {
            if !could_be_alike(*old_size, *new_size) || looks == 0 {
                continue;
            }
            looks = looks.saturating_sub(old_bag.pieces());
            let likeness = old_bag.likeness(new_bag);
            if likeness >= ALIKE {
                let name = |list: &[Option<Change>], index: usize| {
                    list[index].as_ref().and_then(|change| change.path.name().map(<[u8]>::to_vec))
                };
                let same_name = name(removed, *from) == name(added, *to);
                scores.push((std::cmp::Reverse((same_name, likeness)), *from, *to));
            }
        }
    }
    scores.sort_unstable();
    let mut made = Vec::new();
    for (std::cmp::Reverse((_, likeness)), from, to) in scores {
        if removed[from].is_some() && added[to].is_some() {
            made.extend(
                removed[from].take().zip(added[to].take()).map(|(old, new)| renamed(old, new, likeness)),
            );
        }
    }
    Ok(made)
}

/// Size and pieces of each file that is small enough.
fn bags(
    objects: &dyn ReadObjects,
    list: &[Option<Change>],
    options: &DiffOptions,
) -> Result<BTreeMap<usize, (u64, Bag)>, DiffError> {
    let (mut bags, mut pieces) = (BTreeMap::new(), 0);
    for (index, change) in list.iter().enumerate() {
        let Some(side) = change.as_ref().and_then(|change| change.old.as_ref().or(change.new.as_ref()))
        else {
            continue;
        };
        if side.entry != EntryType::File || side.size == 0 || side.size > LARGEST {
            continue;
        }
        if pieces > PIECES || options.is_over() {
            break;
        }
        match content(objects, Some(side), options) {
            Ok(Some(data)) => {
                let bag = Bag::new(&data);
                pieces += bag.pieces();
                bags.insert(index, (side.size, bag));
            }
            Ok(None) | Err(ReadError::Missing(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bags)
}

fn renamed(old: Change, new: Change, likeness: u8) -> Change {
    let mut change = Change {
        kind: ChangeKind::Renamed,
        old_path: Some(old.path),
        old: old.old,
        likeness: Some(likeness),
        ..new
    };
    change.flags = super::walk::flags(change.old.as_ref(), change.new.as_ref());
    change
}
