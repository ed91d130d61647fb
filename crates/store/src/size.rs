//! How much a tree that a sandbox left takes on disk: a quick answer with a bound, nothing followed.

use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, statat};

use crate::dir::{open_dir, open_named};
use crate::os::each_entry;

/// What a tree takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub bytes: u64,
    /// False when there is more than was looked at, or something that may not be looked at.
    pub complete: bool,
}

impl Default for Size {
    fn default() -> Self {
        Self { bytes: 0, complete: true }
    }
}

impl Size {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), complete: self.complete && other.complete }
    }
}

/// The space that at most `most` entries below `path` take on disk. A path that is not there takes none.
pub fn measure(path: &Path, most: usize) -> Size {
    let mut walk = Walk { size: Size::default(), left: most, waiting: Vec::new() };
    match open_named(path) {
        Ok(top) => walk.waiting.push(top),
        Err(_) => walk.size.complete = !path.exists(),
    }
    while let Some(directory) = walk.waiting.pop() {
        walk.visit(&directory);
    }
    walk.size
}

struct Walk {
    size: Size,
    left: usize,
    waiting: Vec<OwnedFd>,
}

impl Walk {
    fn visit(&mut self, directory: &OwnedFd) {
        let listed = each_entry(directory.as_fd(), |name, _| {
            if self.left == 0 {
                self.size.complete = false;
                self.waiting.clear();
                return ControlFlow::Break(());
            }
            self.left -= 1;
            self.count(directory, name);
            ControlFlow::Continue(())
        });
        if listed.is_err() {
            self.size.complete = false;
        }
    }

    fn count(&mut self, directory: &OwnedFd, name: &[u8]) {
        let Ok(found) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
            self.size.complete = false;
            return;
        };
        let blocks = u64::try_from(found.st_blocks).unwrap_or_default();
        self.size.bytes = self.size.bytes.saturating_add(blocks.saturating_mul(512));
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            match open_dir(directory.as_fd(), name) {
                Ok(inner) if self.waiting.len() < MOST_OPEN => self.waiting.push(inner),
                _ => self.size.complete = false,
            }
        }
    }
}

/// Handles that may be open at once.
const MOST_OPEN: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_measured_up_to_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(measure(&dir.path().join("missing"), 10), Size::default());
        fs_err::create_dir_all(dir.path().join("a/b")).unwrap();
        fs_err::write(dir.path().join("a/b/file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("a/link")).unwrap();
        let all = measure(dir.path(), 100);
        assert!(all.complete && all.bytes >= 100_000 && all.bytes < 300_000, "{all:?}");
        assert!(!measure(dir.path(), 2).complete);
    }
}
