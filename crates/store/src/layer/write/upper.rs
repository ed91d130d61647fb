//! An upper directory from two states.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{Mode, fchmod};

use super::mark::{self, Made};
use super::{Error, Options, Outcome, at};
use crate::checkout::{self, Lost, MakeError, Maker, SkipReason, Skipped, make_error, must_be_empty};
use crate::dir::open_below;
use crate::object::{ReadError, ReadObjects};
use crate::path::RelPath;
use crate::rollback::{Holder, Move, Plan, Step, Unknown};
use crate::state::{Node, State, What};

/// Fills the empty directory `upper` with what turns `base` into `to`.
pub fn write_upper(
    objects: &dyn ReadObjects,
    states: (&State, &State),
    upper: BorrowedFd<'_>,
    options: &Options<'_>,
) -> Result<Outcome, Error> {
    let (base, to) = states;
    must_be_empty(upper)?;
    let plan = Plan::new(objects, Move { from: base, to }, Unknown::Whole, options.limits)?;
    if let Some(path) = plan.refused {
        return Err(checkout::Error::Git(path).into());
    }
    let mut writing = Writing::new(objects, upper, options);
    let turned: HashMap<&RelPath, &Step> = plan.steps.iter().map(|step| (&step.path, step)).collect();
    for holder in plan.holders.iter().filter(|holder| !holder.path.is_root()) {
        let merge = turned.get(&holder.path).map_or(Merge::Below, |step| writing.shows(step));
        writing.directory(&holder.path, merge)?;
    }
    for step in &plan.steps {
        let held = step.path.parent().is_some_and(|parent| plan.holds(&parent));
        if held {
            writing.step(step)?;
        }
    }
    for holder in plan.holders.iter().rev() {
        writing.settle(holder, turned.get(&holder.path).copied())?;
    }
    let left = plan.not_stored.into_iter().map(|path| Skipped { path, why: SkipReason::NotStored });
    writing.outcome.skipped.extend(left);
    writing.outcome.skipped.sort_unstable();
    Ok(writing.outcome)
}

/// What a directory of the layer shows of the layers below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merge {
    Below,
    Nothing,
}

pub(super) struct Writing<'a> {
    maker: Maker<'a>,
    owner: Option<(u32, u32)>,
    layer: BorrowedFd<'a>,
    lower: Option<BorrowedFd<'a>>,
    pub(super) outcome: Outcome,
}

impl<'a> Writing<'a> {
    pub(super) fn new(objects: &'a dyn ReadObjects, layer: BorrowedFd<'a>, options: &Options<'a>) -> Self {
        let maker = Maker::new(objects, layer, options.times).given_to(options.owner);
        Self { maker, owner: options.owner, layer, lower: options.lower, outcome: Outcome::default() }
    }

    /// Makes a directory; says whether it is new.
    pub(super) fn directory(&self, path: &RelPath, merge: Merge) -> Result<Made, Error> {
        let (parent, name) = self.parent(path)?;
        let (directory, made) = mark::directory(parent.as_fd(), name).map_err(at(path))?;
        if made == Made::Before {
            return Ok(made);
        }
        match merge {
            Merge::Nothing => mark::opaque(directory.as_fd()).map_err(at(path))?,
            Merge::Below => {
                if let Some(model) = self.lower.and_then(|lower| open_below(lower, path).ok()) {
                    mark::owned_like(directory.as_fd(), model.as_fd()).map_err(at(path))?;
                }
            }
        }
        Ok(made)
    }

    /// What a directory of the state to come shows of the tree below. That the base has nothing there does not mean that
    /// there is nothing: it may have been recorded without ignored files. Whatever came there since is hidden by pins.
    fn shows(&self, step: &Step) -> Merge {
        let has_below = || self.lower.is_some_and(|lower| open_below(lower, &step.path).is_ok());
        match &step.pre {
            Some(pre) if !is_directory(Some(pre)) => Merge::Nothing,
            None if !has_below() => Merge::Nothing,
            _ => Merge::Below,
        }
    }

