//! A file that one process at a time holds, or that many share.
//!
//! The lock belongs to the open file description, not to the process: a child that inherits the descriptor
//! holds it too, and it is free only when the last copy is closed, however its holders died. The file may be
//! removed with the directory it is in: a lock on a file that has lost its name is not given out.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, fstat, lstat, open};
use rustix::io::{Errno, retry_on_intr};

/// A lock, held until this value and every inherited copy of its descriptor are gone.
#[derive(Debug)]
pub struct FileLock(OwnedFd);

/// Why a lock could not be taken. That another holds it is not an error.
#[derive(Debug, thiserror::Error)]
#[error("cannot lock `{}`", path.display())]
pub struct LockError {
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

impl FileLock {
    /// Takes the lock if it is free; makes the file if it is missing.
    pub fn try_exclusive(path: &Path) -> Result<Option<Self>, LockError> {
        let operation = FlockOperation::NonBlockingLockExclusive;
        Self::take(path, OFlags::CREATE, operation).map_err(|errno| named(path, errno))
    }

    /// Takes the lock if it is free. A file that is missing is an error.
    pub fn try_existing(path: &Path) -> Result<Option<Self>, LockError> {
        let operation = FlockOperation::NonBlockingLockExclusive;
        Self::take(path, OFlags::empty(), operation).map_err(|errno| named(path, errno))
    }

    /// Waits for the lock; makes the file if it is missing.
    pub fn exclusive(path: &Path) -> Result<Self, LockError> {
        let operation = FlockOperation::LockExclusive;
        let lock = Self::take(path, OFlags::CREATE, operation).map_err(|errno| named(path, errno))?;
        lock.ok_or_else(|| named(path, Errno::WOULDBLOCK))
    }

    /// Waits until nobody holds the lock exclusively, and shares it; makes the file if it is missing.
    pub fn shared(path: &Path) -> Result<Self, LockError> {
        let operation = FlockOperation::LockShared;
        let lock = Self::take(path, OFlags::CREATE, operation).map_err(|errno| named(path, errno))?;
        lock.ok_or_else(|| named(path, Errno::WOULDBLOCK))
    }

    /// Takes the lock of a file that is open and has no name yet, unless somebody else has a handle of it and holds it.
    pub fn try_unnamed(file: OwnedFd) -> io::Result<Option<Self>> {
        match retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn take(path: &Path, making: OFlags, operation: FlockOperation) -> io::Result<Option<Self>> {
        let flags = making | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
        // A named pipe in its place would be waited for.
        let flags = flags | OFlags::NONBLOCK;
        let is_shared = matches!(operation, FlockOperation::LockShared);
        loop {
            let file = match open(path, flags, Mode::RUSR | Mode::WUSR) {
                // Where nothing can be written, who only looks can still see whether somebody holds it.
                Err(Errno::ROFS | Errno::ACCESS) if making.is_empty() || is_shared => {
                    let flags = (flags - OFlags::RDWR - OFlags::CREATE) | OFlags::RDONLY;
                    open(path, flags, Mode::empty())?
                }
                opened => opened?,
            };
            if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
            }
            match retry_on_intr(|| flock(&file, operation)) {
                // What was locked may have lost its name to another file meanwhile.
                Ok(()) if is_named(&file, path)? => return Ok(Some(Self(file))),
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl AsFd for FileLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<FileLock> for OwnedFd {
    fn from(lock: FileLock) -> Self {
        lock.0
    }
}

/// Whether `path` still names the open file.
fn is_named(file: &OwnedFd, path: &Path) -> Result<bool, Errno> {
    let ours = fstat(file)?;
    match lstat(path) {
        Ok(found) => Ok((found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

fn named(path: &Path, source: impl Into<io::Error>) -> LockError {
    LockError { path: path.to_owned(), source: source.into() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn one_holder_until_the_last_copy_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = FileLock::try_exclusive(&path).unwrap().unwrap();
        assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(FileLock::try_exclusive(&path).unwrap().is_none());
        let copy = held.as_fd().try_clone_to_owned().unwrap();
        drop(held);
        assert!(FileLock::try_exclusive(&path).unwrap().is_none(), "an inherited copy still holds it");
        drop(copy);
        drop(FileLock::exclusive(&path).unwrap());
        assert!(FileLock::try_exclusive(&path).unwrap().is_some());
    }

    #[test]
    fn many_share_what_one_may_hold() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let shares = [FileLock::shared(&path).unwrap(), FileLock::shared(&path).unwrap()];
        assert!(FileLock::try_exclusive(&path).unwrap().is_none());
        drop(shares);
        assert!(FileLock::try_exclusive(&path).unwrap().is_some());
    }

    #[test]
    fn waits_for_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = FileLock::exclusive(&path).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| FileLock::exclusive(&path).unwrap());
            std::thread::sleep(std::time::Duration::from_millis(30));
            assert!(!waiter.is_finished());
            drop(held);
            drop(waiter.join().unwrap());
        });
    }

    #[test]
    fn a_file_that_lost_its_name_is_not_locked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let old = FileLock::exclusive(&path).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| FileLock::exclusive(&path).unwrap());
            std::thread::sleep(std::time::Duration::from_millis(30));
            fs_err::remove_file(&path).unwrap();
            let new = FileLock::try_exclusive(&path).unwrap().unwrap();
            drop(old);
            std::thread::sleep(std::time::Duration::from_millis(30));
            assert!(!waiter.is_finished(), "two hold the lock of one path");
            drop(new);
            drop(waiter.join().unwrap());
        });
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RWXU).unwrap();
        for path in [pipe.as_path(), Path::new("/dev/null")] {
            for refused in [FileLock::try_existing(path), FileLock::shared(path).map(Some)] {
                assert_eq!(refused.unwrap_err().source.kind(), io::ErrorKind::InvalidInput, "{path:?}");
            }
        }
    }

    #[test]
    fn never_through_a_symlink() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        symlink(dir.path().join("elsewhere"), &path).unwrap();
        assert!(FileLock::try_exclusive(&path).is_err());
        assert!(!dir.path().join("elsewhere").exists());
    }
}
