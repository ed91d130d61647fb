//! Removing a tree that a sandbox left: any depth, any permissions, no symbolic link followed.
//!
//! The walk goes down a few levels only. A directory that lies deeper is moved up to the top of the tree and
//! removed in a later round, so that depth costs neither stack nor descriptors.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, chmodat, openat, renameat, unlinkat};
use rustix::io::{Errno, Result};

use crate::dir::{Kind, names, reopen};
use crate::os::{REFERENCE, UNLINKED_DIRECTORY, let_owner_in};

/// How many levels are walked at once.
const DEEPEST: usize = 16;

/// Why a tree could not be removed completely.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove `{}`", path.display())]
pub struct RemoveError {
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

/// Removes the directory `path` and everything in it. The caller must own it, and nothing may use it.
pub fn remove_tree(path: &Path) -> std::result::Result<(), RemoveError> {
    remove(path, b"").map_err(|errno| RemoveError { path: path.to_owned(), source: errno.into() })
}

/// Removes everything in the directory `path` but its entry `last`, and keeps the directory.
pub fn clear_tree(path: &Path, last: &str) -> std::result::Result<(), RemoveError> {
    let cleared = match open_writable(CWD, path.as_os_str().as_bytes()) {
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
        Ok(top) => clear_all(top.as_fd(), last.as_bytes(), usize::MAX),
    };
    cleared.map_err(|errno| RemoveError { path: path.to_owned(), source: errno.into() })
}

/// Removes the directory `path` like [`remove_tree`], but its entry `last` goes when everything else has gone: a lock that protects it.
pub fn remove_tree_and_last(path: &Path, last: &str) -> std::result::Result<(), RemoveError> {
    remove(path, last.as_bytes()).map_err(|errno| RemoveError { path: path.to_owned(), source: errno.into() })
}

/// Removes whatever `name` in `parent` is, if it is there; a symbolic link itself.
pub fn remove_at(parent: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
    remove_at_within(parent, name, usize::MAX)
}

/// The same where others may still add to it: gives up with `ENOTEMPTY` after so many rounds.
pub(crate) fn remove_at_within(parent: BorrowedFd<'_>, name: &[u8], rounds: usize) -> Result<()> {
    match unlink(parent, name)? {
        Gone::Yes => Ok(()),
        Gone::No => remove_in((parent, name), b"", rounds),
    }
}

fn remove(path: &Path, last: &[u8]) -> Result<()> {
    remove_in((CWD, path.as_os_str().as_bytes()), last, usize::MAX)
}

fn remove_in((parent, path): (BorrowedFd<'_>, &[u8]), last: &[u8], rounds: usize) -> Result<()> {
    let top = match open_writable(parent, path) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    clear_all(top.as_fd(), last, rounds)?;
    if !last.is_empty() {
        unlink(top.as_fd(), last)?;
    }
    drop(top);
    unlinkat(parent, path, AtFlags::REMOVEDIR)
}

fn clear_all(top: BorrowedFd<'_>, last: &[u8], rounds: usize) -> Result<()> {
    let mut moved = 0;
    for _ in 0..rounds {
        // A second round finds what was moved up in the first.
        if !clear(top, last, &mut Depth { top, left: DEEPEST, moved: &mut moved })? {
            return Ok(());
        }
    }
    Err(Errno::NOTEMPTY)
}

/// How much deeper the walk may go, and where to put what lies below.
struct Depth<'a> {
    top: BorrowedFd<'a>,
    left: usize,
    moved: &'a mut u64,
}

/// Removes everything in `directory` but `last`, or moves it up. Says whether there was anything.
fn clear(directory: BorrowedFd<'_>, last: &[u8], depth: &mut Depth<'_>) -> Result<bool> {
    // A handle of its own, since reading moves it to the end.
    let mut entries = names(reopen(directory)?.as_fd())?;
    entries.retain(|entry| entry.bytes != last);
    for entry in &entries {
        let name = &entry.bytes[..];
        let known_directory = entry.kind == Some(Kind::Directory);
        if !known_directory && let Gone::Yes = unlink(directory, name)? {
            continue;
        }
        if depth.left == 0 {
            // A directory that is moved to another parent must be writable itself.
            chmodat(directory, name, Mode::RWXU, AtFlags::empty())?;
            move_up(directory, name, depth.top, depth.moved)?;
        } else {
            let inner = match open_writable(directory, name) {
                // Somebody else's. Where it is empty nothing has to be changed in it.
                Err(errno @ (Errno::PERM | Errno::ACCESS)) => {
                    unlinkat(directory, name, AtFlags::REMOVEDIR).map_err(|_| errno)?;
                    continue;
                }
                opened => opened?,
            };
            depth.left -= 1;
            clear(inner.as_fd(), b"", depth)?;
            depth.left += 1;
            unlinkat(directory, name, AtFlags::REMOVEDIR)?;
        }
    }
    Ok(!entries.is_empty())
}

/// Gives the directory a name at the top that nothing else has.
fn move_up(from: BorrowedFd<'_>, name: &[u8], top: BorrowedFd<'_>, moved: &mut u64) -> Result<()> {
    loop {
        *moved += 1;
        let fresh = format!(".removing-{moved}");
        match renameat(from, name, top, &fresh) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            done => return done,
        }
    }
}

