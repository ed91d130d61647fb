//! The two ends of a turn, each safe to begin again: everything is put back, or what was kept aside is thrown away. Both look at
//! what is there rather than trust how far it went, and nothing that somebody wrote is thrown away.

use std::collections::HashSet;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, mkdirat, unlinkat};
use rustix::io::Errno;

use super::RollbackError;
use super::apply::{Apply, is_symlink};
use super::aside::{
    At, Exchanged, Line, List, Stamp, exchange, is_same, keep_beside, new_name, old_name, put, within,
};
use super::disk;
use super::plan::{Plan, Step};
use super::verify::is_directory;
use crate::checkout::{Way, write_error};
use crate::dir::Kind;
use crate::path::RelPath;
use crate::remove::remove_at;

/// What is known of what was done.
pub(super) struct Back<'a, 't> {
    pub(super) apply: &'a Apply<'t>,
    /// What was done.
    pub(super) plan: &'a Plan,
    /// The way back, for what directories say of themselves.
    pub(super) reverse: &'a Plan,
    /// None where nobody wrote one: then only contents tell.
    pub(super) list: Option<&'a List>,
    /// By step, whether somebody has told git something else of the path since.
    pub(super) taken: Vec<bool>,
}

/// Who has the last word on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Ours,
    /// It was left as it is.
    Theirs,
}

impl Back<'_, '_> {
    /// Puts everything back but for what others did since: those paths are returned.
    pub(super) fn put_back(&self) -> Result<Vec<RelPath>, RollbackError> {
        self.apply.unlock(&self.reverse.locked)?;
        let mut left = Vec::new();
        let steps = || self.plan.steps.iter().enumerate().filter(|(_, step)| !step.way.is_root());
        for symlinks in [true, false] {
            for (index, step) in steps().rev().filter(|(_, step)| is_symlink(step) == symlinks) {
                self.each((index, step), &mut left, Self::withdraw)?;
            }
        }
        self.apply.tree.look_again();
        for (index, step) in steps() {
            self.each((index, step), &mut left, Self::restore)?;
        }
        let theirs: HashSet<&RelPath> = left.iter().collect();
        let is_theirs = |way: &Way| !theirs.is_empty() && theirs.contains(&way.path());
        let is_there = |way: &Arc<Way>| self.apply.tree.open(way).is_ok();
        let holders = self.reverse.holders.iter();
        let holders = holders.filter(|holder| !is_theirs(&holder.way) && is_there(&holder.way));
        self.apply.settle_all(holders)?;
        left.extend(self.sweep()?);
        left.sort_unstable();
        left.dedup();
        Ok(left)
    }

    fn each(
        &self,
        (index, step): (usize, &Step),
        left: &mut Vec<RelPath>,
        act: fn(&Self, usize, &Step) -> Result<Whose, RollbackError>,
    ) -> Result<(), RollbackError> {
        if act(self, index, step)? == Whose::Theirs {
            left.push(step.way.path());
        }
        (self.apply.progress)();
        Ok(())
    }

    fn line(&self, index: usize) -> Option<&Line> {
        self.list.and_then(|list| list.lines.get(index))
    }

    /// Whether an entry is the new file of a step.
    fn is_ours(&self, index: usize, step: &Step, entry: At<'_>) -> rustix::io::Result<bool> {
        let Some(meta) = disk::look(entry.0, entry.1)? else { return Ok(false) };
        match (self.line(index), &step.post) {
            (Some(line), _) => Ok(line.new == Some(Stamp::of(&meta))),
            (None, Some(post)) => self.apply.is(entry, post, &step.way),
            (None, None) => Ok(false),
        }
    }

