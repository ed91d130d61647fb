//! The place of the directory aside. It lies in a tree that others may write to while it is there, a running sandbox for
//! one. Whatever they put into it, or in its place, must not keep a turn from its end.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, mkdirat};
use rustix::io::{Errno, Result};

use super::aside::{GIT, keep_beside, within};
use crate::dir::{How, Kind, Mounts, Resolver, open_below, open_by, open_dir, stat_at, stat_fd};
use crate::os::{REFERENCE, let_owner_in};
use crate::path::RelPath;
use crate::remove::remove_at_within;
use crate::staging::STAGING;

/// Where the directory of this id goes, seen from the root.
pub(super) fn place(root: BorrowedFd<'_>, id: &str) -> RelPath {
    let in_git = || -> Result<bool> {
        let (top, git) = (stat_fd(root)?, stat_at(root, GIT.as_bytes())?);
        Ok(git.kind == Kind::Directory && !git.is_mount && git.dev == top.dev)
    };
    let name = format!("{STAGING}{id}");
    let path = if in_git().unwrap_or(false) { format!("{GIT}/{name}") } else { name };
    RelPath::new(path).unwrap_or_default()
}

/// Whether a path is such a place.
pub(super) fn is_place(path: &str) -> bool {
    let name = path.strip_prefix(".git/").unwrap_or(path);
    name.starts_with(STAGING) && !name.contains('/')
}

fn parent<'p>(root: BorrowedFd<'_>, path: &'p RelPath) -> Result<Option<(OwnedFd, &'p [u8])>> {
    let Some(name) = path.name() else { return Ok(None) };
    Ok(open(root, &path.parent().unwrap_or_default())?.map(|parent| (parent, name)))
}

/// Makes the directory. What is in its place was left by somebody who was broken off, or was put there by others.
pub(super) fn make(root: BorrowedFd<'_>, path: &RelPath, id: &str) -> Result<OwnedFd> {
    let (parent, name) = parent(root, path)?.ok_or(Errno::NOENT)?;
    match within(parent.as_fd(), || mkdirat(&parent, name, Mode::RWXU)) {
        Err(Errno::EXIST) => {
            clear_away(parent.as_fd(), name, id)?;
            within(parent.as_fd(), || mkdirat(&parent, name, Mode::RWXU))?;
        }
        made => made?,
    }
    open_dir(parent.as_fd(), name)
}

/// Opens the directory, or makes it: at the top if the git directory that it was in has gone. Returns where it is.
pub(super) fn open_or_make(root: BorrowedFd<'_>, path: &RelPath, id: &str) -> Result<(OwnedFd, RelPath)> {
    if let Some(found) = open(root, path)? {
        return Ok((found, path.clone()));
    }
    match make(root, path, id) {
        Err(Errno::NOENT) => {
            let top = RelPath::new(path.name().unwrap_or_default()).unwrap_or_default();
            Ok((make(root, &top, id)?, top))
        }
        made => Ok((made?, path.clone())),
    }
}

/// Opens the directory; none if it is gone.
pub(super) fn open(root: BorrowedFd<'_>, path: &RelPath) -> Result<Option<OwnedFd>> {
    let opened = match open_below(root, path) {
        // Others took the owner's permissions away.
        Err(Errno::ACCESS) => unlock(root, path).and_then(|()| open_below(root, path)),
        opened => opened,
    };
    match opened {
        Ok(aside) => Ok(Some(aside)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn unlock(root: BorrowedFd<'_>, path: &RelPath) -> Result<()> {
    let how = How { flags: REFERENCE | OFlags::DIRECTORY, mounts: Mounts::Refuse };
    let_owner_in(&open_by(Resolver::here(), root, path.as_bytes(), how)?)
}

/// Removes the directory with all that is in it. Returns the new name of what could not be removed.
pub(super) fn remove(root: BorrowedFd<'_>, path: &RelPath, id: &str) -> Result<Option<RelPath>> {
    let Some((parent, name)) = parent(root, path)? else { return Ok(None) };
    let Some(kept) = clear_away(parent.as_fd(), name, id)? else { return Ok(None) };
    let above = path.parent().unwrap_or_default();
    above.join(&kept).map(Some).map_err(|_| Errno::NAMETOOLONG)
}

/// How many rounds of removal there are: each takes away sixteen levels, and what others put there since the last one.
const ROUNDS: usize = 16;
/// How often to try again when others came between.
const TRIES: usize = 4;

/// Removes whatever `name` in `parent` is, and does not follow links. What cannot be removed (it belongs to others, or they
/// keep adding to it) gets another name, which is returned: the directory is not ours any more, and the work goes on.
pub fn clear_away(parent: BorrowedFd<'_>, name: &[u8], id: &str) -> Result<Option<Vec<u8>>> {
    let mut removed = Ok(());
    for _ in 0..TRIES {
        removed = within(parent, || remove_at_within(parent, name, ROUNDS));
        match removed {
            Ok(()) => return Ok(None),
            Err(errno) if !is_of_others(errno) => return Err(errno),
            Err(_) => {}
        }
    }
    match within(parent, || keep_beside((parent, name), (parent, name), id)) {
        Ok(kept) => Ok(Some(kept)),
        // They have removed it themselves.
        Err(Errno::NOENT) => Ok(None),
        Err(_) => removed.map(|()| None),
    }
}

/// Whether others can be the cause. A disk that fails is not: then the directory stays, and the next command removes it.
fn is_of_others(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::PERM
            | Errno::ACCESS
            | Errno::NOTEMPTY
            | Errno::EXIST
            | Errno::BUSY
            | Errno::ISDIR
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::XDEV
    )
}
