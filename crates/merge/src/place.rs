//! Where an operation on one target keeps what it needs: its lock, its journal and its scratch repositories. The
//! place depends on the target alone, so that the next call on it finds what an interrupted one left.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use sandtable_sandbox::attention::Attention;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::pending::{Mark, Pending};
use sandtable_sandbox::random::random;
use sandtable_store::lock::FileLock;

use super::error::Error;
use super::index::digest;

/// How often somebody else's lock is tried again.
const PAUSE: Duration = Duration::from_millis(5);
/// What the names of marks of merges begin with.
pub(super) const MARK: &str = "merge-";

/// The place, locked and marked.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    mark: Mark,
    lock: FileLock,
}

impl Place {
    /// Waits until nobody else works on this target, or a signal comes.
    pub(super) fn lock(state: &HostPath, target: &HostPath, attention: &Attention) -> Result<Self, Error> {
        let real = fs::canonicalize(target.as_path())?;
        let key = digest(real.as_os_str().as_bytes()).short(16);
        loop {
            if let Some(place) = Self::try_lock(state, &key)? {
                Pending::beside(state.as_path()).mark_of(&format!("{MARK}{key}"), &real)?;
                return Ok(place);
            }
            if let Some(signal) = attention.signal() {
                return Err(Error::Interrupted(signal));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// A place by its key; none while somebody works there.
    pub(super) fn try_lock(state: &HostPath, key: &str) -> Result<Option<Self>, Error> {
        let path = state.as_path().join(key);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        let Some(lock) = FileLock::try_exclusive(&path.join("lock"))? else { return Ok(None) };
        let mark = Pending::beside(state.as_path()).mark(&format!("{MARK}{key}"))?;
        let place = Self { path, mark, lock };
        place.sweep();
        Ok(Some(place))
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

    /// Removes scratch repositories of the dead, and a journal that never was: the lock is ours, so nobody alive has one here.
    fn sweep(&self) {
        drop(fs::remove_file(self.journal().with_extension("draft")));
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| is_scratch(path)) {
            // What cannot be removed now is tried again at the next call.
            drop(fs::remove_dir_all(path));
        }
    }
}

impl Drop for Place {
    /// The lock is still held here.
    fn drop(&mut self) {
        if !self.journal().exists() {
            self.mark.clear();
        }
    }
}

const SCRATCH: &str = "scratch-";

fn is_scratch(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(SCRATCH.as_bytes()))
}
