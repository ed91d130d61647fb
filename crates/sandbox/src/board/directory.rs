//! Bringing a state into a directory.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::SystemTime;

use sandtable_store::checkout;
use sandtable_store::dir::{names, open_named, reopen};
use sandtable_store::id::ObjectId;
use sandtable_store::meta::OperationKind;
use sandtable_store::meta::{Direction, Durability, HeadChange, Move, OperationDraft};
use sandtable_store::rollback::{self, Site, Verify, checkout_journalled};
use sandtable_store::state::LeftOut;
use sandtable_store::store::Store;
use sandtable_store::workers::help;

use super::journal::{Entry, Journal, new_id};
use super::left_out::{left_out_of, left_out_of_all};
use super::take::take;
use super::{Board, BoardError, Found, Ignored, Subject, Taken, Taking};

/// A directory that was brought from one state to another.
#[derive(Debug)]
pub struct Turned {
    pub from: ObjectId,
    pub to: ObjectId,
    pub outcome: rollback::RollbackOutcome,
    /// What the state it is in now does not hold.
    pub left_out: LeftOut,
}

impl Board {
    /// Writes exactly the state of a snapshot into `target`: a directory that is empty, not there, or one that a
    /// state was written into before, of which whatever is there now is recorded first.
    pub fn checkout_snapshot(
        &self,
        found: &Found,
        target: &Path,
    ) -> Result<rollback::RollbackOutcome, BoardError> {
        if self.of_source(target)?.is_some() {
            return Err(BoardError::IsSource(target.to_owned()));
        }
        make(target)?;
        let subject = Subject::directory(target);
        let dir = open(target)?;
        // Nobody else writes into it from here on, and what a checkout that was broken off left is gone.
        let journal = Journal::open(&found.store, target)?;
        let known = found.store.meta().head(&subject.to_string())?.is_some();
        if !is_empty(&dir, target)? {
            if !known {
                return Err(BoardError::NotManaged(target.to_owned()));
            }
            return Ok(back_to(found, target, &journal)?.outcome);
        }
        let id = new_id();
        let site = Site { root: dir.as_fd(), path: target, journal: journal.dir.as_fd(), id: &id };
        // First of all, so that whoever dies after the last file leaves a directory that is known.
        let head = HeadChange::Set(found.snapshot.id);
        found.store.meta().append_as(&draft(&subject, OperationKind::Checkout, head), Durability::Batched)?;
        let state = found.state()?;
        let (written, synced) = std::thread::scope(|scope| {
            // The disk is waited for meanwhile: for a small state that takes longer than the files.
            let sync = || found.store.meta().sync();
            let synced = help(scope, sync);
            let options = checkout::CheckoutOptions::default();
            let written = checkout_journalled(found.store.objects(), &state, &site, &options);
            let synced = match synced {
                Some(synced) => synced.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                None => sync(),
            };
            (written, synced)
        });
        if written.is_err() && !known {
            note(&found.store, &subject, OperationKind::Forget, HeadChange::Remove)?;
        }
        let checkout::CheckoutOutcome { files, directories, symlinks, skipped, .. } =
            written.map_err(|error| turn_error(target, error))?;
        synced?;
        let written = files + directories + symlinks;
        Ok(rollback::RollbackOutcome { written, skipped, ..rollback::RollbackOutcome::default() })
    }

    /// Brings `worktree` back to the state of a snapshot. What is there now is recorded first, so that nothing is
    /// lost, and only paths that differ are touched.
    pub fn rollback(&self, found: &Found, worktree: &Path) -> Result<Turned, BoardError> {
        // Nobody else turns the directory between the record and the way back.
        back_to(found, worktree, &Journal::open(&found.store, worktree)?)
    }

