//! What of the work git's trees cannot say, and a merge or apply therefore does not bring: directories with nothing in
//! them, permissions other than the executable bit, attributes. All of it is listed by `diff`, so all of it is named.

use std::collections::{BTreeMap, BTreeSet};

use sandtable_sandbox::board;
use sandtable_store::RelPath;
use sandtable_store::diff::{self, Change, EntryType, Renames, Side};
use sandtable_store::id::ObjectId;
use sandtable_store::object::ReadObjects;
use sandtable_store::state::{Entry, Node, State, What};
use sandtable_store::store::Store;

use super::left_out::LeftOutWhy;

/// What git keeps of permissions.
const EXECUTABLE: u16 = 0o111;
/// What it gives every file.
const READABLE: u16 = 0o044;
/// What is never brought.
const SET_ID: u16 = 0o7000;
/// A directory with more than this many below it is not searched for a file.
const SEARCHED: usize = 10_000;

/// A part of the work that git cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Beyond {
    pub path: RelPath,
    pub why: LeftOutWhy,
    /// The permissions before; none where there was nothing, or nothing of this kind.
    pub old: Option<u16>,
    /// The permissions now.
    pub new: Option<u16>,
    /// Whether what git makes of it is near enough that nobody need hear of it.
    pub git_is_near: bool,
    pub is_directory: bool,
}

impl Beyond {
    /// Whether set-id bits are a part of it.
    pub(super) fn has_set_id(&self) -> bool {
        self.new.is_some_and(|new| (self.old.unwrap_or(0) ^ new) & SET_ID != 0)
    }
}

/// What lies between two snapshots and is in neither of their trees, in the order of paths.
pub fn beyond_git(
    store: &Store,
    base: &ObjectId,
    snapshot: &ObjectId,
) -> Result<Vec<Beyond>, board::BoardError> {
    let (from, to) = (store.state(base)?, store.state(snapshot)?);
    let options =
        diff::DiffOptions { renames: Renames::Ignore, file_bytes: 0, ..diff::DiffOptions::default() };
    let found = diff::diff(store.objects(), &from, &to, &options)?;
    let mut beyond = BTreeSet::new();
    let mut emptied = BTreeSet::new();
    for change in &found.changes {
        beyond.extend(folder(&found.changes, change));
        beyond.extend(permissions(&found.changes, change));
        beyond.extend(attributes(change));
        if change.new.is_none() && change.old.as_ref().is_some_and(|old| !is_directory(old)) {
            emptied.extend(change.path.parent());
        }
    }
    let (mut before, mut after) = (Walk::new(store.objects(), &from), Walk::new(store.objects(), &to));
    for path in above(&found.changes) {
        let (old, new) = (before.node(&path), after.node(&path));
        // One that became a file is a change of its own.
        if new.as_ref().is_none_or(is_folder) {
            let mode = |node: Option<Node>| node.filter(is_folder).map(|node| node.own.bits);
            beyond.extend(on_the_way(&found.changes, &path, (mode(old), mode(new))));
        }
    }
    let why = LeftOutWhy::EmptyDirectory;
    for path in standing(&mut after, emptied) {
        beyond.insert(Beyond {
            path,
            why,
            old: Some(0),
            new: Some(0),
            git_is_near: false,
            is_directory: true,
        });
    }
    Ok(beyond.into_iter().collect())
}

/// A directory without files that is new or gone.
fn folder(all: &[Change], change: &Change) -> Option<Beyond> {
    let mode = |side: &Option<Side>| side.as_ref().filter(|side| is_directory(side)).map(|side| side.mode);
    let (old, new) = (mode(&change.old), mode(&change.new));
    let is_empty = match (old, new) {
        (Some(_), None) if change.new.is_none() => {
            no_file_below(all, &change.path, |change| change.old.as_ref())
        }
        (None, Some(_)) => no_file_below(all, &change.path, |change| change.new.as_ref()),
        _ => false,
    };
    let why = LeftOutWhy::EmptyDirectory;
    is_empty.then(|| Beyond {
        path: change.path.clone(),
        why,
        old,
        new,
        git_is_near: false,
        is_directory: true,
    })
}

/// Directories that changes are in. One that came or went is no change of its own when something was in it.
fn above(all: &[Change]) -> BTreeSet<RelPath> {
    let mut found = BTreeSet::new();
    for change in all {
        let parents = std::iter::successors(change.path.parent(), RelPath::parent);
        for path in parents.take_while(|path| !path.is_root()) {
            if !found.insert(path) {
                break;
            }
        }
    }
    found
}

/// A directory that came or went with what is in it.
fn on_the_way(all: &[Change], path: &RelPath, (old, new): (Option<u16>, Option<u16>)) -> Option<Beyond> {
    let path = path.clone();
    match (old, new) {
        (None, Some(mode)) => {
            let git_is_near = mode & READABLE != 0 && mode & SET_ID == 0;
            Some(Beyond { path, why: LeftOutWhy::Permissions, old, new, git_is_near, is_directory: true })
        }
        (Some(_), None) if no_file_below(all, &path, |change| change.old.as_ref()) => Some(Beyond {
            path,
            why: LeftOutWhy::EmptyDirectory,
            old,
            new,
            git_is_near: false,
            is_directory: true,
        }),
        _ => None,
    }
}

