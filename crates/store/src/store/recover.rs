//! Putting right what someone left unfinished. Cheap enough to be done whenever a store is opened.

use std::io;
use std::path::Path;

use super::{Store, StoreError, lost, refs};
use crate::owner::Owner;
use crate::remove::remove_tree;

pub(super) fn recover(store: &Store) -> Result<(), StoreError> {
    remove_temporary(store)?;
    refs::finish_removal(store)?;
    lost::settle(store)?;
    refs::restore_newest(store)
}

/// Removes what somebody put there, whatever it is. It may be gone already.
pub(super) fn put_away(path: &Path) -> io::Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
            remove_tree(path).map_err(|error| error.source)
        }
        removed => removed,
    }
}

/// Removes the temporary files of those who are dead.
fn remove_temporary(store: &Store) -> io::Result<()> {
    let me = Owner::current();
    for entry in fs_err::read_dir(store.dir.join("tmp"))? {
        let entry = entry?;
        let owner: Option<Owner> = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if owner.is_some_and(|owner| owner == me || owner.is_alive()) {
            continue;
        }
        put_away(&entry.path())?;
    }
    Ok(())
}
