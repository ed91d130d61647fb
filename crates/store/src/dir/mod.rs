//! Reaching entries of a foreign tree by handle.
//!
//! A name that a sandbox made may be a symlink to the user's keys, a pipe that blocks whoever opens it, or
//! be exchanged between two looks. So no function here takes a joined path: each resolves beneath a
//! directory handle with `openat2`, never through a symlink, a magic link or a mount, never blocking, and
//! never becoming the controlling terminal. There is no limit on depth: [`open_below`] goes down in chunks
//! shorter than the kernel's `PATH_MAX`, and [`Descent`] keeps a bounded number of descriptors. Where `openat2` is
//! missing or forbidden, the same is done one component at a time.

mod attribute;
mod descent;
mod stepwise;

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::{Errno, Result};

pub use attribute::{attribute_names, attribute_value};
pub use descent::{Descent, Moved};

pub use crate::entry::{Kind, Meta};
use crate::os::{self, REFERENCE, UNTOUCHED};
pub use crate::os::{Mounts, birth_at, stat_at, stat_fd};
use crate::path::RelPath;

/// The longest string given to one system call; `PATH_MAX` is 4096 with its terminating zero.
const CHUNK: usize = 4000;

/// How often an open that the kernel asks to repeat is repeated.
const RETRIES: usize = 64;

/// One name of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    pub bytes: Vec<u8>,
    /// What the directory says it is, where the file system says so.
    pub kind: Option<Kind>,
}

/// Opens the directory `path` that the user named. Symlinks on the way are the user's own.
pub fn open_named(path: &std::path::Path) -> Result<OwnedFd> {
    openat(CWD, path, directory() | OFlags::CLOEXEC, Mode::empty())
}

/// Opens the directory that `dir` is a handle of again, for reading, with an own position.
pub fn reopen(dir: BorrowedFd<'_>) -> Result<OwnedFd> {
    open(dir, b".", directory())
}

/// Opens the directory `name` in `parent` for reading.
pub fn open_dir(parent: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd> {
    open(parent, name, directory())
}

/// Opens the regular file `name` in `parent` for reading, without touching its access time where allowed.
///
/// `meta` is what was seen there before: anything else is refused with `ESTALE`.
pub fn open_file(parent: BorrowedFd<'_>, name: &[u8], meta: &Meta) -> Result<OwnedFd> {
    open_file_with(parent, name, meta, Mounts::Refuse)
}

/// The same, with a word about mounts.
pub fn open_file_with(parent: BorrowedFd<'_>, name: &[u8], meta: &Meta, mounts: Mounts) -> Result<OwnedFd> {
    let file = open_unseen(parent, name, mounts)?;
    still(file.as_fd(), meta)?;
    Ok(file)
}

/// Opens whatever `name` in `parent` is by now, in the same way. It must be looked at before it is used.
pub fn open_unseen(parent: BorrowedFd<'_>, name: &[u8], mounts: Mounts) -> Result<OwnedFd> {
    match open_with(parent, name, UNTOUCHED, mounts) {
        Err(Errno::PERM) => open_with(parent, name, OFlags::empty(), mounts),
        result => result,
    }
}

/// Refuses with `ESTALE` what is not the regular file that was seen before.
pub fn still(file: BorrowedFd<'_>, meta: &Meta) -> Result<()> {
    let found = fstat(file)?;
    let is_same = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_ino == meta.ino;
    if is_same { Ok(()) } else { Err(Errno::STALE) }
}

/// Opens the directory at `path` below `root`, however deep it is.
pub fn open_below(root: BorrowedFd<'_>, path: &RelPath) -> Result<OwnedFd> {
    open_below_with(root, path, Mounts::Refuse)
}

/// The same, with a word about mounts.
pub fn open_below_with(root: BorrowedFd<'_>, path: &RelPath, mounts: Mounts) -> Result<OwnedFd> {
    let mut rest = path.as_bytes();
    let mut at: Option<OwnedFd> = None;
    while rest.len() > CHUNK {
        let end = rest[..=CHUNK].iter().rposition(|byte| *byte == b'/').ok_or(Errno::NAMETOOLONG)?;
        let from = at.as_ref().map_or(root, AsFd::as_fd);
        at = Some(open_with(from, &rest[..end], REFERENCE | OFlags::DIRECTORY, mounts)?);
        rest = &rest[end + 1..];
    }
    let from = at.as_ref().map_or(root, AsFd::as_fd);
    if rest.is_empty() { reopen(from) } else { open_with(from, rest, directory(), mounts) }
}

/// Calls `each` for every name in the directory, in the order of the file system.
///
/// The handle's position is moved: a directory is listed once per handle.
pub fn each_name(dir: BorrowedFd<'_>, mut each: impl FnMut(&[u8], Option<Kind>)) -> Result<()> {
    os::each_entry(dir, |name, kind| {
        each(name, Kind::known(kind));
        ControlFlow::Continue(())
    })
}

/// All names of a directory, sorted.
pub fn names(dir: BorrowedFd<'_>) -> Result<Vec<Name>> {
    let mut names = Vec::new();
    each_name(dir, |bytes, kind| names.push(Name { bytes: bytes.to_vec(), kind }))?;
    names.sort_unstable();
    Ok(names)
}

fn directory() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY
}

