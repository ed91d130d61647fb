//! What trees that a sandbox is writing take on disk, exactly: every block and every inode, each once.
//!
//! The trees are foreign and change while they are read. Depth costs a few words of memory per level and no
//! descriptor, width costs nothing: of each directory on the way down only its identity and the position in it are
//! remembered. The way back up leads through `..`, and what is found there must be the directory that was left.
//! Nothing is followed and nothing is read but directories.
//!
//! A file with several names counts in parts, one for each name. All names of a file that a sandbox linked lie in one
//! tree, so the parts add up, and no list of files is needed.

use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::{Errno, Result};

use crate::dir::open_dir;
use crate::os::each_entry_from;

/// Parts of a byte or an inode that sums are kept in, so that thirds add up.
const PARTS: u128 = 1 << 20;
/// How many entries are counted between two questions whether to go on.
const STRIDE: u64 = 256;
/// How many handles of directories on the way are kept; those further up are opened again.
const KEPT: usize = 32;

/// What a walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub bytes: u64,
    pub inodes: u64,
    /// Whether everything was seen. False when a directory may not be read, was moved meanwhile, or the walk was broken
    /// off.
    pub complete: bool,
}

impl Usage {
    /// Nothing at all.
    pub const NONE: Self = Self { bytes: 0, inodes: 0, complete: true };
}

/// Adds up trees, as long as it is let.
#[derive(Debug)]
pub struct Count<F> {
    bytes: u128,
    inodes: u128,
    complete: bool,
    seen: u64,
    /// Asked now and then, with what was found so far.
    go_on: F,
}

impl<F: FnMut(Usage) -> ControlFlow<()>> Count<F> {
    pub fn new(go_on: F) -> Self {
        Self { bytes: 0, inodes: 0, complete: true, seen: 0, go_on }
    }

    /// Adds the tree at `path` with its top, or one file. What is not there takes nothing.
    pub fn add(&mut self, path: &Path) -> ControlFlow<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(CWD, path, flags, Mode::empty()).and_then(|top| Ok((fstat(&top)?, top))) {
            Ok((found, top)) => {
                self.charge(&found);
                return self.walk(Level { identity: identity(&found), at: 0, handle: Some(top) });
            }
            Err(Errno::NOTDIR) => match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => self.charge(&found),
                Err(_) => self.complete = false,
            },
            Err(errno) => self.complete &= errno == Errno::NOENT,
        }
        ControlFlow::Continue(())
    }

    /// What was found.
    pub fn usage(&self) -> Usage {
        let whole = |parts: u128| u64::try_from(parts.div_ceil(PARTS)).unwrap_or(u64::MAX);
        Usage { bytes: whole(self.bytes), inodes: whole(self.inodes), complete: self.complete }
    }

    fn walk(&mut self, top: Level) -> ControlFlow<()> {
        let mut way = vec![top];
        while let Some(level) = way.last_mut() {
            if let Some(inner) = self.read(level)? {
                way.push(inner);
                if let Some(old) = way.len().checked_sub(KEPT + 1) {
                    way[old].handle = None;
                }
                continue;
            }
            let left = way.pop();
            let Some(above) = way.last_mut() else { break };
            if above.handle.is_none() && above.open_from(left.as_ref()).is_err() {
                // What is left of the tree is not seen.
                self.complete = false;
                break;
            }
        }
        ControlFlow::Continue(())
    }

    /// Reads a directory on to the next directory in it, or to its end.
    fn read(&mut self, level: &mut Level) -> ControlFlow<(), Option<Level>> {
        let Some(handle) = &level.handle else { return ControlFlow::Continue(None) };
        let (mut inner, mut at, mut on) = (None, level.at, ControlFlow::Continue(()));
        let listed = each_entry_from(handle.as_fd(), level.at, |name, next| {
            at = next;
            on = self.ask();
            on?;
            let found = match statat(handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => found,
                Err(errno) => {
                    self.complete &= errno == Errno::NOENT;
                    return ControlFlow::Continue(());
                }
            };
            self.charge(&found);
            if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
                return ControlFlow::Continue(());
            }
            match open_dir(handle.as_fd(), name).and_then(|inside| Ok((identity(&fstat(&inside)?), inside))) {
                Ok((identity, inside)) => inner = Some(Level { identity, at: 0, handle: Some(inside) }),
                Err(errno) => {
                    self.complete &= errno == Errno::NOENT;
                    return ControlFlow::Continue(());
                }
            }
            ControlFlow::Break(())
        });
        level.at = at;
        if listed.is_err() {
            self.complete = false;
        }
        on?;
        ControlFlow::Continue(inner)
    }

    /// Whether to go on.
    fn ask(&mut self) -> ControlFlow<()> {
        self.seen += 1;
        if !self.seen.is_multiple_of(STRIDE) {
            return ControlFlow::Continue(());
        }
        let so_far = self.usage();
        (self.go_on)(so_far).map_break(|()| self.complete = false)
    }

    fn charge(&mut self, found: &Stat) {
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        let names = if is_directory { 1 } else { u128::from(found.st_nlink).max(1) };
        let blocks = u128::from(found.st_blocks.cast_unsigned());
        self.bytes = self.bytes.saturating_add(blocks * 512 * PARTS / names);
        self.inodes = self.inodes.saturating_add(PARTS / names);
    }
}

