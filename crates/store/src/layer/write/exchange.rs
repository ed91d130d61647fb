//! A new layer in the place of another, at once.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, RenameFlags, fchmod, fsync, mkdirat, renameat, renameat_with};
use rustix::io::Errno;

use super::LayerWriteError;
use crate::dir::{open_dir, open_named, stat_at};
use crate::os::write_out;
use crate::remove::remove_tree;

/// Fills a new directory beside `name` in `holder` by `fill`, and exchanges the two; the old one is removed then.
///
/// The sandbox must be stopped and its lock held. Whatever breaks this off, `name` is the old layer or the new one;
/// what was left beside it goes at the next call.
pub fn exchange_upper<T>(
    holder: &Path,
    name: &str,
    fill: impl FnOnce(BorrowedFd<'_>) -> Result<T, LayerWriteError>,
) -> Result<T, LayerWriteError> {
    let beside = format!("{name}.new");
    let path = holder.join(&beside);
    let cleared = || remove_tree(&path).map_err(|error| LayerWriteError::Exchange(error.source));
    cleared()?;
    let open = open_named(holder).map_err(|errno| LayerWriteError::Exchange(errno.into()))?;
    let new = make(&open, &beside, name).map_err(|errno| LayerWriteError::Exchange(errno.into()))?;
    let filled = match fill(new.as_fd()) {
        Ok(filled) => filled,
        Err(error) => {
            // What is left goes at the next call.
            let _gone = cleared();
            return Err(error);
        }
    };
    put(&open, &new, &beside, name).map_err(LayerWriteError::Exchange)?;
    drop(new);
    cleared()?;
    Ok(filled)
}

/// An empty directory with the mode of the one it will replace.
fn make(holder: &OwnedFd, beside: &str, name: &str) -> rustix::io::Result<OwnedFd> {
    mkdirat(holder, beside, Mode::RWXU)?;
    let new = open_dir(holder.as_fd(), beside.as_bytes())?;
    if let Ok(old) = stat_at(holder.as_fd(), name.as_bytes()) {
        fchmod(&new, Mode::from_raw_mode(old.mode.into()))?;
    }
    Ok(new)
}

fn put(holder: &OwnedFd, new: &OwnedFd, beside: &str, name: &str) -> io::Result<()> {
    write_out(new)?;
    match renameat_with(holder, beside, holder, name, RenameFlags::EXCHANGE) {
        Err(Errno::NOENT) => renameat(holder, beside, holder, name)?,
        done => done?,
    }
    Ok(fsync(holder)?)
}
