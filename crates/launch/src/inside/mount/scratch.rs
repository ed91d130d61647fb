//! Everything of a sandbox that is in memory: directories of one file system, which has one size and one number of files,
//! half of the machine's. Several of their own would add up to all of it.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, fchmod, mkdirat, openat};
use rustix::mount::{OpenTreeFlags, open_tree};
use sandtable_protocol::step::Step;

use super::{Done, attach, tmpfs};
use crate::step::Context as _;

/// The file system that all of them are parts of.
pub(super) struct Scratch {
    whole: OwnedFd,
    parts: usize,
}

impl Scratch {
    /// Makes it on `stage`, where nobody sees it later: a clone of a part needs a place to be cloned from.
    pub(super) fn new(stage: BorrowedFd<'_>) -> Done<Self> {
        let what = || Step::MakeMemory;
        let whole = tmpfs(&[("mode", "0700")]).context(what)?;
        mkdirat(stage, "memory", Mode::RWXU).context(what)?;
        attach(&whole, stage, Path::new("memory")).context(what)?;
        Ok(Self { whole, parts: 0 })
    }

    /// A directory of its own, as a mount that is attached nowhere yet.
    pub(super) fn part(&mut self, mode: u32) -> rustix::io::Result<OwnedFd> {
        let name = self.parts.to_string();
        self.parts += 1;
        mkdirat(&self.whole, &name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(&self.whole, &name, flags, Mode::empty())?;
        // The mask of the caller does not count here.
        fchmod(&directory, Mode::from_raw_mode(mode))?;
        open_tree(
            self.whole.as_fd(),
            &name,
            OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::OPEN_TREE_CLONE,
        )
    }
}
