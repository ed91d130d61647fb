//! Removing a tree that a sandbox left: any depth, any permissions, no symbolic link followed.
//!
//! A directory inside is never walked into deeper than one level. What it holds is removed or, if it is a
//! directory itself, moved up to the top of the tree, so that depth costs neither stack nor descriptors.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, chmodat, openat, renameat, unlinkat};
use rustix::io::{Errno, Result};

use crate::dir::{names, reopen};

/// Why a tree could not be removed completely.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove `{}`", path.display())]
pub struct Error {
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

/// Removes the directory `path` and everything in it. The caller must own it, and nothing may use it.
pub fn remove_tree(path: &Path) -> std::result::Result<(), Error> {
    remove(path).map_err(|errno| Error { path: path.to_owned(), source: errno.into() })
}

fn remove(path: &Path) -> Result<()> {
    let top = match open_writable(CWD, path) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let mut moved = 0;
    loop {
        // A handle of its own each time, since reading moves it to the end.
        let entries = names(reopen(top.as_fd())?.as_fd())?;
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            if let Gone::No = unlink(top.as_fd(), &entry.bytes)? {
                empty(top.as_fd(), &entry.bytes, &mut moved)?;
            }
        }
    }
    drop(top);
    unlinkat(CWD, path, AtFlags::REMOVEDIR)
}

/// Removes the directory `name` below `top` after everything in it was removed or moved up.
fn empty(top: BorrowedFd<'_>, name: &[u8], moved: &mut u64) -> Result<()> {
    let directory = open_writable(top, name)?;
    for entry in names(directory.as_fd())? {
        if let Gone::No = unlink(directory.as_fd(), &entry.bytes)? {
            // A directory that is moved to another parent must be writable itself.
            chmodat(&directory, &entry.bytes[..], Mode::RWXU, AtFlags::empty())?;
            move_up(directory.as_fd(), &entry.bytes, top, moved)?;
        }
    }
    unlinkat(top, name, AtFlags::REMOVEDIR)
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
        Err(Errno::ISDIR) => Ok(Gone::No),
        Err(errno) => Err(errno),
    }
}

fn open_writable(parent: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd> {
    // The mode is changed through a handle that cannot be a symbolic link.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(parent, name, flags, Mode::empty())?;
    let itself = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&handle));
    chmodat(CWD, itself, Mode::RWXU, AtFlags::empty())?;
    openat(
        parent,
        name,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
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
        let mut here = openat(CWD, &tree, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).expect("opened");
        for _ in 0..3000 {
            rustix::fs::mkdirat(&here, "deeper", Mode::RWXU).expect("made");
            here = openat(&here, "deeper", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).expect("opened");
        }
        remove_tree(&tree).expect("removed");
        assert!(!tree.exists());
    }

    #[test]
    fn a_tree_that_is_not_there_is_removed() {
        let place = tempfile::tempdir().expect("a directory");
        remove_tree(&place.path().join("none")).expect("nothing to do");
    }
}
