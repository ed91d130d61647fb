//! In which order objects are packed, so that what is alike meets.
//!
//! All states of one path stand together, the newest first: it is read most often, so it stands for itself and the
//! older ones are told by it. Paths follow each other as a checkout meets them. Where an object is found is seen by
//! walking from the snapshots; what only history knows has no path and is ordered by its size.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::Part;
use crate::id::ObjectId;
use crate::meta::Snapshot;
use crate::object::{EntryMode, ObjectKind, ReadError, tree};
use crate::pack::{BaseCache, Place};

/// No path leads there.
pub(super) const NOWHERE: u32 = u32::MAX;

/// An object that is to be packed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    part: u32,
    place: u32,
    pub(super) kind: ObjectKind,
    pub(super) size: u64,
    /// Paths are counted in the order of the walk.
    pub(super) path: u32,
    /// When the walk met it.
    seen: u32,
    /// Files whose names end alike may be alike.
    pub(super) ending: u32,
}

impl Entry {
    pub(super) fn part<'p>(&self, parts: &'p [Part]) -> &'p Part {
        &parts[self.part as usize]
    }

    pub(super) fn place<'p>(&self, parts: &'p [Part]) -> &'p Place {
        &self.part(parts).places[self.place as usize]
    }
}

/// All objects of `parts`, each once, in the order in which they are packed.
pub(super) fn entries(parts: &[Part], snapshots: &[Snapshot]) -> Result<Vec<Entry>, ReadError> {
    let mut entries = listed(parts)?;
    let mut walk =
        Walk { parts, entries: &mut entries, paths: HashMap::new(), cache: BaseCache::default(), seen: 0 };
    for snapshot in snapshots.iter().rev() {
        for (root, id) in [snapshot.id, snapshot.tree, snapshot.extra].into_iter().enumerate() {
            walk.follow(id, Sight { path: hash(0, &[u8::try_from(root).unwrap_or_default()]), ending: 0 })?;
        }
    }
    entries.sort_by_key(|entry| (entry.kind, entry.path, entry.seen, Reverse(entry.size)));
    Ok(entries)
}

/// All objects, sorted by id.
fn listed(parts: &[Part]) -> Result<Vec<Entry>, ReadError> {
    let mut places = Vec::new();
    for (part, one) in (0_u32..).zip(parts) {
        places.extend((0_u32..).zip(&one.places).map(|(place, found)| (found.id, part, place)));
    }
    places.sort_unstable();
    places.dedup_by_key(|(id, ..)| *id);
    let entry = |(_, part, place): (ObjectId, u32, u32)| {
        let from = &parts[part as usize];
        let (kind, size) = from.pack.described(&from.places[place as usize])?;
        Ok(Entry { part, place, kind, size, path: NOWHERE, seen: u32::MAX, ending: 0 })
    };
    places.into_iter().map(entry).collect()
}

/// How something was met.
#[derive(Clone, Copy)]
struct Sight {
    /// A hash of the names that lead there.
    path: u64,
    ending: u32,
}

impl Sight {
    fn below(self, mode: EntryMode, name: &[u8]) -> Self {
        let path = hash(self.path, name);
        // A directory is like no other: it holds ids.
        let ending = if mode == EntryMode::Tree { path } else { hash(0, ending(name)) };
        Self { path, ending: short(ending) }
    }
}

struct Walk<'a> {
    parts: &'a [Part],
    /// Sorted by id.
    entries: &'a mut [Entry],
    /// Which number a path has.
    paths: HashMap<u64, u32>,
    cache: BaseCache,
    seen: u32,
}

impl Walk<'_> {
    /// Goes down from an object, as far as it was not met before and is to be packed.
    fn follow(&mut self, root: ObjectId, sight: Sight) -> Result<(), ReadError> {
        let mut open = vec![(root, sight)];
        while let Some((id, sight)) = open.pop() {
            let Some(entry) = self.meet(&id, sight) else { continue };
            if entry.kind != ObjectKind::Tree {
                continue;
            }
            let object = entry.part(self.parts).pack.checked(entry.place(self.parts), &self.cache)?;
            let start = open.len();
            for below in tree::named(id.kind(), &object.data) {
                // Whether a tree is sound is not asked here: it is packed as it is.
                let Ok((mode, name, id)) = below else { break };
                open.push((id, sight.below(mode, name)));
            }
            // The last is taken first.
            open[start..].reverse();
        }
        Ok(())
    }

    /// The object, if it is met for the first time.
    fn meet(&mut self, id: &ObjectId, sight: Sight) -> Option<Entry> {
        let parts = self.parts;
        let at = self.entries.binary_search_by(|entry| entry.place(parts).id.cmp(id)).ok()?;
        let entry = &mut self.entries[at];
        if entry.path != NOWHERE {
            return None;
        }
        let next = u32::try_from(self.paths.len()).unwrap_or(NOWHERE - 1);
        entry.path = *self.paths.entry(sight.path).or_insert(next);
        entry.ending = sight.ending;
        entry.seen = self.seen;
        self.seen = self.seen.saturating_add(1);
        Some(*entry)
    }
}

/// What comes after the last dot, else the whole name.
fn ending(name: &[u8]) -> &[u8] {
    name.iter().rposition(|byte| *byte == b'.').map_or(name, |dot| &name[dot..])
}

/// It decides only what is tried first, so names that collide cost nothing but space.
fn hash(above: u64, name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (above, name).hash(&mut hasher);
    hasher.finish()
}

fn short(hash: u64) -> u32 {
    u32::try_from(hash >> 32).expect("half of it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_whose_names_end_alike_may_be_alike() {
        let root = Sight { path: 0, ending: 0 };
        let of = |name: &str| root.below(EntryMode::File, name.as_bytes());
        assert_eq!(of("a.c").ending, of("b.c").ending);
        assert_ne!(of("a.c").ending, of("a.h").ending);
        assert_ne!(of("Makefile").ending, of("README").ending);
        assert_ne!(of("a.c").path, of("b.c").path);
        let [one, other] = ["x.d", "y.d"].map(|name| root.below(EntryMode::Tree, name.as_bytes()));
        assert_ne!(one.ending, other.ending, "directories are not");
        assert_ne!(one.below(EntryMode::File, b"a").path, other.below(EntryMode::File, b"a").path);
    }
}
