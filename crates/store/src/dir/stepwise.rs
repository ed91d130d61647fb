//! The way down without `openat2`: one component at a time, each by the handle of the one before.
//!
//! Older kernels do not have that call, and some system call filters refuse it. What it promises can be had without
//! it, for more system calls: no component is followed if it is a symlink or a magic link, none is `..`, and none
//! lies on another mount. Before Linux 5.8 a mount is known by its device only, so a bind mount of the same file
//! system is not seen there.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{Errno, Result};

use super::Mounts;
use crate::os::{REFERENCE, mount_of};

/// Opens `path` below `parent` with `flags`, which say what becomes of the last component.
pub(super) fn open(parent: BorrowedFd<'_>, path: &[u8], flags: OFlags, mounts: Mounts) -> Result<OwnedFd> {
    let mut parts = path.split(|byte| *byte == b'/').peekable();
    let home = mount_of(parent)?;
    let mut at: Option<OwnedFd> = None;
    while let Some(part) = parts.next() {
        match part {
            // As `openat2` says it.
            b".." | b"" => return Err(Errno::XDEV),
            _ if part.contains(&0) => return Err(Errno::INVAL),
            _ => {}
        }
        let from = at.as_ref().map_or(parent, |fd| fd.as_fd());
        let last = parts.peek().is_none();
        let how = if last { flags } else { REFERENCE | OFlags::DIRECTORY };
        let next = openat(from, part, how | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| if errno == Errno::NOTDIR { why_not(from, part) } else { errno })?;
        if mounts == Mounts::Refuse && mount_of(next.as_fd())? != home {
            return Err(Errno::XDEV);
        }
        at = Some(next);
    }
    at.ok_or(Errno::NOENT)
}

/// A symlink where a directory was wanted is reported as one.
fn why_not(from: BorrowedFd<'_>, name: &[u8]) -> Errno {
    match super::stat_at(from, name) {
        Ok(meta) if meta.kind == super::Kind::Symlink => Errno::LOOP,
        _ => Errno::NOTDIR,
    }
}
