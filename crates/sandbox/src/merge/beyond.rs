//! What of the work git's trees cannot say, and a merge or apply therefore does not bring: directories with nothing in
//! them, permissions other than the executable bit, attributes. All of it is listed by `diff`, so all of it is named.

use std::collections::BTreeSet;

use sandtable_store::RelPath;
use sandtable_store::diff::{self, Change, EntryType, Renames, Side};
use sandtable_store::id::ObjectId;
use sandtable_store::object::ReadObjects;
use sandtable_store::state::{Node, State, What};
use sandtable_store::store::Store;

use super::outcome::LeftOutWhy;
use crate::board;

/// What git keeps of permissions.
const EXECUTABLE: u16 = 0o111;
/// What it gives every file.
const READABLE: u16 = 0o044;
/// A directory with more than this many below it is not searched for a file.
const SEARCHED: usize = 10_000;

/// What lies between two snapshots and is in neither of their trees.
pub fn beyond_git(
    store: &Store,
    base: &ObjectId,
    snapshot: &ObjectId,
) -> Result<Vec<(RelPath, LeftOutWhy)>, board::Error> {
    let (from, to) = (store.state(base)?, store.state(snapshot)?);
    let options = diff::Options { renames: Renames::Ignore, file_bytes: 0, ..diff::Options::default() };
    let found = diff::diff(store.objects(), &from, &to, &options)?;
    let mut left = BTreeSet::new();
    let mut emptied = BTreeSet::new();
    for change in &found.changes {
        left.extend(why(&found.changes, change).map(|why| (change.path.clone(), why)));
        if change.new.is_none() && change.old.as_ref().is_some_and(|old| !is_directory(old)) {
            emptied.extend(change.path.parent());
        }
    }
    for parent in emptied {
        left.extend(standing(store.objects(), &to, parent).map(|path| (path, LeftOutWhy::EmptyDirectory)));
    }
    Ok(left.into_iter().collect())
}

/// Why a change, or a part of it, is left out.
fn why(all: &[Change], change: &Change) -> Option<LeftOutWhy> {
    match (&change.old, &change.new) {
        (Some(old), None) if is_directory(old) => {
            no_file_below(all, &change.path, |change| change.old.as_ref())
        }
        (old, Some(new)) if is_directory(new) && old.as_ref().is_none_or(|old| !is_directory(old)) => {
            no_file_below(all, &change.path, |change| change.new.as_ref())
        }
        (Some(old), Some(new)) if old.entry == new.entry => {
            let kept = if is_directory(new) { 0 } else { EXECUTABLE };
            let permissions = (old.mode ^ new.mode) & !kept != 0;
            let attributes = old.attributes != new.attributes;
            permissions.then_some(LeftOutWhy::Permissions).or(attributes.then_some(LeftOutWhy::Attributes))
        }
        // A new file that only its owner may read arrives as one that everybody may.
        (_, Some(new)) if new.entry == EntryType::File && new.mode & READABLE == 0 => {
            Some(LeftOutWhy::Permissions)
        }
        _ => None,
    }
}

fn is_directory(side: &Side) -> bool {
    side.entry == EntryType::Directory
}

/// That a directory, all of which is new or gone, has no file on that side. The changes are in order.
fn no_file_below(
    all: &[Change],
    path: &RelPath,
    side: impl Fn(&Change) -> Option<&Side>,
) -> Option<LeftOutWhy> {
    let below = [path.as_bytes(), b"/"].concat();
    let start = all.partition_point(|change| change.path.as_bytes() < below.as_slice());
    let mut within = all[start..].iter().take_while(|change| change.path.as_bytes().starts_with(&below));
    let has_file = within.any(|change| side(change).is_some_and(|side| !is_directory(side)));
    (!has_file).then_some(LeftOutWhy::EmptyDirectory)
}

/// The nearest directory that is still there, if there is no file in it any more.
fn standing(objects: &dyn ReadObjects, state: &State, mut path: RelPath) -> Option<RelPath> {
    loop {
        if path.is_root() {
            return None;
        }
        match state.lookup(objects, &path).ok()? {
            Some(node) => return (!has_file(objects, node)).then_some(path),
            None => path = path.parent()?,
        }
    }
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
