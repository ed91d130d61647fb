//! The marks of an overlay, and the directories that carry them.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Gid, Mode, Uid, XattrFlags, fchown, fsetxattr, mkdirat};
use rustix::io::{Errno, Result};

use crate::dir::{Kind, open_dir, stat_at, stat_fd};
use crate::layer::attribute::OPAQUE;
use crate::os::make_whiteout;

/// Whether anything was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::layer) enum Made {
    New,
    /// Something of the same meaning was there already.
    Before,
}

/// Hides a name of the layers below.
pub(in crate::layer) fn whiteout(parent: BorrowedFd<'_>, name: &[u8]) -> Result<Made> {
    match make_whiteout(parent, name) {
        Err(Errno::EXIST) if stat_at(parent, name)?.is_null_device() => Ok(Made::Before),
        made => made.map(|()| Made::New),
    }
}

/// Hides everything that the layers below have in this directory.
pub(in crate::layer) fn opaque(directory: BorrowedFd<'_>) -> Result<()> {
    fsetxattr(directory, OPAQUE, b"y", XattrFlags::empty())
}

/// A directory for its owner only, or the one that is there.
pub(super) fn directory(parent: BorrowedFd<'_>, name: &[u8]) -> Result<(OwnedFd, Made)> {
    match mkdirat(parent, name, Mode::RWXU) {
        Err(Errno::EXIST) => Ok((open_dir(parent, name)?, Made::Before)),
        made => made.and_then(|()| Ok((open_dir(parent, name)?, Made::New))),
    }
}

/// Gives a directory the owner of the one it merges with; one that may not be given away stays the caller's.
pub(super) fn owned_like(directory: BorrowedFd<'_>, model: BorrowedFd<'_>) -> Result<()> {
    let meta = stat_fd(model.as_fd())?;
    if meta.kind != Kind::Directory {
        return Ok(());
    }
    match fchown(directory, Some(Uid::from_raw(meta.uid)), Some(Gid::from_raw(meta.gid))) {
        Err(Errno::PERM | Errno::INVAL) => Ok(()),
        done => done,
    }
}