/// Whether an entry is gone.
enum Gone {
    Yes,
    No,
}

fn unlink(parent: BorrowedFd<'_>, name: &[u8]) -> Result<Gone> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(Gone::Yes),
        Err(UNLINKED_DIRECTORY) => Ok(Gone::No),
        Err(errno) => Err(errno),
    }
}

/// Opens a directory to change it; gives it the permission that takes, if it lacks it.
fn open_writable(parent: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(directory) = openat(parent, name, OFlags::RDONLY | flags, Mode::empty())
        && accessat(&directory, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) == Ok(())
    {
        return Ok(directory);
    }
    // The mode is changed through a handle that cannot be a symbolic link.
    let handle = openat(parent, name, REFERENCE | flags, Mode::empty())?;
    let_owner_in(&handle)?;
    openat(parent, name, OFlags::RDONLY | flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn removes_depth_modes_links_and_its_own_names() {
        let place = tempfile::tempdir().expect("a directory");
        let outside = place.path().join("outside");
        fs_err::create_dir(&outside).expect("made");
        fs_err::write(outside.join("keep"), "x").expect("written");
        let tree = place.path().join("tree");
        fs_err::create_dir_all(tree.join("a/b/c/.removing-1/d")).expect("made");
        fs_err::create_dir_all(tree.join(".removing-1/e")).expect("made");
        fs_err::write(tree.join(".removing-2"), "x").expect("written");
        fs_err::os::unix::fs::symlink(&outside, tree.join("a/b/link")).expect("linked");
        fs_err::os::unix::fs::symlink(&outside, tree.join("link")).expect("linked");
        for locked in ["a/b/c", "a/b", "a"] {
            let mode = std::fs::Permissions::from_mode(0o0);
            fs_err::set_permissions(tree.join(locked), mode).expect("locked");
        }
        remove_tree(&tree).expect("removed");
        assert!(!tree.exists());
        assert!(outside.join("keep").exists());
    }

    #[test]
    fn removes_a_tree_deeper_than_any_path() {
        let place = tempfile::tempdir().expect("a directory");
        let tree = place.path().join("tree");
        fs_err::create_dir(&tree).expect("made");
        let mut here = openat(CWD, &tree, REFERENCE | OFlags::DIRECTORY, Mode::empty()).expect("opened");
        for _ in 0..3000 {
            rustix::fs::mkdirat(&here, "deeper", Mode::RWXU).expect("made");
            here = openat(&here, "deeper", REFERENCE | OFlags::DIRECTORY, Mode::empty()).expect("opened");
        }
        remove_tree(&tree).expect("removed");
        assert!(!tree.exists());
    }

    #[test]
    fn the_last_entry_goes_with_the_directory_only() {
        let place = tempfile::tempdir().expect("a directory");
        let tree = place.path().join("tree");
        fs_err::create_dir_all(tree.join("a/lock")).expect("made");
        fs_err::write(tree.join("lock"), "").expect("written");
        remove_tree_and_last(&tree, "lock").expect("removed");
        assert!(!tree.exists());
    }

    #[test]
    fn a_tree_that_is_not_there_is_removed() {
        let place = tempfile::tempdir().expect("a directory");
        remove_tree(&place.path().join("none")).expect("nothing to do");
    }
}
