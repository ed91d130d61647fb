//! Directories for their own sake, and permissions. They have no content that could be lost, so they are made and removed
//! as directories on the way to files are, and permissions wait until the result stands.

use std::os::fd::AsFd as _;

use rustix::fs::{Mode as Bits, OFlags, openat};
use rustix::io::Errno;
use sandtable_sandbox::os;
use sandtable_store::dir::{Kind, stat_fd};

use super::folder_at;
use crate::deliver::journal::{Folder, Journal, ModeStep};
use crate::error::Error;
use crate::whole::{NewMode, PERMISSIONS, Whole};
use crate::worktree::Worktree;

/// Enters it into the journal. Directories that are made are entered with those that files need.
pub(super) fn plan(whole: &Whole, worktree: &Worktree, journal: &mut Journal) -> Result<(), Error> {
    for path in &whole.gone {
        if !journal.leaving.iter().any(|folder| folder.path == *path) {
            journal.leaving.push(folder_at(worktree, path)?);
        }
    }
    journal.leaving.sort_by(|a, b| a.path.cmp(&b.path));
    let kept = whole.kept.iter().cloned();
    journal.kept = kept.map(|path| Folder { path, mode: 0, mtime_ns: 0 }).collect();
    let step = |NewMode { path, before, after }| ModeStep { path, before, after };
    journal.modes = whole.changed.iter().cloned().map(step).collect();
    journal.modes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(())
}

/// Sets permissions, unless somebody has since. What is gone, or another's by now, is left alone.
pub(super) fn set_mode(worktree: &Worktree, step: &ModeStep) -> Result<(), Error> {
    let Ok(parent) = worktree.parent(&step.path) else { return Ok(()) };
    let flags = os::REFERENCE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = match openat(&parent, step.path.name().unwrap_or(b"."), flags, Bits::empty()) {
        Err(Errno::NOENT | Errno::ACCESS) => return Ok(()),
        opened => opened?,
    };
    let meta = stat_fd(handle.as_fd())?;
    let now = meta.mode & PERMISSIONS;
    let is_plain = matches!(meta.kind, Kind::File | Kind::Directory);
    if !is_plain || now == step.after || step.before.is_some_and(|before| before != now) {
        return Ok(());
    }
    let mode = u32::from(meta.mode & !PERMISSIONS | step.after);
    match os::set_mode(&handle, mode) {
        Err(Errno::PERM | Errno::ACCESS) => Ok(()),
        result => Ok(result?),
    }
}
