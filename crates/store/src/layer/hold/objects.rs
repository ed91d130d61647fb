//! A directory of objects of the layer's own, which borrows those of the source.
//!
//! The source's own directory cannot stay below the layer: git removes directories of loose objects when it packs them and makes
//! them again. An overlay that has merged such a directory with one of the layer keeps the removed one, and a
//! command that runs could neither list what is in it nor see what comes later.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{Errno, Result};

use crate::alternates::listed;
use crate::dir::{open_below, open_dir, open_file, stat_at};
use crate::layer::pins::make_dir;
use crate::layer::write::mark::opaque;
use crate::path::RelPath;

pub(super) const OBJECTS: &[u8] = b"objects";
const INFO: &[u8] = b"info";
const ALTERNATES: &[u8] = b"alternates";
/// A longer list of alternates is not read.
const LIST: u64 = 64 << 10;

/// Whether the objects of the git directory `at` can be borrowed from another place: they lie in a directory, and no list
/// in it is meant from where it is.
pub fn can_lend(lower: BorrowedFd<'_>, at: &RelPath) -> bool {
    let objects = open_below(lower, at).and_then(|git| open_dir(git.as_fd(), OBJECTS));
    objects.is_ok_and(|objects| !names_relative(objects.as_fd()).unwrap_or(true))
}

fn names_relative(objects: BorrowedFd<'_>) -> Result<bool> {
    let list = open_dir(objects, INFO).and_then(|info| {
        let meta = stat_at(info.as_fd(), ALTERNATES)?;
        open_file(info.as_fd(), ALTERNATES, &meta)
    });
    let list = match list {
        Err(Errno::NOENT) => return Ok(false),
        list => File::from(list?),
    };
    let mut text = Vec::new();
    list.take(LIST + 1).read_to_end(&mut text).map_err(|error| super::file::errno(&error))?;
    Ok(text.len() as u64 > LIST || listed(&text).any(|directory| directory.is_relative()))
}

/// Makes such a directory, which borrows from `lender`.
pub(super) fn borrow((from, to): (BorrowedFd<'_>, BorrowedFd<'_>), lender: &[u8]) -> Result<()> {
    // Another layer that holds the same may have been made before there were such directories.
    let model = open_dir(from, OBJECTS).ok();
    let own = make_dir(to, OBJECTS, model.as_ref())?;
    opaque(own.as_fd())?;
    let info = make_dir(own.as_fd(), INFO, model.as_ref())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let list = openat(&info, ALTERNATES, flags, Mode::from_raw_mode(0o644))?;
    File::from(list).write_all(&[lender, b"\n"].concat()).map_err(|error| super::file::errno(&error))
}
