//! The user's files, looked at and reached by handle only.
//!
//! Nothing here follows a link or crosses a mount, and a file that is not what it was a moment ago is told, not
//! guessed about.

use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, readlinkat, statat};
use rustix::io::Errno;
use sandtable_store::RelPath;
use sandtable_store::dir::{self, Kind, Meta, stat_at};
use sandtable_store::id::HashKind;
use sandtable_store::object::{Hasher, ObjectKind};
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::tree::Mode;

/// A directory of the user's, held open.
#[derive(Debug)]
pub(super) struct Worktree {
    root: OwnedFd,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Absent,
    File {
        mode: Mode,
        bytes: Vec<u8>,
        permissions: u16,
    },
    Symlink(Vec<u8>),
    Directory,
    /// A pipe, a socket, a device, another mount.
    Other,
    /// Something on the way is not a directory.
    Behind,
}

/// What tells a file from the one that was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    ino: u64,
    size: u64,
    mtime_ns: i64,
}

impl Stamp {
    pub(super) const fn of(meta: &Meta) -> Self {
        Self { ino: meta.ino, size: meta.size, mtime_ns: meta.mtime_ns }
    }
}

impl Seen {
    /// A name for what was seen, so that it need not be kept.
    pub(super) fn digest(&self) -> String {
        let (word, bytes): (String, &[u8]) = match self {
            Self::Absent => return "absent".to_owned(),
            Self::Directory => return "directory".to_owned(),
            Self::Other => return "other".to_owned(),
            Self::Behind => return "behind".to_owned(),
            Self::File { bytes, permissions, .. } => (format!("file {permissions:o}"), bytes),
            Self::Symlink(target) => ("link".to_owned(), target),
        };
        let mut hasher = Hasher::new(HashKind::Sha256, ObjectKind::Blob, bytes.len() as u64);
        hasher.update(bytes);
        let id = hasher.finish().expect("SHA-256 has no known collisions");
        format!("{word} {id}")
    }

    /// The entry's mode in a tree, and what it contains.
    pub(super) fn content(&self) -> Option<(Mode, &[u8])> {
        match self {
            Self::File { mode, bytes, .. } => Some((*mode, bytes)),
            Self::Symlink(target) => Some((Mode::Symlink, target)),
            _ => None,
        }
    }
}

impl Worktree {
    pub(super) fn open(root: &Path) -> Result<Self, Error> {
        Ok(Self { root: dir::open_named(root)? })
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Looks at a path, with the content of a file.
    pub(super) fn see(&self, path: &RelPath) -> Result<Seen, Error> {
        let named = |source| Error::File { path: path.display_escaped(), source };
        match self.parent(path) {
            Ok(parent) => see_in(parent.as_fd(), path.name().unwrap_or(b".")).map_err(|error| match error {
                Error::Io(source) => named(source),
                error => error,
            }),
            Err(Errno::NOENT) => Ok(Seen::Absent),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(Seen::Behind),
            Err(errno) => Err(named(errno.into())),
        }
    }

    /// The directory that a path is in.
    pub(super) fn parent(&self, path: &RelPath) -> Result<OwnedFd, Errno> {
        self.folder(&path.parent().unwrap_or_default())
    }

    pub(super) fn folder(&self, path: &RelPath) -> Result<OwnedFd, Errno> {
        dir::open_below(self.root(), path)
    }

    pub(super) fn stamp(&self, path: &RelPath) -> Result<Option<Stamp>, Error> {
        match self.parent(path) {
            Ok(parent) => stamp_in(parent.as_fd(), path.name().unwrap_or(b".")),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Everything below a directory: first its directories, outermost first, then all else.
    pub(super) fn below(&self, path: &RelPath) -> Result<(Vec<RelPath>, Vec<RelPath>), Error> {
        let (mut folders, mut others, mut waiting) = (Vec::new(), Vec::new(), vec![path.clone()]);
        while let Some(folder) = waiting.pop() {
            let handle = dir::open_below(self.root(), &folder)?;
            for name in dir::names(handle.as_fd())? {
                let child = folder.join(&name.bytes).expect("a name of a directory");
                let is_folder = stat_at(handle.as_fd(), &name.bytes)?.kind == Kind::Directory;
                if is_folder { waiting.push(child) } else { others.push(child) }
            }
            folders.push(folder);
        }
        Ok((folders, others))
    }
}

/// Looks at a name in a directory.
pub(super) fn see_in(parent: BorrowedFd<'_>, name: &[u8]) -> Result<Seen, Error> {
    let meta = match stat_at(parent, name) {
        Ok(meta) => meta,
        Err(Errno::NOENT) => return Ok(Seen::Absent),
        Err(errno) => return Err(errno.into()),
    };
    if meta.is_mount {
        return Ok(Seen::Other);
    }
    match meta.kind {
        Kind::File => {
            let mode = if meta.mode & 0o100 == 0 { Mode::File } else { Mode::Executable };
            let mut bytes = Vec::new();
            std::fs::File::from(dir::open_file(parent, name, &meta)?).read_to_end(&mut bytes)?;
            Ok(Seen::File { mode, bytes, permissions: meta.mode & 0o777 })
        }
        Kind::Symlink => Ok(Seen::Symlink(readlinkat(parent, name, Vec::new())?.into_bytes())),
        Kind::Directory => Ok(Seen::Directory),
        _ => Ok(Seen::Other),
    }
}

pub(super) fn stamp_in(parent: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Stamp>, Error> {
    match stat_at(parent, name) {
        Ok(meta) => Ok(Some(Stamp::of(&meta))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether two directories are on one file system, so that a file can be renamed from one to the other.
pub(super) fn same_device(a: &Path, b: &Path) -> bool {
    let device = |path| statat(rustix::fs::CWD, path, AtFlags::empty()).map(|found| found.st_dev).ok();
    device(a).is_some() && device(a) == device(b)
}
