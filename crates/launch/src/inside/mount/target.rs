//! The places where things are mounted, opened component by component beneath the new root.
//!
//! Some places lie in directories that an earlier command of the same sandbox could write (the private
//! home, the workspace). So no symbolic link is followed on the way: one that stands in the way is an error.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, openat, symlinkat};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, move_mount};
use sandtable_protocol::step::Step;
use sandtable_protocol::wire::Failure;

use super::Done;
use crate::failpoint::follows_links;
use crate::step::Context as _;

/// What a mount point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File,
}

impl Kind {
    pub(super) fn of(mode: u32) -> Self {
        if FileType::from_raw_mode(mode) == FileType::Directory { Self::Directory } else { Self::File }
    }
}

/// An opened mount point.
pub(super) struct Place<'path> {
    handle: OwnedFd,
    path: &'path Path,
    pub(super) kind: Kind,
}

impl Place<'_> {
    /// Attaches a detached mount here.
    pub(super) fn attach(&self, mount: &OwnedFd) -> Done {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(mount, "", &self.handle, "", flags).context(|| Step::AttachMount(self.path.into()))
    }
}

/// Opens `target` beneath `root` and makes what is missing.
pub(super) fn prepare<'path>(root: &OwnedFd, target: &'path Path, kind: Kind) -> Done<Place<'path>> {
    let what = || Step::MakeMountPoint(target.into());
    let (parent, name) = parent(root.as_fd(), target)?;
    let handle = match kind {
        Kind::Directory => enter(parent.as_fd(), &name).context(what)?,
        Kind::File => file(parent.as_fd(), &name).context(what)?,
    };
    let found = Kind::of(fstat(&handle).context(what)?.st_mode);
    if found != kind {
        return Err(Failure { step: what(), errno: Errno::NOTDIR.raw_os_error() });
    }
    Ok(Place { handle, path: target, kind })
}

/// Opens `target` beneath `root` if it exists.
pub(super) fn existing<'path>(root: BorrowedFd<'_>, target: &'path Path) -> Done<Option<Place<'path>>> {
    let relative = target.strip_prefix("/").unwrap_or(target);
    let resolve = rustix::fs::ResolveFlags::IN_ROOT
        | rustix::fs::ResolveFlags::NO_SYMLINKS
        | rustix::fs::ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat2(root, relative, flags, Mode::empty(), resolve) {
        Ok(handle) => {
            let what = || Step::LookAt(target.into());
            let kind = Kind::of(fstat(&handle).context(what)?.st_mode);
            Ok(Some(Place { handle, path: target, kind }))
        }
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno).context(|| Step::LookAt(target.into())),
    }
}

/// Makes a symbolic link at `target`.
pub(super) fn link(root: &OwnedFd, target: &Path, to: &Path) -> Done {
    let (parent, name) = parent(root.as_fd(), target)?;
    symlinkat(to, &parent, &name).context(|| Step::MakeLink(target.into()))
}

fn parent(root: BorrowedFd<'_>, target: &Path) -> Done<(OwnedFd, std::ffi::OsString)> {
    let what = || Step::MakeWay(target.into());
    let mut names: Vec<_> = target.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    let last = names.pop().ok_or_else(|| Failure { step: what(), errno: Errno::INVAL.raw_os_error() })?;
    let mut here = rustix::io::fcntl_dupfd_cloexec(root, 0).context(what)?;
    for name in names {
        here = enter(here.as_fd(), name.as_os_str()).context(what)?;
    }
    Ok((here, last.as_os_str().to_owned()))
}

fn enter(parent: BorrowedFd<'_>, name: &std::ffi::OsStr) -> rustix::io::Result<OwnedFd> {
    let follow = if follows_links() { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | follow;
    match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => {
            mkdirat(parent, name, Mode::from_raw_mode(0o755))?;
            openat(parent, name, flags, Mode::empty())
        }
        answer => answer,
    }
}

fn file(parent: BorrowedFd<'_>, name: &std::ffi::OsStr) -> rustix::io::Result<OwnedFd> {
    let make = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, make, Mode::from_raw_mode(0o644)) {
        Ok(_) | Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS) => {}
        Err(errno) => return Err(errno),
    }
    openat(parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}
