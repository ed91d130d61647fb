//! One entry of a directory: made in the copy as it is in the source.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::PoisonError;

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags, chownat, fchmod, fchown,
    fgetxattr, flistxattr, fsetxattr, futimens, linkat, mkdirat, openat, readlinkat, symlinkat, utimensat,
};
use rustix::io::{Errno, Result};

use super::work::{Work, is_gone, read, write};
use super::{CopyError, content};
use crate::dir::{Kind, Meta, Mounts, open_below, open_file_with};
use crate::os::make_pipe;
use crate::path::RelPath;

/// Names and values of attributes are at most this long.
const ATTRIBUTE_BYTES: usize = 64 << 10;

/// An entry: the directory it is in, the one it shall be in, its path from the top, and what it is.
pub(super) struct Site<'a> {
    pub(super) from: BorrowedFd<'a>,
    pub(super) to: BorrowedFd<'a>,
    pub(super) path: &'a RelPath,
    pub(super) meta: &'a Meta,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// Its entries are still to come.
    Directory,
    /// Nothing more to do.
    Done,
}

impl Site<'_> {
    fn name(&self) -> &[u8] {
        self.path.name().expect("an entry has a name")
    }
}

impl Work<'_> {
    pub(super) fn entry(&self, site: &Site<'_>) -> std::result::Result<Made, CopyError> {
        let Site { to, path, meta, .. } = *site;
        let made = |result: Result<()>| result.map_err(|errno| write(path, errno));
        match meta.kind {
            Kind::Directory => {
                made(mkdirat(to, site.name(), Mode::RWXU))?;
                return Ok(Made::Directory);
            }
            Kind::File => self.file(site)?,
            Kind::Symlink => match readlinkat(site.from, site.name(), Vec::new()) {
                Err(errno) if is_gone(errno) || errno == Errno::INVAL => {}
                Err(errno) => return Err(read(path, errno)),
                Ok(text) => {
                    made(symlinkat(text, to, site.name()))?;
                    made(settle_name(site))?;
                }
            },
            Kind::Fifo => match make_pipe(to, site.name(), meta.mode) {
                // Where none can be made, whatever the file system.
                Err(Errno::OPNOTSUPP) => self.skip(path, "is a pipe"),
                pipe => made(pipe.and_then(|()| settle_name(site)))?,
            },
            Kind::Socket => self.skip(path, "is a socket"),
            Kind::Character | Kind::Block => self.skip(path, "is a device"),
        }
        Ok(Made::Done)
    }

    fn file(&self, site: &Site<'_>) -> std::result::Result<(), CopyError> {
        let Site { path, meta, .. } = *site;
        let from = match open_file_with(site.from, site.name(), meta, Mounts::Cross) {
            Err(errno) if is_gone(errno) => return Ok(()),
            Err(Errno::ACCESS | Errno::PERM) => {
                self.skip(path, "may not be read");
                return Ok(());
            }
            result => result.map_err(|errno| read(path, errno))?,
        };
        let Some(to) = self.create(site)? else { return Ok(()) };
        let bytes = content::copy(self, &from, &to, path)?;
        attributes(&from, &to);
        settle(&to, meta).map_err(|errno| write(path, errno))?;
        self.copied(bytes);
        Ok(())
    }

    /// A new file, or nothing if it is another name of one that was copied.
    fn create(&self, site: &Site<'_>) -> std::result::Result<Option<OwnedFd>, CopyError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let new = || {
            let file = openat(site.to, site.name(), flags, Mode::RUSR | Mode::WUSR);
            file.map(Some).map_err(|errno| write(site.path, errno))
        };
        if site.meta.links < 2 {
            return new();
        }
        // Held until the file is there, so that no other thread looks for it too early.
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let id = (site.meta.dev, site.meta.ino);
        let Some(first) = names.get(&id) else {
            let made = new()?;
            names.insert(id, site.path.clone());
            return Ok(made);
        };
        self.link(first, site).map_err(|errno| write(site.path, errno))?;
        Ok(None)
    }

    fn link(&self, first: &RelPath, site: &Site<'_>) -> Result<()> {
        let holder = open_below(self.target, &first.parent().unwrap_or_default())?;
        let name = first.name().ok_or(Errno::INVAL)?;
        linkat(&holder, name, site.to, site.name(), AtFlags::empty())
    }
}

/// Owner, mode and time of an open file or directory.
pub(super) fn settle(made: &OwnedFd, meta: &Meta) -> Result<()> {
    forgiving(fchown(made, Some(Uid::from_raw(meta.uid)), Some(Gid::from_raw(meta.gid))))?;
    fchmod(made, Mode::from_raw_mode(meta.mode.into()))?;
    futimens(made, &times(meta))
}

/// Owner and time of something that is not opened.
fn settle_name(site: &Site<'_>) -> Result<()> {
    let (uid, gid) = (Uid::from_raw(site.meta.uid), Gid::from_raw(site.meta.gid));
    forgiving(chownat(site.to, site.name(), Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW))?;
    utimensat(site.to, site.name(), &times(site.meta), AtFlags::SYMLINK_NOFOLLOW)
}

/// Only root may give files away; the caller's copies are the caller's.
fn forgiving(result: Result<()>) -> Result<()> {
    match result {
        Err(Errno::PERM | Errno::INVAL) => Ok(()),
        result => result,
    }
}

fn times(meta: &Meta) -> Timestamps {
    const SECOND: i64 = 1_000_000_000;
    let modified =
        Timespec { tv_sec: meta.mtime_ns.div_euclid(SECOND), tv_nsec: meta.mtime_ns.rem_euclid(SECOND) };
    Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, last_modification: modified }
}

/// Copies the attributes that belong to users. A file system without them is no reason to stop.
pub(super) fn attributes(from: &OwnedFd, to: &OwnedFd) {
    // Most files have none, which a single byte is enough to learn.
    match flistxattr(from, &mut [0_u8; 1][..]) {
        Ok(0) => return,
        Err(errno) if errno != Errno::RANGE => return,
        _ => {}
    }
    let mut list = vec![0_u8; ATTRIBUTE_BYTES];
    let Ok(length) = flistxattr(from, &mut list[..]) else { return };
    let mut value = vec![0_u8; ATTRIBUTE_BYTES];
    for name in list[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        if let Ok(length) = fgetxattr(from, name, &mut value[..]) {
            let _not_there_then = fsetxattr(to, name, &value[..length], XattrFlags::empty());
        }
    }
}