fn open(parent: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd> {
    open_with(parent, name, flags, Mounts::Refuse)
}

fn open_with(parent: BorrowedFd<'_>, name: &[u8], flags: OFlags, mounts: Mounts) -> Result<OwnedFd> {
    open_by(Resolver::here(), parent, name, How { flags, mounts })
}

/// Who goes down a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolver {
    Kernel,
    Stepwise,
}

impl Resolver {
    /// What there is here.
    pub(crate) fn here() -> Self {
        if os::resolves() { Self::Kernel } else { Self::Stepwise }
    }
}

/// How the last component is opened, and what the way may cross.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) flags: OFlags,
    pub(crate) mounts: Mounts,
}

/// Opens `name`, one or more components, beneath `parent`.
pub(crate) fn open_by(by: Resolver, parent: BorrowedFd<'_>, name: &[u8], how: How) -> Result<OwnedFd> {
    let How { flags, mounts } = how;
    let mut always = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // `openat2` refuses flags that mean nothing for a bare reference.
    if !os::is_reference(flags) {
        always |= OFlags::NONBLOCK | OFlags::NOCTTY;
    }
    let try_open = || match by {
        Resolver::Kernel => os::resolve(parent, name, flags | always, mounts),
        Resolver::Stepwise => stepwise::open(parent, name, flags | always, mounts),
    };
    // The kernel says "again" when a rename elsewhere kept it from ruling out that the way led outside, but
    // also, for good, when another process holds a lease on the file: so not for ever.
    for _ in 0..RETRIES {
        match try_open() {
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return result,
        }
    }
    try_open()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> (tempfile::TempDir, OwnedFd) {
        let dir = tempfile::tempdir().unwrap();
        let root = open_named(dir.path()).unwrap();
        (dir, root)
    }

    #[test]
    fn follows_no_symlink_at_any_position() {
        let (dir, root) = tree();
        fs_err::create_dir_all(dir.path().join("a/b")).unwrap();
        fs_err::write(dir.path().join("a/b/f"), "x").unwrap();
        symlink("a", dir.path().join("link")).unwrap();
        symlink("f", dir.path().join("a/b/g")).unwrap();
        let path = |text| RelPath::new(text).unwrap();
        assert!(open_below(root.as_fd(), &path("a/b")).is_ok());
        assert_eq!(open_below(root.as_fd(), &path("link/b")).unwrap_err(), Errno::LOOP);
        assert!(open_below(root.as_fd(), &path("link")).is_err());
        let b = open_below(root.as_fd(), &path("a/b")).unwrap();
        let meta = stat_at(b.as_fd(), b"g").unwrap();
        assert_eq!(meta.kind, Kind::Symlink);
        assert_eq!(open_file(b.as_fd(), b"g", &meta).unwrap_err(), Errno::LOOP);
        assert_eq!(open_dir(b.as_fd(), b"../..").unwrap_err(), Errno::XDEV);
    }

    #[test]
    fn a_pipe_does_not_block_and_is_refused() {
        let (_dir, root) = tree();
        rustix::fs::mkfifoat(&root, "pipe", Mode::RUSR).unwrap();
        let meta = stat_at(root.as_fd(), b"pipe").unwrap();
        assert_eq!(open_file(root.as_fd(), b"pipe", &meta).unwrap_err(), Errno::STALE);
    }

    #[test]
    fn lists_names_that_are_not_text() {
        let (_dir, root) = tree();
        let odd = [b"\xff\n".to_vec(), vec![b'n'; 255]];
        for name in &odd {
            rustix::fs::mkdirat(&root, name, Mode::RWXU).unwrap();
        }
        let found: Vec<_> = names(root.as_fd()).unwrap().into_iter().map(|name| name.bytes).collect();
        assert_eq!(found, [odd[1].clone(), odd[0].clone()]);
    }
}
