//! The objects of a source's git directory, shown at a place of their own.
//!
//! Below the layer they would be merged with those made inside, and an overlay loses sight of a merged directory that
//! git removes and makes again. Inside, git writes into a directory of the layer's own that borrows from
//! this place (`sandtable_store::layer::hold`), and the place follows whatever git does outside.
//!
//! The mount is among those that `resolve` decided (`resolve/lender.rs`), with device and inode. A command of another sandbox
//! may since have put something else at its path: then nothing is shown, and what is swapped after
//! this check is refused when it is mounted.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;

use fs_err as fs;
use rustix::io::{Errno, Result};
use sandtable_store::dir::{Kind, names, open_dir, reopen, stat_at};
use sandtable_store::layer::hold::can_lend;
use sandtable_store::path::RelPath;

use super::super::record::Record;
use crate::model::mount::{Content, FileIdentity, MountTable};
use crate::model::path::HostPath;
use crate::resolve::lender_place;

/// Whether the objects of the git directory `at` of `lower` are lent: they are those that were found, and `pins` hides nothing of
/// them. Otherwise nothing is shown.
pub(super) fn lend(
    mounts: &mut MountTable,
    (lower, at): (BorrowedFd<'_>, &RelPath),
    pins: BorrowedFd<'_>,
) -> bool {
    let are_there =
        shown(mounts).is_some_and(|(source, identity)| Found::at(source, identity) == Found::Same);
    let lends = are_there && can_lend(lower, at) && !is_hidden(pins, at).unwrap_or(true);
    if !lends {
        take_back(mounts);
    }
    lends
}

/// Shows nothing there.
pub(super) fn take_back(mounts: &mut MountTable) {
    mounts.remove(&lender_place());
}

/// Shows nothing there in a launch for which the objects are gone. Says whether something else is in their place.
pub(in crate::session) fn without_lost(record: &mut Record) -> bool {
    let found = shown(&record.resolved.mounts).map(|(source, identity)| Found::at(source, identity));
    if found.is_some_and(|found| found != Found::Same) {
        take_back(&mut record.resolved.mounts);
    }
    found == Some(Found::Other)
}

fn shown(mounts: &MountTable) -> Option<(&HostPath, Option<FileIdentity>)> {
    mounts.iter().find_map(|mount| match &mount.content {
        Content::Host { source, identity, .. } if mount.target == lender_place() => Some((source, *identity)),
        _ => None,
    })
}

/// What is where the objects were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Same,
    Nothing,
    Other,
}

impl Found {
    fn at(source: &HostPath, identity: Option<FileIdentity>) -> Self {
        match fs::symlink_metadata(source.as_path()) {
            Ok(meta) if identity == Some(FileIdentity { device: meta.dev(), inode: meta.ino() }) => {
                Self::Same
            }
            Ok(_) => Self::Other,
            Err(_) => Self::Nothing,
        }
    }
}

/// Whether the layer hides the git directory or a part of it. Nothing else is in the layer yet.
fn is_hidden(pins: BorrowedFd<'_>, at: &RelPath) -> Result<bool> {
    let mut directory = reopen(pins)?;
    for name in at.components() {
        match stat_at(directory.as_fd(), name) {
            Err(Errno::NOENT) => return Ok(false),
            Ok(meta) if meta.kind == Kind::Directory => directory = open_dir(directory.as_fd(), name)?,
            found => return found.map(|_| true),
        }
    }
    Ok(!names(directory.as_fd())?.is_empty())
}
