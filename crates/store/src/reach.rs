//! What can be reached: from commits to their trees and parents, from trees to what they name.

use std::collections::HashSet;

use crate::id::ObjectId;
use crate::object::commit;
use crate::object::tree::{self, EntryMode};
use crate::object::{ObjectKind, ReadError, ReadObjects};

/// What an object must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Commit,
    Tree,
    /// It is enough that it is there.
    Blob,
    /// Anything: a commit, a tag of one, a tree, a blob.
    Root,
}

/// Whether the parents of a commit are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum History {
    Follow,
    Leave,
}

/// Everything reached so far; it can be told of more roots at any time.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    pub(crate) objects: HashSet<ObjectId>,
    /// What is wrong on the way.
    pub(crate) faults: Vec<(ObjectId, ReadError)>,
}

impl Reached {
    /// Follows everything from a root.
    pub(crate) fn follow(&mut self, from: &dyn ReadObjects, root: (ObjectId, Wanted), history: History) {
        let mut open = vec![root];
        while let Some((id, wanted)) = open.pop() {
            if !self.objects.insert(id) {
                continue;
            }
            if let Err(error) = step(from, (id, wanted), history, &mut open) {
                self.faults.push((id, error));
            }
        }
    }
}

fn step(
    from: &dyn ReadObjects,
    (id, wanted): (ObjectId, Wanted),
    history: History,
    open: &mut Vec<(ObjectId, Wanted)>,
) -> Result<(), ReadError> {
    if wanted == Wanted::Blob {
        // Asking for the header would look at the disk for each file there is.
        return if from.contains(&id) { Ok(()) } else { from.header(&id).map(|_| ()) };
    }
    if wanted == Wanted::Root && from.header(&id)?.0 == ObjectKind::Blob {
        return Ok(());
    }
    let object = from.read(&id)?;
    let damaged = |what: String| ReadError::Damaged { id, what };
    match (wanted, object.kind) {
        (Wanted::Commit | Wanted::Root, ObjectKind::Commit) => {
            let found = commit::references(&object.data).map_err(|error| damaged(error.to_string()))?;
            open.push((found.tree, Wanted::Tree));
            if history == History::Follow {
                open.extend(found.parents.into_iter().map(|parent| (parent, Wanted::Commit)));
            }
        }
        (Wanted::Tree | Wanted::Root, ObjectKind::Tree) => {
            for entry in tree::references(id.kind(), &object.data) {
                let (mode, id) = entry.map_err(|error| damaged(error.to_string()))?;
                match mode {
                    EntryMode::Tree => open.push((id, Wanted::Tree)),
                    EntryMode::Gitlink => {}
                    EntryMode::File | EntryMode::Executable | EntryMode::Symlink => {
                        open.push((id, Wanted::Blob));
                    }
                }
            }
        }
        (Wanted::Root, ObjectKind::Tag) => {
            let target = commit::tag_target(&object.data).map_err(|error| damaged(error.to_string()))?;
            open.push((target, Wanted::Root));
        }
        (wanted, found) => {
            let wanted = if wanted == Wanted::Tree { ObjectKind::Tree } else { ObjectKind::Commit };
            return Err(ReadError::Kind { id, found, wanted });
        }
    }
    Ok(())
}