fn is_folder(node: &Node) -> bool {
    matches!(node.what, What::Directory(_))
}

/// Permissions of what is still a file or a directory, or became one.
fn permissions(all: &[Change], change: &Change) -> Option<Beyond> {
    let new =
        change.new.as_ref().filter(|side| matches!(side.entry, EntryType::File | EntryType::Directory))?;
    let old = change.old.as_ref().filter(|old| old.entry == new.entry);
    let git_is_near = match old {
        Some(old) if old.mode == new.mode => return None,
        Some(old) if is_directory(old) => false,
        Some(old) => (old.mode ^ new.mode) & !EXECUTABLE == 0,
        // Its directory says it all.
        None if folder(all, change).is_some() => return None,
        // A new file that only its owner may read arrives as one that everybody may.
        None => new.mode & READABLE != 0 && new.mode & SET_ID == 0,
    };
    let is_directory = is_directory(new);
    let (old, new) = (old.map(|old| old.mode), Some(new.mode));
    let (path, why) = (change.path.clone(), LeftOutWhy::Permissions);
    Some(Beyond { path, why, old, new, git_is_near, is_directory })
}

fn attributes(change: &Change) -> Option<Beyond> {
    let new = change.new.as_ref()?;
    let old = change.old.as_ref().map(|old| old.attributes.as_slice()).unwrap_or_default();
    let (path, why) = (change.path.clone(), LeftOutWhy::Attributes);
    let is_directory = is_directory(new);
    let beyond = Beyond { path, why, old: None, new: None, git_is_near: false, is_directory };
    (old != new.attributes).then_some(beyond)
}

fn is_directory(side: &Side) -> bool {
    side.entry == EntryType::Directory
}

/// That a directory, all of which is new or gone, has no file on that side. The changes are in order.
fn no_file_below(all: &[Change], path: &RelPath, side: impl Fn(&Change) -> Option<&Side>) -> bool {
    let below = [path.as_bytes(), b"/"].concat();
    let start = all.partition_point(|change| change.path.as_bytes() < below.as_slice());
    let mut within = all[start..].iter().take_while(|change| change.path.as_bytes().starts_with(&below));
    !within.any(|change| side(change).is_some_and(|side| !is_directory(side)))
}

/// The nearest directories that are still there, as far as there is no file in them any more.
fn standing(walk: &mut Walk<'_>, emptied: BTreeSet<RelPath>) -> BTreeSet<RelPath> {
    let mut known: BTreeMap<RelPath, bool> = BTreeMap::new();
    for emptied in emptied {
        let ways = std::iter::successors(Some(emptied), RelPath::parent);
        for path in ways.take_while(|path| !path.is_root()) {
            if known.contains_key(&path) {
                break;
            }
            if let Some(node) = walk.node(&path) {
                known.insert(path, !has_file(walk.objects, node));
                break;
            }
        }
    }
    known.into_iter().filter_map(|(path, is_empty)| is_empty.then_some(path)).collect()
}

/// Looks paths up in their order, so that each directory is read once and not once for everything in it.
struct Walk<'a> {
    objects: &'a dyn ReadObjects,
    /// The directories on the way to the last path, from the top.
    open: Vec<(RelPath, Vec<Entry>)>,
}

impl<'a> Walk<'a> {
    fn new(objects: &'a dyn ReadObjects, state: &State) -> Self {
        let top = state.root().read_root(objects).map(|root| (RelPath::root(), root.entries));
        Self { objects, open: top.into_iter().collect() }
    }

    /// What is at a path; nothing where it cannot be read.
    fn node(&mut self, path: &RelPath) -> Option<Node> {
        let above = path.parent()?;
        let shared = self.open.iter().take_while(|(open, _)| above.is_within(open)).count();
        let mut at = shared.checked_sub(1)?;
        let names: Vec<&[u8]> = above.components().collect();
        for name in &names[at..] {
            let What::Directory(directory) =
                self.open[at].1[found(&self.open[at].1, name)?].node.what.clone()
            else {
                return None;
            };
            let entries = directory.read(self.objects).ok()?;
            self.open.truncate(at + 1);
            let path = self.open[at].0.join(name).ok()?;
            self.open.push((path, entries));
            at += 1;
        }
        let (_, entries) = &self.open[at];
        Some(entries[found(entries, path.name()?)?].node.clone())
    }
}

/// The place of a name among the entries of a directory, which are in order.
fn found(entries: &[Entry], name: &[u8]) -> Option<usize> {
    entries.binary_search_by(|entry| (*entry.name).cmp(name)).ok()
}

fn has_file(objects: &dyn ReadObjects, node: Node) -> bool {
    let mut waiting = vec![node];
    let mut seen = 0;
    while let Some(node) = waiting.pop() {
        let What::Directory(directory) = &node.what else { return true };
        let Ok(entries) = directory.read(objects) else { return true };
        waiting.extend(entries.into_iter().map(|entry| entry.node));
        seen += 1;
        if seen > SEARCHED {
            return true;
        }
    }
    false
}
