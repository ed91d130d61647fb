//! Writes a layer that hides chosen names of the source.
//!
//! A *pins* layer lies between upper and source. A whiteout in it makes the name not exist for the sandbox,
//! without touching the source and without the sandbox being able to undo it. The directories on the way
//! to a whiteout merge with those of the source, but an overlay shows the mode and owner of the topmost
//! one, so they are made like the ones they stand for.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Gid, Mode, Uid, fchmod, fchown, mkdirat};
use rustix::io::{Errno, Result};

use crate::dir::{open_dir, reopen, stat_at, stat_fd};
use crate::os::make_whiteout;
use crate::path::RelPath;

/// Why a whiteout could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot hide `{}`", path.display_escaped())]
pub struct PinsError {
    pub path: RelPath,
    #[source]
    pub source: io::Error,
}

/// Hides every path of `paths` in the layer `pins`. What is already hidden stays so.
///
/// Directories on the way take mode and owner from `lower` where it has them; an owner that the caller may
/// not give away stays the caller.
pub fn write_whiteouts(
    pins: BorrowedFd<'_>,
    lower: Option<BorrowedFd<'_>>,
    paths: &[RelPath],
) -> std::result::Result<(), PinsError> {
    for path in paths {
        hide(pins, lower, path).map_err(|errno| PinsError { path: path.clone(), source: errno.into() })?;
    }
    Ok(())
}

fn hide(pins: BorrowedFd<'_>, lower: Option<BorrowedFd<'_>>, path: &RelPath) -> Result<()> {
    let name = path.name().ok_or(Errno::INVAL)?;
    let mut dir = reopen(pins)?;
    let mut model = lower.map(reopen).transpose()?;
    for component in path.parent().unwrap_or_default().components() {
        model = model.and_then(|model| open_dir(model.as_fd(), component).ok());
        dir = make_dir(dir.as_fd(), component, model.as_ref())?;
    }
    match make_whiteout(dir.as_fd(), name) {
        Err(Errno::EXIST) if stat_at(dir.as_fd(), name)?.is_null_device() => Ok(()),
        result => result,
    }
}

/// A directory like `model`, or the one that is there.
pub(super) fn make_dir(parent: BorrowedFd<'_>, name: &[u8], model: Option<&OwnedFd>) -> Result<OwnedFd> {
    match mkdirat(parent, name, Mode::RWXU) {
        Err(Errno::EXIST) => return open_dir(parent, name),
        result => result?,
    }
    let dir = open_dir(parent, name)?;
    let Some(model) = model else { return Ok(dir) };
    let meta = stat_fd(model.as_fd())?;
    match fchown(&dir, Some(Uid::from_raw(meta.uid)), Some(Gid::from_raw(meta.gid))) {
        Ok(()) | Err(Errno::PERM | Errno::INVAL) => {}
        Err(errno) => return Err(errno),
    }
    fchmod(&dir, Mode::from_raw_mode(meta.mode.into()))?;
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::dir::open_named;

    #[test]
    fn hides_names_in_directories_like_those_of_the_source() {
        let (pins, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs_err::create_dir_all(source.path().join("a/b")).unwrap();
        fs_err::set_permissions(source.path().join("a"), PermissionsExt::from_mode(0o2751)).unwrap();
        let (top, below) = (open_named(pins.path()).unwrap(), open_named(source.path()).unwrap());
        let paths = ["a/b/.env", "a/key", "a/key", ".env"].map(|path| RelPath::new(path).unwrap());
        write_whiteouts(top.as_fd(), Some(below.as_fd()), &paths).unwrap();
        write_whiteouts(top.as_fd(), None, &paths).unwrap();
        for path in &paths {
            let parent = crate::dir::open_below(top.as_fd(), &path.parent().unwrap()).unwrap();
            assert!(stat_at(parent.as_fd(), path.name().unwrap()).unwrap().is_null_device(), "{path:?}");
        }
        assert_eq!(stat_at(top.as_fd(), b"a").unwrap().mode, 0o2751);
    }

    #[test]
    fn refuses_to_replace_or_to_leave() {
        let pins = tempfile::tempdir().unwrap();
        let top = open_named(pins.path()).unwrap();
        fs_err::write(pins.path().join("taken"), "").unwrap();
        std::os::unix::fs::symlink("/", pins.path().join("link")).unwrap();
        for path in [RelPath::new("taken").unwrap(), RelPath::new("link/x").unwrap(), RelPath::root()] {
            assert!(write_whiteouts(top.as_fd(), None, &[path]).is_err());
        }
    }
}
