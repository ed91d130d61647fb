//! A position in a tree, reached by handles, with a bounded number of them open.
//!
//! A hostile tree can be thousands of levels deep. Keeping a handle for each level would run out of
//! descriptors, recursion would run out of stack. A [`Descent`] keeps the handles of the last few levels
//! only and opens the older ones again, from the root, when it comes back up to them. What it finds then
//! must be the directory that was there before; if it is not, someone is moving the tree while it is read.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::io::{Errno, Result};

use super::{open_below, open_dir, reopen, stat_fd};
use crate::path::RelPath;

/// A place in a tree and the way back up.
#[derive(Debug)]
pub struct Descent {
    root: OwnedFd,
    levels: Vec<Level>,
    keep: usize,
}

#[derive(Debug)]
struct Level {
    name: Box<[u8]>,
    identity: ((u32, u32), u64),
    fd: Option<OwnedFd>,
}

/// The way back up was gone or led elsewhere: the tree was changed while it was read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` was moved while it was read", path.display_escaped())]
pub struct Moved {
    pub path: RelPath,
    pub source: Errno,
}

impl Descent {
    /// Starts at `root`, holding at most `keep` (at least one) further descriptors.
    pub fn new(root: BorrowedFd<'_>, keep: usize) -> Result<Self> {
        Ok(Self { root: reopen(root)?, levels: Vec::new(), keep: keep.max(1) })
    }

    /// The directory it is at.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.levels.last().and_then(|level| level.fd.as_ref()).unwrap_or(&self.root).as_fd()
    }

    /// How many levels below the root it is.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Goes down into the directory `name`; stays where it is if that fails.
    pub fn enter(&mut self, name: &[u8]) -> Result<()> {
        let fd = open_dir(self.fd(), name)?;
        let meta = stat_fd(fd.as_fd())?;
        self.levels.push(Level { name: name.into(), identity: (meta.dev, meta.ino), fd: Some(fd) });
        if let Some(old) = self.levels.len().checked_sub(self.keep + 1) {
            self.levels[old].fd = None;
        }
        Ok(())
    }

    /// Goes back up one level. At the root it does nothing.
    pub fn leave(&mut self) -> std::result::Result<(), Moved> {
        self.levels.pop();
        match self.levels.last() {
            Some(Level { fd: None, .. }) => {
                self.reopen_last().map_err(|source| Moved { path: self.path(self.levels.len()), source })
            }
            _ => Ok(()),
        }
    }

    /// Opens the last `keep` levels at once, so that a long way up walks from the root only now and then.
    fn reopen_last(&mut self) -> Result<()> {
        let first = self.levels.len().saturating_sub(self.keep);
        let above = open_below(self.root.as_fd(), &self.path(first))?;
        for index in first..self.levels.len() {
            let at = match index.checked_sub(1).filter(|before| *before >= first) {
                Some(before) => self.levels[before].fd.as_ref().expect("opened in the round before").as_fd(),
                None => above.as_fd(),
            };
            let fd = open_dir(at, &self.levels[index].name)?;
            let meta = stat_fd(fd.as_fd())?;
            if (meta.dev, meta.ino) != self.levels[index].identity {
                return Err(Errno::STALE);
            }
            self.levels[index].fd = Some(fd);
        }
        Ok(())
    }

    fn path(&self, levels: usize) -> RelPath {
        let mut path = RelPath::root();
        for level in &self.levels[..levels] {
            path.push(&level.name).expect("each name was opened as a single directory");
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Mode, mkdirat};

    use super::*;
    use crate::dir::{open_named, stat_at};

    #[test]
    fn comes_back_up_from_far_below() {
        let dir = tempfile::tempdir().unwrap();
        let root = open_named(dir.path()).unwrap();
        let mut descent = Descent::new(root.as_fd(), 7).unwrap();
        let name = [b'n'; 200];
        let mut seen = Vec::new();
        for _ in 0..100 {
            mkdirat(descent.fd(), &name[..], Mode::RWXU).unwrap();
            seen.push(stat_at(descent.fd(), &name).unwrap().ino);
            descent.enter(&name).unwrap();
            let open = descent.levels.iter().filter(|level| level.fd.is_some()).count();
            assert!(open <= 7, "{open} handles are open");
        }
        while descent.depth() > 0 {
            descent.leave().unwrap();
            assert_eq!(stat_at(descent.fd(), &name).unwrap().ino, seen.pop().unwrap());
        }
    }

    #[test]
    fn says_when_the_way_up_was_exchanged() {
        let dir = tempfile::tempdir().unwrap();
        let root = open_named(dir.path()).unwrap();
        fs_err::create_dir_all(dir.path().join("a/b/c")).unwrap();
        let mut descent = Descent::new(root.as_fd(), 1).unwrap();
        for name in [b"a", b"b", b"c"] {
            descent.enter(name).unwrap();
        }
        fs_err::rename(dir.path().join("a"), dir.path().join("z")).unwrap();
        fs_err::create_dir_all(dir.path().join("a/b")).unwrap();
        let moved = descent.leave().unwrap_err();
        assert_eq!((moved.path, moved.source), (RelPath::new("a/b").unwrap(), Errno::STALE));
    }
}
