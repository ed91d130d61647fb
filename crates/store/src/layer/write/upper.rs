//! An upper directory from two states.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Mode, fchmod};

use super::mark::{self, Made};
use super::{LayerWriteError, LayerWriteOptions, LayerWriteOutcome, at};
use crate::checkout::{
    self, CheckoutSkipReason, CheckoutSkipped, Lost, MakeError, Maker, Near, Way, make_error, must_be_empty,
};
use crate::object::{ReadError, ReadObjects};
use crate::rollback::{Move, Plan, Step, Unknown};
use crate::state::{Node, Own, State, What};

/// Fills the empty directory `upper` with what turns `base` into `to`.
pub fn write_upper(
    objects: &dyn ReadObjects,
    states: (&State, &State),
    upper: BorrowedFd<'_>,
    options: &LayerWriteOptions<'_>,
) -> Result<LayerWriteOutcome, LayerWriteError> {
    let (base, to) = states;
    must_be_empty(upper)?;
    let plan = Plan::new(objects, Move { from: base, to }, Unknown::Whole, options.limits)?;
    if let Some(path) = plan.refused {
        return Err(checkout::CheckoutError::Git(path).into());
    }
    let mut writing = Writing::new(objects, upper, options);
    let turned: HashMap<*const Way, &Step> =
        plan.steps.iter().map(|step| (Arc::as_ptr(&step.way), step)).collect();
    for holder in plan.holders.iter().filter(|holder| !holder.way.is_root()) {
        let step = turned.get(&Arc::as_ptr(&holder.way));
        let merge = step.map_or(Merge::Below, |step| writing.shows(step));
        writing.directory(&holder.way, merge)?;
    }
    let held: HashSet<*const Way> = plan.holders.iter().map(|holder| Arc::as_ptr(&holder.way)).collect();
    for step in &plan.steps {
        if step.way.parent().is_some_and(|parent| held.contains(&Arc::as_ptr(parent))) {
            writing.step(step)?;
        }
    }
    for holder in plan.holders.iter().rev() {
        writing.settle((&holder.way, &holder.own), turned.get(&Arc::as_ptr(&holder.way)).copied())?;
    }
    let left = plan
        .not_stored
        .iter()
        .map(|way| CheckoutSkipped { path: way.path(), why: CheckoutSkipReason::NotStored });
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
    layer: RefCell<Near<'a>>,
    lower: Option<RefCell<Near<'a>>>,
    pub(super) outcome: LayerWriteOutcome,
}

impl<'a> Writing<'a> {
    pub(super) fn new(
        objects: &'a dyn ReadObjects,
        layer: BorrowedFd<'a>,
        options: &LayerWriteOptions<'a>,
    ) -> Self {
        let maker = Maker::new(objects, layer, options.times).given_to(options.owner);
        let near = |top: BorrowedFd<'a>| RefCell::new(Near::new(top));
        let (layer, lower) = (near(layer), options.lower.map(near));
        Self { maker, owner: options.owner, layer, lower, outcome: LayerWriteOutcome::default() }
    }

    /// Makes a directory; says whether it is new.
    pub(super) fn directory(&self, way: &Arc<Way>, merge: Merge) -> Result<Made, LayerWriteError> {
        let (parent, name) = self.parent(way)?;
        let (directory, made) = mark::directory(parent.as_fd(), name).map_err(at(way))?;
        if made == Made::Before {
            return Ok(made);
        }
        match merge {
            Merge::Nothing => mark::opaque(directory.as_fd()).map_err(at(way))?,
            Merge::Below => {
                if let Some(model) = self.below(way) {
                    mark::owned_like(directory.as_fd(), model.as_fd()).map_err(at(way))?;
                }
            }
        }
        Ok(made)
    }

    /// The directory of the tree below, if it has one there.
    pub(super) fn below(&self, way: &Arc<Way>) -> Option<OwnedFd> {
        self.lower.as_ref().and_then(|lower| lower.borrow_mut().open(way).ok())
    }

    /// The layer's own directory.
    pub(super) fn open(&self, way: &Arc<Way>) -> rustix::io::Result<OwnedFd> {
        self.layer.borrow_mut().open(way)
    }

