//! Turns a directory from one state into another, touching only what differs.
//!
//! The caller says which state it believes to be on the disk. From both states follows what must be touched; all of
//! that is held against the disk first, and if anything is not what it should be, nothing is done: it is somebody's
//! work. Unchanged files keep inode and time. A file that changes is replaced by a new one, never written in place, so
//! that other names of the old one (hard links that lead outside) keep what they have.
//!
//! New files are made aside, in a directory of the same tree, before anything is touched; so a full disk is found out
//! while the old state is whole. Then each is exchanged with the old one, and what comes out is looked at: what somebody
//! saved a moment ago is found in our hands, and everything is put back. The result stands when the journal says so.
//! Whoever finds the journal later calls [`recover`]: before that word everything is put back, after it the last steps are
//! done. What somebody did meanwhile stays.
//!
//! A state that was recorded without ignored files says nothing about them: none is removed on the way to it (`spare`).
//!
//! `root` below is always a handle, and every entry is reached beneath it without following anything.

mod apply;
mod aside;
mod back;
mod disk;
mod journal;
mod plan;
mod recover;
mod spare;
mod verify;
mod work_dir;

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, fchmod, futimens};

pub use aside::keep_beside;
pub(crate) use plan::{Plan, Step};
pub use recover::{Recovered, Recovery, recover};
pub(crate) use spare::Unknown;
pub use verify::{Path as LazyPath, Verify};
pub use work_dir::clear_away;

use crate::checkout::{self, CheckoutSkipReason, CheckoutSkipped, Maker, Times, write_error};
use crate::dir::stat_fd;
use crate::object::ReadObjects;
use crate::path::RelPath;
use crate::state::{Limits, State, StateError};
use apply::Apply;
use aside::List;
use back::Back;
use disk::Tree;
use journal::{Phase, Place, Record, Work};
use verify::{MOST, Verifier};

/// The directory that is turned, and where its journal is kept.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    pub root: BorrowedFd<'a>,
    /// Where the directory is: what [`recover`] opens it by.
    pub path: &'a Path,
    /// The store's directory of journals.
    pub journal: BorrowedFd<'a>,
    /// A name for the record that no other one under way has.
    pub id: &'a str,
}

/// From which state to which.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    pub from: &'a State,
    pub to: &'a State,
}

/// How to go about it.
pub struct RollbackOptions<'a> {
    pub verify: Verify<'a>,
    pub times: Times,
    pub limits: Limits,
    pub durability: Durability,
    /// Called after every step, on the way there and on the way back. Letting owners into directories, and taking down the list of
    /// what waits aside, are no steps.
    pub progress: &'a dyn Fn(),
    /// Asked before every step until the new state stands. Once it says yes everything is put back, without asking again.
    pub cancelled: &'a dyn Fn() -> bool,
    /// For the journal: what [`recover`] hands back should this process not come to its end.
    pub note: Option<&'a str>,
    /// Called when the new state is in place, before the journal is removed.
    pub done: &'a dyn Fn() -> io::Result<()>,
}

impl std::fmt::Debug for RollbackOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("verify", &self.verify)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

impl Default for RollbackOptions<'_> {
    fn default() -> Self {
        Self {
            verify: Verify::Check(&|_, _| None),
            times: Times::Recorded,
            limits: Limits::default(),
            durability: Durability::Durable,
            progress: &|| {},
            cancelled: &|| false,
            note: None,
            done: &|| Ok(()),
        }
    }
}

/// What it must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process.
    Process,
    /// The end of power too.
    Durable,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RollbackOutcome {
    /// Entries that came or were replaced.
    pub written: u64,
    /// Entries that went.
    pub removed: u64,
    /// Directories that should have gone, but hold what no state knows.
    pub kept: Vec<RelPath>,
    /// What somebody wrote to files that had gone or been replaced already, under new names beside them.
    pub beside: Vec<RelPath>,
    /// What the state to come was recorded without, and which therefore is as it was. Of a directory only itself is
    /// named.
    pub spared: Vec<RelPath>,
    /// What is not there as the state has it, sorted by path.
    pub skipped: Vec<CheckoutSkipped>,
}

