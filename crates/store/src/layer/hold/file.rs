//! One file, kept as it is.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid, fchmod, fchown, futimens, linkat, openat,
};
use rustix::io::{Errno, Result};
use rustix::process::{getegid, geteuid};

use super::Reword;
use crate::dir::{Meta, open_file};
use crate::os::mode;

/// A larger configuration is none.
pub(super) const CONFIG: u64 = 1 << 20;

/// Keeps `name` of one directory in another. What the caller may not read stays the source's own.
pub(super) fn hold_file(
    (from, to): (BorrowedFd<'_>, BorrowedFd<'_>),
    name: &[u8],
    meta: &Meta,
) -> Result<()> {
    if link((from, to), name)? {
        return Ok(());
    }
    copy_file((from, to), name, meta)
}

/// The same by a copy.
pub(super) fn copy_file(
    (from, to): (BorrowedFd<'_>, BorrowedFd<'_>),
    name: &[u8],
    meta: &Meta,
) -> Result<()> {
    let source = match open_file(from, name, meta) {
        Err(Errno::ACCESS) => return Ok(()),
        opened => File::from(opened?),
    };
    write(to, name, meta, &mut source.take(meta.size))
}

/// Keeps a configuration in the form that `reword` gives it.
pub(super) fn reworded(
    (from, to): (BorrowedFd<'_>, BorrowedFd<'_>),
    name: &[u8],
    meta: &Meta,
    reword: Reword<'_>,
) -> Result<()> {
    let mut text = Vec::new();
    let file = match open_file(from, name, meta) {
        Err(Errno::ACCESS) => return Ok(()),
        opened => File::from(opened?),
    };
    file.take(CONFIG + 1).read_to_end(&mut text).map_err(|error| errno(&error))?;
    if text.len() as u64 > CONFIG {
        return Err(Errno::FBIG);
    }
    // What was looked at, not what may be there by now.
    write(to, name, meta, &mut reword(&text).unwrap_or(text).as_slice())
}

/// Whether there is a link now. There is none to another file system, to a file of somebody else's, or beyond the
/// number of links that a file can have.
fn link((from, to): (BorrowedFd<'_>, BorrowedFd<'_>), name: &[u8]) -> Result<bool> {
    match linkat(from, name, to, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Err(Errno::NOENT),
        Err(_) => Ok(false),
        Ok(()) => Ok(true),
    }
}

/// A new file like the one it stands for. Its time matters: git tells by the time of an index which entries it must not
/// believe.
pub(super) fn write(to: BorrowedFd<'_>, name: &[u8], meta: &Meta, from: &mut dyn io::Read) -> Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file: OwnedFd = openat(to, name, flags, Mode::RUSR | Mode::WUSR)?;
    let mut file = File::from(file);
    io::copy(from, &mut file).and_then(|_| file.flush()).map_err(|error| errno(&error))?;
    if (meta.uid, meta.gid) != (geteuid().as_raw(), getegid().as_raw()) {
        match fchown(&file, Some(Uid::from_raw(meta.uid)), Some(Gid::from_raw(meta.gid))) {
            Ok(()) | Err(Errno::PERM | Errno::INVAL) => {}
            Err(errno) => return Err(errno),
        }
    }
    fchmod(file.as_fd(), mode(u32::from(meta.mode) & 0o777))?;
    let then = Timespec {
        tv_sec: meta.mtime_ns.div_euclid(1_000_000_000),
        tv_nsec: meta.mtime_ns.rem_euclid(1_000_000_000),
    };
    futimens(file.as_fd(), &Timestamps { last_access: then, last_modification: then })
}

pub(super) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
