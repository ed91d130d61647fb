//! Makes the disk what a plan says. Every step can be done again after it was done, so that a plan which was broken off
//! is finished by doing all of it.

use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{
    AtFlags, Mode, RenameFlags, fchmod, fremovexattr, futimens, mkdirat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use super::disk;
use super::plan::{Holder, Plan, Step};
use super::verify::is_directory;
use super::{Error, Outcome};
use crate::checkout::{Lost, Maker, SkipReason, Skipped, make_error, write_error};
use crate::dir::{Kind, names, open_below, reopen};
use crate::id::ObjectId;
use crate::path::RelPath;
use crate::state::{Node, Own, What};

pub(super) struct Apply<'a> {
    pub(super) maker: Maker<'a>,
    pub(super) root: BorrowedFd<'a>,
    /// Where new files wait.
    pub(super) staging: BorrowedFd<'a>,
    /// What stands before their numbers.
    pub(super) prefix: char,
    pub(super) strangers: Strangers,
    /// Called after every step.
    pub(super) progress: &'a dyn Fn(),
}

/// What becomes of a file that stands where nothing was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strangers {
    Keep,
    Replace,
}

impl Apply<'_> {
    /// Makes all new files and symlinks aside.
    pub(super) fn stage(&self, plan: &Plan, cancelled: &dyn Fn() -> bool) -> Result<Vec<Skipped>, Error> {
        let mut skipped = Vec::new();
        for (index, step) in plan.steps.iter().enumerate() {
            if cancelled() {
                return Err(Error::Cancelled);
            }
            let lost = self.stage_one(index, step)?;
            let reason = |lost| Skipped { path: step.path.clone(), why: SkipReason::Without(lost) };
            skipped.extend(lost.into_iter().map(reason));
            (self.progress)();
        }
        Ok(skipped)
    }

    fn stage_one(&self, index: usize, step: &Step) -> Result<Vec<Lost>, Error> {
        let name = self.name(index);
        let made = match &step.post {
            Some(Node { what: What::File(id), own }) => {
                self.maker.file(self.staging, name.as_bytes(), (id, own)).map(|(_, lost)| lost)
            }
            Some(Node { what: What::Symlink(id), own }) => {
                self.maker.symlink(self.staging, name.as_bytes(), (id, own))
            }
            _ => return Ok(Vec::new()),
        };
        Ok(made.map_err(|error| make_error(&step.path, error))?)
    }

    fn name(&self, index: usize) -> String {
        format!("{}{index}", self.prefix)
    }

    /// Puts everything in place: what goes, the deepest first; directories and files; symlinks; then what directories
    /// say of themselves.
    pub(super) fn apply(&self, plan: &Plan) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        for path in &plan.locked {
            disk::unlock(self.root, path).map_err(|errno| write_error(path, errno))?;
        }
        for step in plan.steps.iter().rev() {
            self.clear(step, &mut outcome).map_err(|errno| write_error(&step.path, errno))?;
            (self.progress)();
        }
        let is_symlink = |step: &Step| matches!(step.post, Some(Node { what: What::Symlink(_), .. }));
        for symlinks in [false, true] {
            for (index, step) in plan.steps.iter().enumerate() {
                if is_symlink(step) == symlinks && !step.path.is_root() {
                    self.place(index, step, &mut outcome)?;
                    (self.progress)();
                }
            }
        }
        for holder in plan.holders.iter().rev() {
            let lost = self.settle(holder).map_err(|errno| write_error(&holder.path, errno))?;
            let reason = |lost| Skipped { path: holder.path.clone(), why: SkipReason::Without(lost) };
            outcome.skipped.extend(lost.into_iter().map(reason));
            (self.progress)();
        }
        Ok(outcome)
    }

    /// Takes away what is not replaced by a rename.
    fn clear(&self, step: &Step, outcome: &mut Outcome) -> rustix::io::Result<()> {
        let Some(pre) = &step.pre else { return Ok(()) };
        let was = is_directory(pre);
        if step.post.as_ref().is_some_and(|post| is_directory(post) == was) {
            return Ok(());
        }
        let Some((parent, name)) = disk::parent(self.root, &step.path)? else { return Ok(()) };
        let Some(meta) = disk::look(parent.as_fd(), name)? else { return Ok(()) };
        if (meta.kind == Kind::Directory) != was {
            // Done already, or somebody else's.
            return Ok(());
        }
        let flags = if was { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        match unlinkat(&parent, name, flags) {
            Err(Errno::NOTEMPTY | Errno::EXIST) if step.post.is_none() => {
                outcome.kept.push(step.path.clone());
                Ok(())
            }
            Err(errno) => Err(errno),
            Ok(()) => {
                outcome.removed += u64::from(step.post.is_none());
                Ok(())
            }
        }
    }

    fn place(&self, index: usize, step: &Step, outcome: &mut Outcome) -> Result<(), Error> {
        let Some(post) = &step.post else { return Ok(()) };
        let write = |errno| write_error(&step.path, errno);
        let found = disk::parent(self.root, &step.path).map_err(write)?;
        let (parent, name) = found.ok_or_else(|| write(Errno::NOTDIR))?;
        match &post.what {
            What::Directory(_) | What::Gitlink(_) => {
                let made = match mkdirat(&parent, name, Mode::RWXU) {
                    Err(Errno::EXIST) => match disk::look(parent.as_fd(), name).map_err(write)? {
                        Some(meta) if meta.kind == Kind::Directory => Ok(()),
                        _ => Err(Errno::EXIST),
                    },
                    made => made,
                };
                made.map_err(write)?;
            }
            What::File(_) | What::Symlink(_) => self.rename(index, step, (parent.as_fd(), name))?,
        }
        outcome.written += 1;
        Ok(())
    }

    /// Puts a staged entry where it belongs; makes it again if it is not there any more.
    fn rename(&self, index: usize, step: &Step, place: (BorrowedFd<'_>, &[u8])) -> Result<(), Error> {
        let staged = self.name(index);
        let write = |errno| write_error(&step.path, errno);
        // What was not there before must not be replaced; not every file system can promise that.
        let put = || match (self.strangers, &step.pre) {
            (Strangers::Replace, _) | (_, Some(_)) => renameat(self.staging, &staged, place.0, place.1),
            (Strangers::Keep, None) => {
                match renameat_with(self.staging, &staged, place.0, place.1, RenameFlags::NOREPLACE) {
                    Err(Errno::INVAL | Errno::NOSYS) => renameat(self.staging, &staged, place.0, place.1),
                    done => done,
                }
            }
        };
        let failed = match put() {
            // It was put there before, or stood there already; the staged one goes with all that is left.
            Err(errno @ (Errno::NOENT | Errno::EXIST)) => errno,
            done => return Ok(done.map_err(write)?),
        };
        let post = step.post.as_ref().expect("only what comes is put in place");
        if disk::is(self.maker.objects, place, post, &|_| None::<ObjectId>).map_err(write)? {
            return Ok(());
        }
        if failed == Errno::EXIST {
            return Err(write(failed).into());
        }
        self.stage_one(index, step)?;
        Ok(put().map_err(write)?)
    }

    fn settle(&self, holder: &Holder) -> rustix::io::Result<Vec<Lost>> {
        let directory = open_below(self.root, &holder.path)?;
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

/// Removes the directory `name` in `root`, in which only files and symlinks are.
pub(super) fn remove_staging(root: BorrowedFd<'_>, name: &str) -> Result<(), Error> {
    let path = RelPath::new(name).unwrap_or_default();
    let write = |errno| Error::from(write_error(&path, errno));
    let staging = match crate::dir::open_dir(root, name.as_bytes()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened.map_err(write)?,
    };
    for entry in names(reopen(staging.as_fd()).map_err(write)?.as_fd()).map_err(write)? {
        unlinkat(&staging, entry.bytes.as_slice(), AtFlags::empty()).map_err(write)?;
    }
    unlinkat(root, name, AtFlags::REMOVEDIR).map_err(write)
}