/// Why a directory could not be turned.
#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// Somebody changed these, or put something there.
    #[error("`{}` is not what was recorded", .0.first().map(RelPath::display_escaped).unwrap_or_default())]
    Changed(Vec<RelPath>),
    #[error(transparent)]
    Write(#[from] checkout::CheckoutError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("cannot write down what is about to be done")]
    Journal(#[source] io::Error),
    #[error("it was stopped")]
    Cancelled,
    #[error("the record of it cannot be read by this version")]
    Unreadable,
    #[error("`.git/index.lock` exists: git is at work there, and it waits for that")]
    GitAtWork,
    /// The journal is still there: [`recover`] puts everything back.
    #[error("the directory is half changed; the next command restores it")]
    Between(#[source] Box<RollbackError>),
    /// The journal is still there, and nothing else is left to do than what it names.
    #[error(
        "the directory is in its new state, but the last steps are still to be done, by the next command"
    )]
    Incomplete(#[source] Box<RollbackError>),
}

/// Turns the directory. After an error other than [`RollbackError::Between`] and [`RollbackError::Incomplete`] it is in the state it was in.
pub fn rollback(
    objects: &dyn ReadObjects,
    states: Move<'_>,
    site: &Site<'_>,
    options: &RollbackOptions<'_>,
) -> Result<RollbackOutcome, RollbackError> {
    let plan = Plan::new(objects, states, Unknown::Partial, options.limits)?;
    if let Some(path) = plan.refused {
        return Err(checkout::CheckoutError::Git(path).into());
    }
    let (verify, cancelled) = (options.verify, options.cancelled);
    let verifier = Verifier { objects, tree: Tree::new(site.root), verify, cancelled };
    let changed = verifier.changed(&plan, MOST)?;
    if !changed.is_empty() {
        return Err(RollbackError::Changed(changed));
    }
    let left = plan
        .not_stored
        .iter()
        .map(|way| CheckoutSkipped { path: way.path(), why: CheckoutSkipReason::NotStored });
    let left: Vec<CheckoutSkipped> = left.collect();
    let spared: Vec<RelPath> = plan.spared.iter().map(|way| way.path()).collect();
    if plan.steps.is_empty() {
        (options.done)().map_err(RollbackError::Journal)?;
        return Ok(RollbackOutcome { skipped: left, spared, ..RollbackOutcome::default() });
    }
    let mut outcome = Turn { objects, states, site, options }.run(&plan)?;
    outcome.spared = spared;
    outcome.skipped.extend(left);
    outcome.skipped.sort_unstable();
    outcome.skipped.dedup();
    Ok(outcome)
}

/// Writes a state into an empty directory, as [`checkout::checkout`] does, with a journal: if it is broken off,
/// [`recover`] takes away what was written.
pub fn checkout_journalled(
    objects: &dyn ReadObjects,
    state: &State,
    site: &Site<'_>,
    options: &checkout::CheckoutOptions<'_>,
) -> Result<checkout::CheckoutOutcome, RollbackError> {
    let place = Place { dir: site.journal, name: site.id, durability: Durability::Process };
    let work = Work::Checkout { to: *state };
    checkout::must_be_empty(site.root)?;
    let record = Record::new(site.root, site.path, options.times, work);
    record.and_then(|record| place.write(&record)).map_err(RollbackError::Journal)?;
    let done = checkout::checkout(objects, state, site.root, options);
    place.remove().map_err(RollbackError::Journal)?;
    Ok(done?)
}

struct Turn<'a> {
    objects: &'a dyn ReadObjects,
    states: Move<'a>,
    site: &'a Site<'a>,
    options: &'a RollbackOptions<'a>,
}

