//! Putting right what someone left unfinished. Cheap enough to be done whenever a store is opened.

use std::io;

use super::{Store, StoreError, lost, refs};
use crate::owner::Owner;

pub(super) fn recover(store: &Store) -> Result<(), StoreError> {
    remove_temporary(store)?;
    refs::finish_removal(store)?;
    lost::settle(store)?;
    refs::restore_newest(store)
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
        match fs_err::remove_file(entry.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