/// A directory on the way down.
#[derive(Debug)]
struct Level {
    identity: (i128, u64),
    /// How far it is read.
    at: u64,
    handle: Option<OwnedFd>,
}

impl Level {
    /// Opens it again from the directory below that was just left.
    fn open_from(&mut self, below: Option<&Self>) -> Result<()> {
        let below = below.and_then(|below| below.handle.as_ref()).ok_or(Errno::STALE)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = openat(below, "..", flags, Mode::empty())?;
        if identity(&fstat(&above)?) != self.identity {
            return Err(Errno::STALE);
        }
        self.handle = Some(above);
        Ok(())
    }
}

/// Devices have another type on macOS.
fn identity(found: &Stat) -> (i128, u64) {
    (found.st_dev.into(), found.st_ino)
}

#[cfg(test)]
mod tests {
    use rustix::fs::mkdirat;

    use super::*;

    fn used(path: &Path) -> Usage {
        let mut count = Count::new(|_| ControlFlow::Continue(()));
        assert_eq!(count.add(path), ControlFlow::Continue(()));
        count.usage()
    }

    fn blocks(path: &Path) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        fs_err::symlink_metadata(path).unwrap().blocks() * 512
    }

    #[test]
    fn what_is_allocated_counts_and_each_inode_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs_err::create_dir(at("inner")).unwrap();
        fs_err::write(at("file"), vec![1; 100_000]).unwrap();
        fs_err::write(at("linked"), vec![1; 100_000]).unwrap();
        for name in ["inner/second", "inner/third"] {
            fs_err::hard_link(at("linked"), at(name)).unwrap();
        }
        fs_err::File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
        std::os::unix::fs::symlink("/", at("link")).unwrap();
        rustix::fs::mkfifoat(CWD, at("pipe"), Mode::RUSR).unwrap();
        let names = ["", "inner", "file", "linked", "sparse", "link", "pipe"];
        let sum: u64 = names.iter().map(|name| blocks(&at(name))).sum();
        assert!(sum < 1 << 20, "{sum}");
        assert_eq!(used(dir.path()), Usage { bytes: sum, inodes: names.len() as u64, complete: true });
        assert_eq!(used(&at("missing")), Usage::NONE);
        let one = Usage { bytes: blocks(&at("file")), inodes: 1, complete: true };
        assert_eq!(used(&at("file")), one);
    }

    #[test]
    fn a_wide_and_a_deep_tree_cost_a_few_handles() {
        let dir = tempfile::tempdir().unwrap();
        let mut expected = 1;
        for number in 0..600 {
            fs_err::create_dir(dir.path().join(format!("{number:0200}"))).unwrap();
            expected += 1;
        }
        let mut here = openat(CWD, dir.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        for _ in 0..600 {
            for name in ["a", "deep", "z"] {
                mkdirat(&here, name, Mode::RWXU).unwrap();
                expected += 1;
            }
            here = open_dir(here.as_fd(), b"deep").unwrap();
        }
        let mut most = 0;
        let mut count = Count::new(|_| {
            most = most.max(fs_err::read_dir("/proc/self/fd").map_or(0, Iterator::count));
            ControlFlow::Continue(())
        });
        let _all = count.add(dir.path());
        let found = count.usage();
        assert_eq!((found.inodes, found.complete), (expected, true));
        assert!(most < KEPT + 60, "{most} handles");
        drop(here);
        crate::remove::remove_tree(dir.path()).unwrap();
    }

    #[test]
    fn it_stops_when_it_is_told_to() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..4 * STRIDE {
            fs_err::write(dir.path().join(number.to_string()), "").unwrap();
        }
        let enough = |so_far: Usage| {
            if so_far.inodes > 300 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut count = Count::new(enough);
        assert_eq!(count.add(dir.path()), ControlFlow::Break(()));
        assert!(!count.usage().complete && count.usage().inodes < 600, "{:?}", count.usage());
    }

    #[test]
    fn a_tree_that_moves_under_the_walk_is_not_complete() {
        let dir = tempfile::tempdir().unwrap();
        let mut deep = dir.path().join("x");
        for _ in 0..KEPT + 8 {
            deep.push("d");
        }
        fs_err::create_dir_all(&deep).unwrap();
        fs_err::create_dir(dir.path().join("aside")).unwrap();
        for number in 0..STRIDE {
            fs_err::write(deep.join(number.to_string()), "").unwrap();
        }
        let mut moved = false;
        let mut count = Count::new(|_| {
            if !std::mem::replace(&mut moved, true) {
                fs_err::rename(dir.path().join("x/d/d/d"), dir.path().join("aside/d")).unwrap();
            }
            ControlFlow::Continue(())
        });
        let _all = count.add(&dir.path().join("x"));
        assert!(!count.usage().complete);
    }
}