impl Turn<'_> {
    fn run(&self, plan: &Plan) -> Result<RollbackOutcome, RollbackError> {
        let staging = work_dir::place(self.site.root, self.site.id);
        self.note(&staging, Phase::Staging)?;
        let (aside, list, skipped) = match self.stage(plan, &staging) {
            Ok(staged) => staged,
            Err(error) => return Err(self.give_up(&staging, error)),
        };
        if let Err(error) = self.note(&staging, Phase::Applying) {
            // The word may be on disk though writing it failed. Nothing was touched yet.
            return Err(self.give_up(&staging, error));
        }
        let apply = self.apply(&aside);
        let applied = apply.apply(plan).and_then(|outcome| {
            self.sync()?;
            // Writing everything out may have taken long.
            apply.heed()?;
            self.note(&staging, Phase::Done)?;
            Ok(outcome)
        });
        let mut outcome = match applied {
            Ok(outcome) => outcome,
            Err(error) => return Err(self.undo(plan, (&apply, &list, &staging), error)),
        };
        outcome.skipped.extend(skipped);
        let none = Plan::default();
        let back = Back { apply: &apply, plan, reverse: &none, list: Some(&list), taken: Vec::new() };
        let ended = back.sweep().and_then(|beside| {
            outcome.beside = beside;
            outcome.beside.extend(self.settle(&staging, self.states.to)?);
            (self.options.done)().map_err(RollbackError::Journal)?;
            self.place().remove().map_err(RollbackError::Journal)
        });
        ended.map_err(|error| RollbackError::Incomplete(Box::new(error)))?;
        Ok(outcome)
    }

    /// Takes away what was made aside before anything was touched; what is said is why.
    fn give_up(&self, staging: &RelPath, error: RollbackError) -> RollbackError {
        match self.end(staging, self.states.from) {
            Ok(_) => error,
            Err(_) => RollbackError::Between(Box::new(error)),
        }
    }

    fn stage(
        &self,
        plan: &Plan,
        staging: &RelPath,
    ) -> Result<(OwnedFd, List, Vec<CheckoutSkipped>), RollbackError> {
        let write = |errno| write_error(staging, errno);
        if let Some(root) = plan.locked.first().filter(|way| way.is_root()) {
            let unlocked = Tree::new(self.site.root).unlock(root);
            unlocked.map_err(|errno| write_error(&RelPath::root(), errno))?;
        }
        let aside = work_dir::make(self.site.root, staging, self.site.id).map_err(write)?;
        let skipped = self.apply(&aside).stage(plan)?;
        let list = List::take_down((self.site.root, aside.as_fd()), plan, self.states.to.tree.kind());
        let list = list.map_err(write)?;
        list.write(aside.as_fd(), plan).map_err(RollbackError::Journal)?;
        self.sync()?;
        Ok((aside, list, skipped))
    }

    fn apply<'s>(&'s self, aside: &'s OwnedFd) -> Apply<'s> {
        Apply {
            maker: Maker::new(self.objects, aside.as_fd(), self.options.times),
            tree: Tree::new(self.site.root),
            staging: aside.as_fd(),
            id: self.site.id,
            verify: self.options.verify,
            progress: self.options.progress,
            cancelled: self.options.cancelled,
        }
    }

    /// Goes back to where it came from; what is said is why.
    fn undo(
        &self,
        plan: &Plan,
        (apply, list, staging): (&Apply<'_>, &List, &RelPath),
        error: RollbackError,
    ) -> RollbackError {
        let back = || -> Result<Vec<RelPath>, RollbackError> {
            // The word that it stands may be on disk though writing it failed; it must not be while files go back.
            self.note(staging, Phase::Applying)?;
            let Move { from, to } = self.states;
            let states = Move { from: to, to: from };
            let reverse = Plan::new(self.objects, states, Unknown::Partial, self.options.limits)?;
            let taken = list.taken_up(self.site.root, plan, to.tree.kind());
            let mut left = Back { apply, plan, reverse: &reverse, list: Some(list), taken }.put_back()?;
            left.extend(self.end(staging, from)?);
            Ok(left)
        };
        match (back(), error) {
            (Ok(left), RollbackError::Changed(mut paths)) => {
                paths.extend(left);
                paths.sort_unstable();
                paths.dedup();
                RollbackError::Changed(paths)
            }
            (Ok(_), error) => error,
            // What kept it from going on is what must be mended.
            (Err(_), error) => RollbackError::Between(Box::new(error)),
        }
    }

    /// Returns what could not be removed, if anything.
    fn end(&self, staging: &RelPath, now: &State) -> Result<Option<RelPath>, RollbackError> {
        self.sync()?;
        let kept = self.settle(staging, now)?;
        self.place().remove().map_err(RollbackError::Journal)?;
        Ok(kept)
    }

    fn settle(&self, staging: &RelPath, now: &State) -> Result<Option<RelPath>, RollbackError> {
        let kept = work_dir::remove(self.site.root, staging, self.site.id);
        let kept = kept.map_err(|errno| write_error(staging, errno))?;
        settle_root(self.objects, now, self.site.root, self.options.times)?;
        Ok(kept)
    }

    fn note(&self, staging: &RelPath, phase: Phase) -> Result<(), RollbackError> {
        let Move { from, to } = self.states;
        let work = Work::Rollback { from: *from, to: *to, staging: staging.clone(), phase };
        let record = Record::new(self.site.root, self.site.path, self.options.times, work);
        let note = self.options.note.map(str::to_owned);
        let record = record.map(|record| Record { note, ..record });
        record.and_then(|record| self.place().write(&record)).map_err(RollbackError::Journal)
    }

    fn place(&self) -> Place<'_> {
        Place { dir: self.site.journal, name: self.site.id, durability: self.options.durability }
    }

    fn sync(&self) -> Result<(), RollbackError> {
        if self.options.durability == Durability::Durable {
            crate::os::write_out(self.site.root).map_err(|errno| write_error(&RelPath::root(), errno))?;
        }
        Ok(())
    }
}

/// The directory aside came and went in the root, which moved its time; and its owner may have been let in for that.
fn settle_root(
    objects: &dyn ReadObjects,
    state: &State,
    root: BorrowedFd<'_>,
    times: Times,
) -> Result<(), RollbackError> {
    let write = |errno| write_error(&RelPath::root(), errno);
    let own = state.root().read_root(objects)?.own;
    let bits = own.bits & 0o777;
    if stat_fd(root).map_err(write)?.mode & 0o777 != bits {
        fchmod(root, Mode::from_raw_mode(bits.into())).map_err(write)?;
    }
    if let Some(stamps) = Maker::new(objects, root, times).stamps(&own) {
        futimens(root, &stamps).map_err(write)?;
    }
    Ok(())
}
