//! Makes the disk what a plan says. What goes or is replaced is taken aside first, and looked at there: it must be what the plan
//! says was there. Else somebody saved it a moment ago; it gets its place back, and `back` puts back all the rest.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, fchmod, fremovexattr, futimens, mkdirat, unlinkat};
use rustix::io::Errno;

use super::aside::{At, Exchanged, exchange, new_name, old_name, put};
use super::disk::{self, Tree};
use super::plan::{Holder, Plan, Step};
use super::verify::{Verify, is_directory};
use super::{RollbackError, RollbackOutcome};
use crate::checkout::{CheckoutSkipReason, CheckoutSkipped, Lost, Maker, Way, make_error, write_error};
use crate::dir::Kind;
use crate::state::{Node, Own, What};

pub(super) struct Apply<'a> {
    pub(super) maker: Maker<'a>,
    pub(super) tree: Tree<'a>,
    /// Where new files wait, and old ones are kept.
    pub(super) staging: BorrowedFd<'a>,
    /// What the names of files that are kept beside others end with.
    pub(super) id: &'a str,
    pub(super) verify: Verify<'a>,
    /// Called after every step.
    pub(super) progress: &'a dyn Fn(),
    /// Asked before every step on the way there.
    pub(super) cancelled: &'a dyn Fn() -> bool,
}

