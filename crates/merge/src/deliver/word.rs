//! A word of ours, to be found in every lock that we take in the user's repository. Git's own locks never have it, so that
//! after a crash ours are known, and nobody else's is removed.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_store::regular;

/// The word of one delivery, and the file that locks are links to.
#[derive(Clone, Debug)]
pub(super) struct Word {
    file: PathBuf,
    text: String,
}

impl Word {
    pub(super) fn of(id: &str, git_dir: &Path) -> Self {
        Self { file: git_dir.join(format!("sandtable-{id}.word")), text: format!("sandtable {id}\n") }
    }

    /// Takes a lock of git's. Whoever has it already keeps it, with [`io::ErrorKind::AlreadyExists`].
    pub(super) fn lock(&self, lock: &Path) -> io::Result<()> {
        self.forget()?;
        let written = fs::File::create_new(&self.file)?.write_all(self.text.as_bytes());
        let linked = written.and_then(|()| fs::hard_link(&self.file, lock));
        fs::remove_file(&self.file)?;
        linked
    }

    /// Whether a lock is ours. Of one that cannot be read nobody can say that it is not.
    pub(super) fn is_in(&self, lock: &Path) -> io::Result<bool> {
        match regular::read(lock, self.text.len() as u64) {
            Ok(text) => Ok(text == self.text.as_bytes()),
            // Ours are files, and not longer than the word.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Gives a lock back, if it is ours.
    pub(super) fn give_back(&self, lock: &Path) -> io::Result<()> {
        self.forget()?;
        if self.is_in(lock)? { fs::remove_file(lock) } else { Ok(()) }
    }

    /// Killed while it took a lock, somebody left the file. Where it is not there nothing need be written.
    fn forget(&self) -> io::Result<()> {
        gone(&self.file, fs::remove_file(&self.file))
    }
}

/// What came of a removal. On a file system for reading only it fails also where nothing is left to remove.
pub(super) fn gone(path: &Path, removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if is_there(path) => Err(error),
        _ => Ok(()),
    }
}

fn is_there(path: &Path) -> bool {
    !matches!(fs::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lock_with_our_word_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let (word, lock) = (Word::of("1", folder.path()), folder.path().join("HEAD.lock"));
        fs::write(&lock, "").unwrap();
        assert_eq!(word.lock(&lock).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        word.give_back(&lock).unwrap();
        assert!(lock.exists(), "somebody else's");
        fs::remove_file(&lock).unwrap();
        word.lock(&lock).unwrap();
        Word::of("2", folder.path()).give_back(&lock).unwrap();
        assert!(lock.exists(), "of another delivery");
        word.give_back(&lock).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_lock_that_is_no_file_is_somebody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let (word, lock) = (Word::of("1", folder.path()), folder.path().join("HEAD.lock"));
        for name in ["HEAD.lock", "sandtable-1.word"] {
            rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join(name), rustix::fs::Mode::RUSR).unwrap();
        }
        assert_eq!(word.lock(&lock).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        word.give_back(&lock).unwrap();
        assert!(lock.exists());
    }
}
