//! Where an operation on one target keeps what it needs: its lock, its journal and its scratch repositories. The
//! place depends on the target alone, so that the next call on it finds what an interrupted one left.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_store::lock::FileLock;

use super::error::Error;
use super::index::digest;
use crate::model::path::HostPath;
use crate::random::random;

/// The place, locked.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    lock: FileLock,
}

impl Place {
    /// Waits until nobody else works on this target.
    pub(super) fn lock(state: &HostPath, target: &HostPath) -> Result<Self, Error> {
        let real = fs::canonicalize(target.as_path())?;
        let key = digest(real.as_os_str().as_bytes()).short(16);
        let path = state.as_path().join(key);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        let lock = FileLock::exclusive(&path.join("lock"))?;
        let place = Self { path, lock };
        place.sweep();
        Ok(place)
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.path.join("journal.json")
    }

    /// What was last told about a piece of work.
    pub(super) fn shown(&self, work: &str) -> PathBuf {
        self.path.join(format!("shown-{}.json", digest(work.as_bytes()).short(16)))
    }

    /// A new name for a scratch repository. A killed call's git may still be busy in an old one.
    pub(super) fn scratch(&self, name: &str) -> PathBuf {
        self.path.join(format!("{SCRATCH}{}-{:016x}-{name}", std::process::id(), random()))
    }

    pub(super) const fn held(&self) -> &FileLock {
        &self.lock
    }

    /// Removes scratch repositories of the dead: the lock is ours, so nobody alive has one here.
    fn sweep(&self) {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| is_scratch(path)) {
            // What cannot be removed now is tried again at the next call.
            drop(fs::remove_dir_all(path));
        }
    }
}

const SCRATCH: &str = "scratch-";

fn is_scratch(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(SCRATCH.as_bytes()))
}
