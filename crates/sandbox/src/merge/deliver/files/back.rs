//! The two ends of a delivery, each safe to begin again: the old files are thrown away, or everything is put back.
//! Both look at what is there rather than trust how far it went.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{
    AtFlags, Mode as Bits, RenameFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens, mkdirat, unlinkat,
};
use rustix::io::Errno;
use sandtable_store::RelPath;
use sandtable_store::dir;

use super::{name, remove_holding, rename_out};
use crate::merge::deliver::journal::{Folder, Journal, Phase, Step, StepKind};
use crate::merge::error::Error;
use crate::merge::worktree::{Stamp, Worktree, see_in, stamp_in};

/// The result stands: old files go, and directories that have become empty.
pub(in crate::merge::deliver) fn finish(journal: &Journal) -> Result<(), Error> {
    let worktree = Worktree::open(&journal.root)?;
    if let Ok(holding) = dir::open_named(&journal.holding) {
        for (number, step) in journal.steps.iter().enumerate() {
            let seen = see_in(holding.as_fd(), number.to_string().as_bytes())?;
            let there = seen.content().is_some();
            // Somebody wrote to the old file through a handle of their own.
            if there && step.kind != StepKind::Add && seen.digest() != step.before {
                keep_beside(&worktree, holding.as_fd(), (number, step), journal)?;
            }
        }
    }
    remove_holding(journal)?;
    for step in journal.steps.iter().filter(|step| step.kind == StepKind::Remove) {
        remove_empty(&worktree, &step.path);
    }
    Ok(())
}

/// It came to nothing: everything goes back to where it was, and edits of others stay.
pub(in crate::merge::deliver) fn put_back(journal: &Journal) -> Result<(), Error> {
    let worktree = Worktree::open(&journal.root)?;
    if let (Ok(holding), true) = (dir::open_named(&journal.holding), journal.phase != Phase::Preparing) {
        let steps = || journal.steps.iter().enumerate().rev();
        for (number, step) in steps().filter(|(_, step)| step.kind != StepKind::Remove) {
            Undo { worktree: &worktree, holding: holding.as_fd(), journal, number, step }.new_file()?;
        }
        for folder in journal.made.iter().rev() {
            remove_folder(&worktree, &folder.path);
        }
        for folder in &journal.leaving {
            make_folder(&worktree, folder)?;
        }
        for (number, step) in steps().filter(|(_, step)| step.kind == StepKind::Remove) {
            Undo { worktree: &worktree, holding: holding.as_fd(), journal, number, step }.removed_file()?;
        }
    }
    remove_holding(journal)?;
    for folder in journal.touched.iter().chain(&journal.leaving) {
        restore_time(&worktree, folder);
    }
    Ok(())
}

/// One step, on its way back.
struct Undo<'a> {
    worktree: &'a Worktree,
    holding: BorrowedFd<'a>,
    journal: &'a Journal,
    number: usize,
    step: &'a Step,
}

impl Undo<'_> {
    fn aside(&self) -> Result<Option<Stamp>, Error> {
        stamp_in(self.holding, self.number.to_string().as_bytes())
    }

    /// A file of ours gives its place back, unless somebody has written to it since.
    fn new_file(&self) -> Result<(), Error> {
        let placed = self.worktree.stamp(&self.step.path)?;
        let Some(new) = self.step.new else { return Ok(()) };
        if placed != Some(new) {
            return self.keep_old();
        }
        let Ok(parent) = self.worktree.parent(&self.step.path) else { return Ok(()) };
        match self.step.kind {
            StepKind::Add => {
                unlinkat(&parent, name(self.step), AtFlags::empty())?;
                Ok(())
            }
            _ if self.aside()?.is_none() => Ok(()),
            _ => {
                let from = (self.holding, self.number);
                rename_out(from, parent.as_fd(), name(self.step), RenameFlags::EXCHANGE)?;
                if self.aside()? != Some(new) {
                    keep_beside(self.worktree, self.holding, (self.number, self.step), self.journal)?;
                }
                Ok(())
            }
        }
    }

    /// Somebody has put another file in the place of ours. What git has need not be kept; all else must be.
    fn keep_old(&self) -> Result<(), Error> {
        let aside = see_in(self.holding, self.number.to_string().as_bytes())?;
        let is_old = self.step.kind == StepKind::Replace && aside.digest() == self.step.before;
        if !is_old || self.journal.reference.is_some() {
            return Ok(());
        }
        keep_beside(self.worktree, self.holding, (self.number, self.step), self.journal)
    }

    fn removed_file(&self) -> Result<(), Error> {
        if self.aside()?.is_none() {
            return Ok(());
        }
        let parent = self.worktree.parent(&self.step.path)?;
        let from = (self.holding, self.number);
        match rename_out(from, parent.as_fd(), name(self.step), RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {
                keep_beside(self.worktree, self.holding, (self.number, self.step), self.journal)
            }
            result => Ok(result?),
        }
    }
}

/// Nothing that somebody wrote is thrown away: it gets a name beside the file it was.
fn keep_beside(
    worktree: &Worktree,
    holding: BorrowedFd<'_>,
    (number, step): (usize, &Step),
    journal: &Journal,
) -> Result<(), Error> {
    let mut beside = name(step).to_vec();
    beside.extend_from_slice(format!(".sandtable-{}", journal.id).as_bytes());
    let parent = match worktree.parent(&step.path) {
        Ok(parent) => parent,
        Err(_) => dir::reopen(worktree.root())?,
    };
    rename_out((holding, number), parent.as_fd(), &beside, RenameFlags::NOREPLACE)?;
    Ok(())
}

/// Removes the directories above a removed file that nothing is in any more.
fn remove_empty(worktree: &Worktree, path: &RelPath) {
    for folder in std::iter::successors(path.parent(), RelPath::parent).filter(|folder| !folder.is_root()) {
        if !remove_folder(worktree, &folder) {
            return;
        }
    }
}

/// Whether the directory was empty and is gone.
fn remove_folder(worktree: &Worktree, path: &RelPath) -> bool {
    let Ok(parent) = worktree.parent(path) else { return false };
    unlinkat(&parent, path.name().unwrap_or_default(), AtFlags::REMOVEDIR).is_ok()
}

fn make_folder(worktree: &Worktree, folder: &Folder) -> Result<(), Error> {
    let parent = worktree.parent(&folder.path)?;
    match mkdirat(&parent, folder.path.name().unwrap_or_default(), Bits::RWXU) {
        Ok(()) => {
            let made = dir::open_below(worktree.root(), &folder.path)?;
            Ok(fchmod(&made, Bits::from_raw_mode(folder.mode.into()))?)
        }
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// As if nobody had been here. A directory that cannot be reached any more is somebody else's doing.
fn restore_time(worktree: &Worktree, folder: &Folder) {
    let Ok(handle) = dir::open_below(worktree.root(), &folder.path) else { return };
    let seconds = folder.mtime_ns.div_euclid(1_000_000_000);
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: folder.mtime_ns.rem_euclid(1_000_000_000) },
    };
    futimens(&handle, &times).ok();
}
