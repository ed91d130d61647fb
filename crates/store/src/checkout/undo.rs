//! Takes away what a checkout wrote before it was stopped.
//!
//! Only what the state names goes, and only if it is what would have been written so far: a file that holds a beginning
//! of its content, a symlink with that target, a directory that is empty then. Whatever else is there was put there by
//! somebody else and stays.

use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, fchmod, readlinkat, unlinkat};

use super::way::{Near, Way};
use crate::dir::{Kind, open_file, stat_at};
use crate::id::ObjectId;
use crate::object::{ObjectKind, ReadError, ReadObjects};
use crate::state::{Directory, Limits, State, StateError, What};

/// Empties `target` of what a checkout of `state` may have left. Gives how many entries of the state stayed.
pub(crate) fn take_away(
    objects: &dyn ReadObjects,
    state: &State,
    target: BorrowedFd<'_>,
) -> Result<u64, StateError> {
    // Each directory before those in it; they are emptied the other way round.
    let mut found = vec![(Way::root(), state.root())];
    let mut near = Near::new(target);
    let mut at = 0;
    while let Some((way, below)) = found.get(at).cloned() {
        for entry in entries(objects, &way, &below)? {
            let Some(below) = entry.node.as_directory() else { continue };
            let Some(way) = way.to(&entry.name) else { continue };
            if let Ok(there) = near.open(&way) {
                near.keep(Arc::clone(&way), there);
                found.push((way, *below));
            }
        }
        at += 1;
        if found.len() as u64 > Limits::default().entries {
            return Err(StateError::TooMany);
        }
    }
    let mut left = 0;
    for (way, below) in found.into_iter().rev() {
        let Ok(here) = near.open(&way) else { continue };
        // Its owner may have to be let in again.
        let _unlocked = fchmod(&here, Mode::RWXU);
        for entry in entries(objects, &way, &below)? {
            if !gone(objects, here.as_fd(), &entry.name, &entry.node.what) {
                left += 1;
            }
        }
    }
    Ok(left)
}

fn entries(
    objects: &dyn ReadObjects,
    way: &Way,
    below: &Directory,
) -> Result<Vec<crate::state::Entry>, StateError> {
    if way.is_root() { Ok(below.read_root(objects)?.entries) } else { below.read(objects) }
}

fn gone(objects: &dyn ReadObjects, parent: BorrowedFd<'_>, name: &[u8], what: &What) -> bool {
    let Ok(meta) = stat_at(parent, name) else { return true };
    let flags = match (what, meta.kind) {
        (What::File(id), Kind::File) if begins(objects, parent, name, id) => AtFlags::empty(),
        (What::Symlink(id), Kind::Symlink) => {
            let wanted = objects.read_kind(id, ObjectKind::Blob).ok();
            let found = readlinkat(parent, name, Vec::new()).ok();
            if wanted.is_none() || wanted != found.map(std::ffi::CString::into_bytes) {
                return false;
            }
            AtFlags::empty()
        }
        (What::Directory(_) | What::Gitlink(_), Kind::Directory) => AtFlags::REMOVEDIR,
        _ => return false,
    };
    unlinkat(parent, name, flags).is_ok()
}

/// Whether the file is a beginning of its content.
fn begins(objects: &dyn ReadObjects, parent: BorrowedFd<'_>, name: &[u8], id: &ObjectId) -> bool {
    let Ok(meta) = stat_at(parent, name) else { return false };
    let wanted = match objects.read_kind(id, ObjectKind::Blob) {
        Ok(data) => data,
        // Too large to be held: its length must do.
        Err(ReadError::TooLarge { size, .. }) => return meta.size <= size,
        Err(_) => return false,
    };
    let Ok(file) = open_file(parent, name, &meta) else { return meta.size == 0 };
    let mut found = Vec::new();
    let most = wanted.len() as u64 + 1;
    std::fs::File::from(file).take(most).read_to_end(&mut found).is_ok() && wanted.starts_with(&found)
}