    /// Takes back the last operation on a directory, or does it again. One that only looked at the directory changed no
    /// file, so that none is changed by taking it back.
    pub fn step(&self, directory: &Path, direction: Direction) -> Result<(Move, Turned), BoardError> {
        let subject = Subject::directory(directory);
        let store = self.keeping(&subject)?.ok_or_else(|| BoardError::NoStates(directory.to_owned()))?;
        let journal = Journal::open(&store, directory)?;
        let step = match direction {
            Direction::Undo => store.meta().undo(&subject.to_string())?,
            Direction::Redo => store.meta().redo(&subject.to_string())?,
        };
        // Somebody may let go of every state of the source meanwhile.
        for end in [&step.from, &step.to] {
            store.hold(end)?;
        }
        let outcome = if step.over.only_recorded() {
            store.meta().record(&step, SystemTime::now(), "{}")?;
            rollback::RollbackOutcome::default()
        } else {
            let (from, to) = (store.state(&step.from)?, store.state(&step.to)?);
            let entry = Entry::step(&subject, direction, (step.from, step.to));
            journal.turn(directory, ((&from, &to), &entry), Verify::Check(&|_, _| None))?
        };
        let left_out = left_out_of(&store, &step.to)?;
        let turned = Turned { from: step.from, to: step.to, outcome, left_out };
        Ok((step, turned))
    }
}

/// Records what is in a directory, and brings it back to the state of a snapshot.
fn back_to(found: &Found, worktree: &Path, journal: &Journal<'_>) -> Result<Turned, BoardError> {
    let subject = Subject::directory(worktree);
    let taking = Taking::of(Ignored::All, &OperationKind::Snapshot, &());
    let taking = Taking { message: Some("before rollback"), ..taking };
    let Taken { snapshot, .. } = take(&found.store, &subject, worktree, &taking)?;
    let (from, to) = (found.store.state(&snapshot.id)?, found.state()?);
    let entry = Entry::set(&subject, OperationKind::Rollback, found.snapshot.id);
    let outcome = journal.turn(worktree, ((&from, &to), &entry), Verify::Trust)?;
    let left_out = left_out_of_all(found)?;
    Ok(Turned { from: snapshot.id, to: found.snapshot.id, outcome, left_out })
}

pub(super) fn turn_error(directory: &Path, error: rollback::RollbackError) -> BoardError {
    let path = directory.to_owned();
    match error {
        rollback::RollbackError::Changed(paths) => BoardError::Changed { root: path, paths },
        rollback::RollbackError::Write(source) => BoardError::Checkout { path, source },
        rollback::RollbackError::Incomplete(source) => BoardError::Incomplete { path, source: *source },
        source => BoardError::Rollback { path, source },
    }
}

/// Writes down what was done to a directory.
fn note(store: &Store, subject: &Subject, kind: OperationKind, head: HeadChange) -> Result<(), BoardError> {
    store.meta().append(&draft(subject, kind, head))?;
    Ok(())
}

fn draft(subject: &Subject, kind: OperationKind, head: HeadChange) -> OperationDraft {
    OperationDraft {
        subject: subject.to_string(),
        kind,
        at: SystemTime::now(),
        head,
        details: "{}".to_owned(),
    }
}

fn make(target: &Path) -> Result<(), BoardError> {
    match fs_err::create_dir(target) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(BoardError::Directory { path: target.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}

pub(super) fn open(directory: &Path) -> Result<OwnedFd, BoardError> {
    open_named(directory).map_err(|errno| match errno {
        rustix::io::Errno::NOTDIR => BoardError::NotDirectory(directory.to_owned()),
        errno => BoardError::Directory { path: directory.to_owned(), source: errno.into() },
    })
}

fn is_empty(dir: &OwnedFd, target: &Path) -> Result<bool, BoardError> {
    let found = reopen(dir.as_fd()).and_then(|again| names(again.as_fd()));
    let found =
        found.map_err(|errno| BoardError::Directory { path: target.to_owned(), source: errno.into() })?;
    Ok(found.is_empty())
}
