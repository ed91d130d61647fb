//! From a text that somebody gave to a handle that cannot be led out of a directory.
//!
//! The seed of this project asks of a path "is it safe?" and gets a yes or no, which is out of date before anything is
//! done with it, and cannot be asked of a path that does not exist yet. Here the answer **is** what one works with:
//! [`open_safe`] gives a [`SafePath`], which holds the deepest directory on the way that exists, and everything done
//! with it is done from that handle by a single name that is never followed. Exchanging a directory for a symlink
//! meanwhile changes nothing: the handle stays where it is.
//!
//! No symlink is followed, not even one that stays inside: who may write a tree may turn it at any moment. A text is
//! taken as the bytes it is: `%2e%2e`, a backslash or overlong UTF-8 are parts of odd names, not ways up.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use crate::dir::{How, Kind, Meta, Mounts, Resolver, open_by, open_dir, open_file, reopen, stat_at};
use crate::object::name::git_refuses;
use crate::path::{PathError, RelPath};

/// A place below a directory, existing or not, that nothing can move elsewhere.
#[derive(Debug)]
pub struct SafePath {
    /// The deepest directory on the way that exists.
    at: OwnedFd,
    path: RelPath,
    /// How many components of the path lie below `at`; one, when only the last is left.
    below: usize,
}

/// Why a text is not a safe path.
#[derive(Debug, thiserror::Error)]
pub enum Unsafe {
    #[error("`{text}` may lead out of its directory")]
    Path { text: String, source: PathError },
    /// Git, on some system, would take it for its own directory.
    #[error("`{}` has a component that stands for `.git`", .0.display_escaped())]
    Git(RelPath),
    #[error("`{}` is a symlink", .0.display_escaped())]
    Symlink(RelPath),
    #[error("`{}` is on another mount", .0.display_escaped())]
    Mount(RelPath),
    #[error("cannot reach `{}`", path.display_escaped())]
    Io { path: RelPath, source: io::Error },
}

/// The place that `text` names below the directory `root`. It need not exist, nor the directories on the way.
pub fn open_safe(root: BorrowedFd<'_>, text: &[u8]) -> Result<SafePath, Unsafe> {
    open_safe_by(Resolver::here(), root, text)
}

fn open_safe_by(by: Resolver, root: BorrowedFd<'_>, text: &[u8]) -> Result<SafePath, Unsafe> {
    let path =
        RelPath::new(text).map_err(|source| Unsafe::Path { text: crate::path::escape(text), source })?;
    if path.components().any(git_refuses) {
        return Err(Unsafe::Git(path));
    }
    let mut at = reopen(root).map_err(|errno| unsafe_at(&RelPath::root(), errno))?;
    let mut here = RelPath::root();
    let mut below = path.components().count();
    let how = How { flags: OFlags::RDONLY | OFlags::DIRECTORY, mounts: Mounts::Refuse };
    for name in path.parent().unwrap_or_default().components() {
        here.push(name).expect("a component of a path is a name");
        match open_by(by, at.as_fd(), name, how) {
            Ok(next) => at = next,
            Err(Errno::NOENT) => break,
            Err(errno) => return Err(refused(at.as_fd(), &here, errno)),
        }
        below -= 1;
    }
    let found = SafePath { at, path, below };
    match found.stat() {
        Ok(Some(meta)) if meta.kind == Kind::Symlink => Err(Unsafe::Symlink(found.path)),
        Ok(Some(meta)) if meta.is_mount => Err(Unsafe::Mount(found.path)),
        Ok(_) => Ok(found),
        Err(errno) => Err(unsafe_at(&found.path, errno)),
    }
}

impl SafePath {
    /// Where it is, from the directory it was asked for in.
    pub fn path(&self) -> &RelPath {
        &self.path
    }

    /// The last component.
    pub fn name(&self) -> &[u8] {
        self.path.name().expect("an empty text is refused")
    }

    /// The directory it is in, if that exists.
    pub fn parent(&self) -> Option<BorrowedFd<'_>> {
        (self.below == 1).then(|| self.at.as_fd())
    }

    /// What is there now; a symlink that has come meanwhile is looked at itself.
    pub fn stat(&self) -> rustix::io::Result<Option<Meta>> {
        let Some(parent) = self.parent() else { return Ok(None) };
        match stat_at(parent, self.name()) {
            Ok(meta) => Ok(Some(meta)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Opens the file for reading.
    pub fn open_file(&self) -> rustix::io::Result<OwnedFd> {
        let parent = self.parent().ok_or(Errno::NOENT)?;
        let meta = stat_at(parent, self.name())?;
        if meta.kind == Kind::Symlink {
            return Err(Errno::LOOP);
        }
        open_file(parent, self.name(), &meta)
    }

    /// Opens the directory.
    pub fn open_dir(&self) -> rustix::io::Result<OwnedFd> {
        open_dir(self.parent().ok_or(Errno::NOENT)?, self.name())
    }

    /// Makes the file, which must not exist, and opens it for writing.
    pub fn create_file(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(self.parent().ok_or(Errno::NOENT)?, self.name(), flags, Mode::from_raw_mode(0o666))
    }

    /// Makes the directories on the way that are missing.
    pub fn make_parents(mut self) -> rustix::io::Result<Self> {
        let missing: Vec<Vec<u8>> =
            self.path.components().rev().take(self.below).map(<[u8]>::to_vec).collect();
        for name in missing.iter().skip(1).rev() {
            match mkdirat(&self.at, name.as_slice(), Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => self.at = open_dir(self.at.as_fd(), name)?,
                Err(errno) => return Err(errno),
            }
            self.below -= 1;
        }
        Ok(self)
    }
}

/// Says what stands in the way at `path`, the last component of which is in `parent`.
fn refused(parent: BorrowedFd<'_>, path: &RelPath, errno: Errno) -> Unsafe {
    let name = path.name().expect("the way has a component");
    match stat_at(parent, name) {
        Ok(meta) if meta.kind == Kind::Symlink => Unsafe::Symlink(path.clone()),
        _ => unsafe_at(path, errno),
    }
}

fn unsafe_at(path: &RelPath, errno: Errno) -> Unsafe {
    match errno {
        Errno::LOOP => Unsafe::Symlink(path.clone()),
        Errno::XDEV => Unsafe::Mount(path.clone()),
        errno => Unsafe::Io { path: path.clone(), source: errno.into() },
    }
}

#[cfg(test)]
mod tests;