    /// Takes away what came.
    fn withdraw(&self, index: usize, step: &Step) -> Result<Whose, RollbackError> {
        let write = |errno| RollbackError::from(write_error(&step.way.path(), errno));
        let Some(post) = &step.post else { return Ok(Whose::Ours) };
        let Some((parent, name)) = self.apply.tree.parent(&step.way).map_err(write)? else {
            return Ok(Whose::Ours);
        };
        let place = (parent.as_fd(), name);
        if is_directory(post) {
            if step.pre.as_ref().is_some_and(is_directory) {
                return Ok(Whose::Ours);
            }
            return match unlinkat(place.0, place.1, AtFlags::REMOVEDIR) {
                // What somebody put into it stays, and so does the directory.
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                    Ok(Whose::Ours)
                }
                Err(errno) => Err(write(errno)),
            };
        }
        self.withdraw_file((index, step), place).map_err(write)
    }

    fn withdraw_file(&self, (index, step): (usize, &Step), place: At<'_>) -> rustix::io::Result<Whose> {
        let name = new_name(index);
        let aside = (self.apply.staging, name.as_bytes());
        let is_taken = self.taken.get(index).is_some_and(|taken| *taken);
        if self.is_ours(index, step, aside)? && self.line(index).is_some() {
            // It never came to its place, or is back already, or has both names.
            return match is_same(aside, place)? {
                true if is_taken => Ok(Whose::Theirs),
                true => unlinkat(place.0, place.1, AtFlags::empty()).map(|()| Whose::Ours),
                false => Ok(Whose::Ours),
            };
        }
        if !self.is_ours(index, step, place)? {
            let was_there = |node| self.apply.is(place, node, &step.way);
            let untouched = self.line(index).is_none() && step.pre.as_ref().map_or(Ok(false), was_there)?;
            return Ok(if untouched { Whose::Ours } else { Whose::Theirs });
        }
        if is_taken {
            return Ok(Whose::Theirs);
        }
        let replaced = step.pre.as_ref().is_some_and(|pre| !is_directory(pre));
        if replaced && disk::look(aside.0, aside.1)?.is_some() {
            return match exchange(aside, place)? {
                // What somebody saved a moment ago is found by `sweep`.
                Exchanged::Done | Exchanged::Impossible => Ok(Whose::Ours),
            };
        }
        if disk::look(aside.0, aside.1)?.is_some() {
            // Others put it there.
            remove_at(aside.0, aside.1)?;
        }
        put(place, aside)?;
        if self.is_ours(index, step, aside)? {
            return Ok(Whose::Ours);
        }
        // Somebody saved it a moment ago.
        match put(aside, place) {
            Ok(()) | Err(Errno::EXIST) => Ok(Whose::Theirs),
            Err(errno) => Err(errno),
        }
    }

    /// Brings back what went.
    fn restore(&self, index: usize, step: &Step) -> Result<Whose, RollbackError> {
        let write = |errno| RollbackError::from(write_error(&step.way.path(), errno));
        let Some(pre) = &step.pre else { return Ok(Whose::Ours) };
        let goes = step.post.as_ref().is_none_or(|post| is_directory(post) != is_directory(pre));
        let Some((parent, name)) = self.apply.tree.parent(&step.way).map_err(write)? else {
            // Somebody removed the directory that it was in.
            return Ok(Whose::Theirs);
        };
        let place = (parent.as_fd(), name);
        if is_directory(pre) {
            if !goes {
                return Ok(Whose::Ours);
            }
            return match mkdirat(place.0, place.1, Mode::RWXU) {
                Ok(()) => Ok(Whose::Ours),
                Err(Errno::EXIST) => {
                    let found = disk::look(place.0, place.1).map_err(write)?;
                    let is_it = found.is_some_and(|meta| meta.kind == Kind::Directory);
                    Ok(if is_it { Whose::Ours } else { Whose::Theirs })
                }
                Err(errno) => Err(write(errno)),
            };
        }
        let old = old_name(index);
        let old = (self.apply.staging, old.as_bytes());
        let there = disk::look(place.0, place.1).map_err(write)?.is_some();
        let kept = disk::look(old.0, old.1).map_err(write)?.is_some();
        match (there, kept) {
            (_, true) if self.taken.get(index).is_some_and(|taken| *taken) => Ok(Whose::Theirs),
            // It has both names.
            (true, true) if is_same(old, place).map_err(write)? => {
                put(old, place).map(|()| Whose::Ours).map_err(write)
            }
            (true, true) => Ok(Whose::Theirs),
            (true, false) => Ok(Whose::Ours),
            // Somebody removed it.
            (false, false) if self.list.is_some() => Ok(Whose::Theirs),
            (false, kept) => {
                if !kept {
                    self.apply.make(&old_name(index), pre, &step.way)?;
                }
                match put(old, place) {
                    Err(Errno::EXIST) => Ok(Whose::Theirs),
                    done => done.map(|()| Whose::Ours).map_err(write),
                }
            }
        }
    }

    /// Nothing that somebody wrote is thrown away with the directory aside: it gets a name beside the file it was.
    pub(super) fn sweep(&self) -> Result<Vec<RelPath>, RollbackError> {
        let mut beside = Vec::new();
        for (index, step) in self.plan.steps.iter().enumerate() {
            let write = |errno| RollbackError::from(write_error(&step.way.path(), errno));
            for name in [new_name(index), old_name(index)] {
                let entry = (self.apply.staging, name.as_bytes());
                if disk::look(entry.0, entry.1).map_err(write)?.is_none()
                    || self.is_ours(index, step, entry).map_err(write)?
                {
                    continue;
                }
                let recorded = [&step.pre, &step.post].into_iter().flatten();
                let mut is_recorded = false;
                for node in recorded {
                    is_recorded |= self.apply.is(entry, node, &step.way).map_err(write)?;
                }
                if !is_recorded {
                    beside.push(self.keep_beside(step, entry).map_err(write)?);
                }
            }
            (self.apply.progress)();
        }
        Ok(beside)
    }

    /// In the directory that the file was in, which may have its last permissions by now; at the top if that cannot be.
    fn keep_beside(&self, step: &Step, entry: At<'_>) -> rustix::io::Result<RelPath> {
        let name = step.way.name().unwrap_or_default();
        let keep = |directory: BorrowedFd<'_>| {
            within(directory, || keep_beside(entry, (directory, name), self.apply.id))
        };
        if let Ok(Some((parent, _))) = self.apply.tree.parent(&step.way) {
            match keep(parent.as_fd()) {
                // It is somebody else's directory.
                Err(Errno::ACCESS | Errno::PERM) => {}
                kept => {
                    let above = step.way.parent().map(|way| way.path()).unwrap_or_default();
                    return above.join(&kept?).map_err(|_| Errno::NAMETOOLONG);
                }
            }
        }
        RelPath::new(keep(self.apply.tree.root)?).map_err(|_| Errno::NAMETOOLONG)
    }
}