    /// One entry in a directory that is there.
    fn step(&mut self, step: &Step) -> Result<(), Error> {
        match &step.post {
            Some(node) if step.pre.as_ref().is_some_and(|pre| is_gitlink(pre) && is_gitlink(node)) => {
                self.skip(&step.path, SkipReason::Repository);
                Ok(())
            }
            Some(node) => self.entry(&step.path, node),
            None => self.whiteout(&step.path),
        }
    }

    pub(super) fn whiteout(&mut self, path: &RelPath) -> Result<(), Error> {
        let (parent, name) = self.parent(path)?;
        let made = mark::whiteout(parent.as_fd(), name).map_err(at(path))?;
        self.outcome.whiteouts += u64::from(made == Made::New);
        Ok(())
    }

    /// A file or symlink; directories have been made.
    pub(super) fn entry(&mut self, path: &RelPath, node: &Node) -> Result<(), Error> {
        let (parent, name) = self.parent(path)?;
        let made = match &node.what {
            What::Directory(_) => return Ok(()),
            What::Gitlink(_) => {
                self.directory(path, Merge::Nothing)?;
                self.skip(path, SkipReason::Repository);
                return Ok(());
            }
            What::File(id) => self.maker.file(parent.as_fd(), name, (id, &node.own)).map(|(bytes, lost)| {
                self.outcome.files += 1;
                self.outcome.bytes += bytes;
                lost
            }),
            What::Symlink(id) => self.maker.symlink(parent.as_fd(), name, (id, &node.own)),
        };
        match made {
            Err(MakeError::Read(ReadError::Missing(_))) => self.skip(path, SkipReason::NotStored),
            made => self.lost(path, made.map_err(|error| make_error(path, error))?),
        }
        Ok(())
    }

    /// What a directory says of itself, once all is in it.
    fn settle(&mut self, holder: &Holder, turned: Option<&Step>) -> Result<(), Error> {
        let path = &holder.path;
        let directory = open_below(self.layer, path).map_err(at(path))?;
        // One that merges keeps the owner it took from below.
        let keeps = turned.is_none_or(|step| is_directory(step.pre.as_ref())) && self.lower.is_some();
        let maker = self.maker.given_to(self.owner.filter(|_| !keeps));
        let lost = maker.settle(directory.as_fd(), &holder.own).map_err(at(path))?;
        if turned.is_none() && holder.own.bits & 0o7000 != 0 {
            // As it is below, where it is the user's own: a directory gains nothing by these bits.
            fchmod(&directory, Mode::from_raw_mode(holder.own.bits.into())).map_err(at(path))?;
            return Ok(());
        }
        self.lost(path, lost);
        Ok(())
    }

    /// The same for a directory that was made alone.
    pub(super) fn settle_one(&mut self, path: &RelPath, node: &Node) -> Result<(), Error> {
        let holder = Holder { path: path.clone(), own: node.own.clone(), is_moved: true };
        self.settle(&holder, None)
    }

    fn parent<'p>(&self, path: &'p RelPath) -> Result<(std::os::fd::OwnedFd, &'p [u8]), Error> {
        let name = path.name().ok_or_else(|| at(path)(rustix::io::Errno::INVAL))?;
        let parent = open_below(self.layer, &path.parent().unwrap_or_default()).map_err(at(path))?;
        Ok((parent, name))
    }

    fn lost(&mut self, path: &RelPath, lost: Vec<Lost>) {
        for lost in lost {
            self.skip(path, SkipReason::Without(lost));
        }
    }

    fn skip(&mut self, path: &RelPath, why: SkipReason) {
        self.outcome.skipped.push(Skipped { path: path.clone(), why });
    }
}

fn is_gitlink(node: &Node) -> bool {
    matches!(node.what, What::Gitlink(_))
}

fn is_directory(node: Option<&Node>) -> bool {
    node.is_some_and(|node| matches!(node.what, What::Directory(_)))
}