impl Apply<'_> {
    /// Whether to go on.
    pub(super) fn heed(&self) -> Result<(), RollbackError> {
        if (self.cancelled)() { Err(RollbackError::Cancelled) } else { Ok(()) }
    }

    /// Makes all new files and symlinks aside.
    pub(super) fn stage(&self, plan: &Plan) -> Result<Vec<CheckoutSkipped>, RollbackError> {
        let mut skipped = Vec::new();
        for (index, step) in plan.steps.iter().enumerate() {
            self.heed()?;
            let lost = self.stage_one(index, step)?;
            let reason =
                |lost| CheckoutSkipped { path: step.way.path(), why: CheckoutSkipReason::Without(lost) };
            skipped.extend(lost.into_iter().map(reason));
            (self.progress)();
        }
        Ok(skipped)
    }

    fn stage_one(&self, index: usize, step: &Step) -> Result<Vec<Lost>, RollbackError> {
        match &step.post {
            Some(post) => self.make(&new_name(index), post, &step.way),
            None => Ok(Vec::new()),
        }
    }

    /// Makes a file or a symlink aside; of a directory nothing.
    pub(super) fn make(&self, name: &str, node: &Node, way: &Way) -> Result<Vec<Lost>, RollbackError> {
        let Node { what, own } = node;
        let made = match what {
            What::File(id) => self.maker.file(self.staging, name.as_bytes(), (id, own)).map(|(_, lost)| lost),
            What::Symlink(id) => self.maker.symlink(self.staging, name.as_bytes(), (id, own)),
            What::Directory(_) | What::Gitlink(_) => return Ok(Vec::new()),
        };
        Ok(made.map_err(|error| make_error(&way.path(), error))?)
    }

    /// Puts everything in place: what goes, the deepest first; directories and files; symlinks; then what directories
    /// say of themselves.
    pub(super) fn apply(&self, plan: &Plan) -> Result<RollbackOutcome, RollbackError> {
        let mut outcome = RollbackOutcome::default();
        self.unlock(&plan.locked)?;
        for (index, step) in plan.steps.iter().enumerate().rev() {
            self.heed()?;
            self.clear(index, step, &mut outcome)?;
            (self.progress)();
        }
        self.tree.look_again();
        for symlinks in [false, true] {
            for (index, step) in plan.steps.iter().enumerate() {
                if is_symlink(step) == symlinks && !step.way.is_root() {
                    self.heed()?;
                    self.place(index, step, &mut outcome)?;
                    (self.progress)();
                }
            }
        }
        outcome.skipped.extend(self.settle_all(plan.holders.iter())?);
        Ok(outcome)
    }

    /// Lets the owner into directories again.
    pub(super) fn unlock(&self, locked: &[Arc<Way>]) -> Result<(), RollbackError> {
        self.tree.look_again();
        for way in locked {
            self.tree.unlock(way).map_err(|errno| write_error(&way.path(), errno))?;
        }
        Ok(())
    }

    /// What directories say of themselves, the deepest first.
    pub(super) fn settle_all<'h>(
        &self,
        holders: impl DoubleEndedIterator<Item = &'h Holder>,
    ) -> Result<Vec<CheckoutSkipped>, RollbackError> {
        let mut skipped = Vec::new();
        self.tree.look_again();
        for holder in holders.rev() {
            let lost = self.settle(holder).map_err(|errno| write_error(&holder.way.path(), errno))?;
            let reason =
                |lost| CheckoutSkipped { path: holder.way.path(), why: CheckoutSkipReason::Without(lost) };
            skipped.extend(lost.into_iter().map(reason));
            (self.progress)();
        }
        Ok(skipped)
    }

    /// Takes away what is not replaced in one step.
    fn clear(&self, index: usize, step: &Step, outcome: &mut RollbackOutcome) -> Result<(), RollbackError> {
        let write = |errno| RollbackError::from(write_error(&step.way.path(), errno));
        let Some(pre) = &step.pre else { return Ok(()) };
        let was = is_directory(pre);
        if step.post.as_ref().is_some_and(|post| is_directory(post) == was) {
            return Ok(());
        }
        let Some((parent, name)) = self.tree.parent(&step.way).map_err(write)? else { return Ok(()) };
        let place = (parent.as_fd(), name);
        let Some(meta) = disk::look(place.0, name).map_err(write)? else { return Ok(()) };
        if (meta.kind == Kind::Directory) != was {
            // Somebody else's by now.
            return Err(changed(step));
        }
        if !was {
            self.take_out(index, step, place)?;
            outcome.removed += u64::from(step.post.is_none());
            return Ok(());
        }
        match unlinkat(&parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) if step.post.is_none() => {
                outcome.kept.push(step.way.path());
                Ok(())
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err(changed(step)),
            Err(errno) => Err(write(errno)),
            Ok(()) => {
                outcome.removed += u64::from(step.post.is_none());
                Ok(())
            }
        }
    }

    /// Takes the old file aside. One that somebody changed gets its place back.
    fn take_out(&self, index: usize, step: &Step, place: At<'_>) -> Result<(), RollbackError> {
        let write = |errno| RollbackError::from(write_error(&step.way.path(), errno));
        let name = old_name(index);
        let old = (self.staging, name.as_bytes());
        match put(place, old) {
            Err(Errno::NOENT) => return Err(changed(step)),
            done => done.map_err(write)?,
        }
        let pre = step.pre.as_ref().expect("only what was there goes");
        if self.is(old, pre, &step.way).map_err(write)? {
            return Ok(());
        }
        match put(old, place) {
            // Somebody was faster; `sweep` finds a name for it.
            Ok(()) | Err(Errno::EXIST) => Err(changed(step)),
            Err(errno) => Err(write(errno)),
        }
    }

    fn place(&self, index: usize, step: &Step, outcome: &mut RollbackOutcome) -> Result<(), RollbackError> {
        let Some(post) = &step.post else { return Ok(()) };
        let write = |errno| RollbackError::from(write_error(&step.way.path(), errno));
        let found = self.tree.parent(&step.way).map_err(write)?;
        let (parent, name) = found.ok_or_else(|| changed(step))?;
        let place = (parent.as_fd(), name);
        let replaces = step.pre.as_ref().is_some_and(|pre| !is_directory(pre));
        match &post.what {
            What::Directory(_) | What::Gitlink(_) => match mkdirat(&parent, name, Mode::RWXU) {
                Err(Errno::EXIST) => match disk::look(place.0, name).map_err(write)? {
                    Some(meta) if meta.kind == Kind::Directory => {}
                    _ => return Err(changed(step)),
                },
                made => made.map_err(write)?,
            },
            What::File(_) | What::Symlink(_) if replaces => self.replace(index, step, place)?,
            What::File(_) | What::Symlink(_) => self.add(index, step, place)?,
        }
        outcome.written += 1;
        Ok(())
    }

    /// Exchanges a new file with the old one, and looks at what comes out.
    fn replace(&self, index: usize, step: &Step, place: At<'_>) -> Result<(), RollbackError> {
        let write = |errno| RollbackError::from(write_error(&step.way.path(), errno));
        let name = new_name(index);
        let aside = (self.staging, name.as_bytes());
        match exchange(aside, place) {
            Err(Errno::NOENT) => return Err(changed(step)),
            Err(errno) => return Err(write(errno)),
            Ok(Exchanged::Impossible) => {
                self.take_out(index, step, place)?;
                return self.add(index, step, place);
            }
            Ok(Exchanged::Done) => {}
        }
        let pre = step.pre.as_ref().expect("only what was there is replaced");
        if self.is(aside, pre, &step.way).map_err(write)? {
            return Ok(());
        }
        // Whatever comes out now is ours, unless somebody was faster once more: then `sweep` finds a name for it.
        exchange(aside, place).map_err(write)?;
        Err(changed(step))
    }

    /// What was not there before must not be replaced.
    fn add(&self, index: usize, step: &Step, place: At<'_>) -> Result<(), RollbackError> {
        let write = |errno| RollbackError::from(write_error(&step.way.path(), errno));
        let post = step.post.as_ref().expect("only what comes is put in place");
        match put((self.staging, new_name(index).as_bytes()), place) {
            // It may stand there already: the state to leave was recorded without it.
            Err(Errno::EXIST) if self.is(place, post, &step.way).map_err(write)? => Ok(()),
            Err(Errno::EXIST) => Err(changed(step)),
            done => done.map_err(write),
        }
    }

    /// Whether an entry is what a state says; of one that cannot be read nobody can say that.
    pub(super) fn is(&self, entry: At<'_>, node: &Node, way: &Way) -> rustix::io::Result<bool> {
        let known: disk::Known<'_> = &|meta| match self.verify {
            Verify::Trust => None,
            Verify::Check(known) => known(&|| way.path(), meta),
        };
        match disk::is(self.maker.objects, entry, node, known) {
            Err(Errno::ACCESS | Errno::PERM | Errno::STALE | Errno::NOENT) => Ok(false),
            is => is,
        }
    }

    fn settle(&self, holder: &Holder) -> rustix::io::Result<Vec<Lost>> {
        let directory = self.tree.open(&holder.way)?;
        let fd = directory.as_fd();
        let own = &holder.own;
        let mut lost = Vec::new();
        let found = disk::attributes(fd)?;
        if found != own.attributes {
            for attribute in found.iter() {
                fremovexattr(fd, &*attribute.name)?;
            }
            // Without its time, which comes last.
            lost = self.maker.dress(fd, &Own { mtime_ns: None, ..own.clone() }, own.bits & 0o777)?;
        }
        let bits = own.bits & 0o777;
        if crate::dir::stat_fd(fd)?.mode != bits {
            fchmod(fd, Mode::from_raw_mode(bits.into()))?;
        }
        if holder.is_moved
            && let Some(times) = self.maker.stamps(own)
        {
            futimens(fd, &times)?;
        }
        Ok(lost)
    }
}

fn changed(step: &Step) -> RollbackError {
    RollbackError::Changed(vec![step.way.path()])
}

pub(super) fn is_symlink(step: &Step) -> bool {
    matches!(step.post, Some(Node { what: What::Symlink(_), .. }))
}