    /// What a directory of the state to come shows of the tree below. That the base has nothing there does not mean that
    /// there is nothing: it may have been recorded without ignored files. Whatever came there since is hidden by pins.
    fn shows(&self, step: &Step) -> Merge {
        match &step.pre {
            Some(pre) if !is_directory(Some(pre)) => Merge::Nothing,
            None if self.below(&step.way).is_none() => Merge::Nothing,
            _ => Merge::Below,
        }
    }

    /// One entry in a directory that is there.
    fn step(&mut self, step: &Step) -> Result<(), LayerWriteError> {
        match &step.post {
            Some(node) if step.pre.as_ref().is_some_and(|pre| is_gitlink(pre) && is_gitlink(node)) => {
                self.skip(&step.way, CheckoutSkipReason::Repository);
                Ok(())
            }
            Some(node) => self.entry(&step.way, node),
            None => self.whiteout(&step.way),
        }
    }

    pub(super) fn whiteout(&mut self, way: &Arc<Way>) -> Result<(), LayerWriteError> {
        let (parent, name) = self.parent(way)?;
        let made = mark::whiteout(parent.as_fd(), name).map_err(at(way))?;
        self.outcome.whiteouts += u64::from(made == Made::New);
        Ok(())
    }

    /// A file or symlink; directories have been made.
    pub(super) fn entry(&mut self, way: &Arc<Way>, node: &Node) -> Result<(), LayerWriteError> {
        let (parent, name) = self.parent(way)?;
        let made = match &node.what {
            What::Directory(_) => return Ok(()),
            What::Gitlink(_) => {
                self.directory(way, Merge::Nothing)?;
                self.skip(way, CheckoutSkipReason::Repository);
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
            Err(MakeError::Read(ReadError::Missing(_))) => self.skip(way, CheckoutSkipReason::NotStored),
            made => self.lost(way, made.map_err(|error| make_error(&way.path(), error))?),
        }
        Ok(())
    }

    /// What a directory says of itself, once all is in it.
    fn settle(
        &mut self,
        (way, own): (&Arc<Way>, &Own),
        turned: Option<&Step>,
    ) -> Result<(), LayerWriteError> {
        let directory = self.open(way).map_err(at(way))?;
        // One that merges keeps the owner it took from below.
        let keeps = turned.is_none_or(|step| is_directory(step.pre.as_ref())) && self.lower.is_some();
        let maker = self.maker.given_to(self.owner.filter(|_| !keeps));
        let lost = maker.settle(directory.as_fd(), own).map_err(at(way))?;
        if turned.is_none() && own.bits & 0o7000 != 0 {
            // As it is below, where it is the user's own: a directory gains nothing by these bits.
            fchmod(&directory, Mode::from_raw_mode(own.bits.into())).map_err(at(way))?;
            return Ok(());
        }
        self.lost(way, lost);
        Ok(())
    }

    /// The same for a directory that was made alone.
    pub(super) fn settle_one(&mut self, way: &Arc<Way>, own: &Own) -> Result<(), LayerWriteError> {
        self.settle((way, own), None)
    }

    fn parent<'w>(&self, way: &'w Arc<Way>) -> Result<(OwnedFd, &'w [u8]), LayerWriteError> {
        let place = way.parent().zip(way.name());
        let (parent, name) = place.ok_or_else(|| at(way)(rustix::io::Errno::INVAL))?;
        Ok((self.open(parent).map_err(at(way))?, name))
    }

    fn lost(&mut self, way: &Way, lost: Vec<Lost>) {
        for lost in lost {
            self.skip(way, CheckoutSkipReason::Without(lost));
        }
    }

    fn skip(&mut self, way: &Way, why: CheckoutSkipReason) {
        self.outcome.skipped.push(CheckoutSkipped { path: way.path(), why });
    }
}

fn is_gitlink(node: &Node) -> bool {
    matches!(node.what, What::Gitlink(_))
}

fn is_directory(node: Option<&Node>) -> bool {
    node.is_some_and(|node| matches!(node.what, What::Directory(_)))
}
