//! Bringing a sandbox back to a state it had, or on to any other of its source.

use std::os::fd::AsFd as _;
use std::time::SystemTime;

use sandtable_store::dir::open_named;
use sandtable_store::id::ObjectId;
use sandtable_store::layer::write::{
    self as layer, LayerWriteOptions, Layers, carry, exchange_upper, write_git, write_upper,
};
use sandtable_store::meta::OperationKind;
use sandtable_store::meta::{Direction, HeadChange, MetaError, Move, OperationDraft};
use sandtable_store::path::RelPath;
use sandtable_store::rollback::RollbackOutcome;
use sandtable_store::snapshot;
use sandtable_store::state::{LeftOut, State, StateError, What};
use sandtable_store::store::Store;

use super::super::directory::{SandboxDirectory, Sandboxes};
use super::super::error::SessionError;
use super::super::manage::existing;
use super::super::record::Record;
use super::arrived::Arrival;
use super::catch_up::keep_first;
use super::plain::{self, Trust, whole};
use super::{open, state, subject};
use crate::board::{self, Entry, Found};
use crate::model::id::SandboxName;
use crate::model::layer::LayerName;
use crate::model::layout::LayerPart;

/// A sandbox that was brought to another state.
#[derive(Debug)]
pub struct Restored {
    /// The state it was in, recorded.
    pub from: ObjectId,
    pub to: ObjectId,
    pub outcome: RollbackOutcome,
    /// What neither the state it is in now holds nor any other.
    pub left_out: LeftOut,
}

/// Brings a sandbox that does not run to the state of a snapshot. The state it is in is recorded first.
pub fn rollback(sandboxes: &Sandboxes, name: &SandboxName, to: &Found) -> Result<Restored, SessionError> {
    let directory = existing(sandboxes, name)?;
    let _lock = directory.hold_stopped()?;
    let record = directory.read_record()?;
    let kept = keep_first(&directory, &record)?;
    let from = kept.snapshot.id;
    let (stands_on, store) = directory.standing(&record)?;
    if to.store.dir() != store.dir() {
        return Err(SessionError::OtherSource { name: name.clone(), snapshot: to.snapshot.id });
    }
    let outcome = if plain::root(&directory, &record).is_some() {
        let there = state(&store, &from)?;
        let entry = Entry::set(&subject(&record), OperationKind::Rollback, to.snapshot.id);
        plain::turn(&directory, &record, (&store, Trust::Fresh), ((&there, &to.state()?), &entry))?
    } else {
        let base = state(&store, &stands_on.snapshot)?;
        let along = unheld(&record, &kept.outcome)?;
        let going = Going { base: &base, to: (to.snapshot.id, &to.state()?), along: &along };
        let outcome = replace(&directory, &record, &store, going)?;
        note(&store, &record, OperationKind::Rollback, to.snapshot.id)?;
        outcome
    };
    let left_out = lacking(&directory, &store, &to.snapshot.id)?;
    Ok(Restored { from, to: to.snapshot.id, outcome, left_out })
}

/// Takes back the last operation on a sandbox that does not run, or does it again.
pub fn step(
    sandboxes: &Sandboxes,
    name: &SandboxName,
    direction: Direction,
) -> Result<(Move, Restored), SessionError> {
    let directory = existing(sandboxes, name)?;
    let _lock = directory.hold_stopped()?;
    let record = directory.read_record()?;
    let plain = plain::root(&directory, &record).is_some();
    let kept = if plain {
        whole(&directory, &record)?;
        None
    } else {
        Some(keep_first(&directory, &record)?)
    };
    let (stands_on, store) = directory.standing(&record)?;
    let who = subject(&record).to_string();
    let planned = match direction {
        Direction::Undo => store.meta().undo(&who),
        Direction::Redo => store.meta().redo(&who),
    };
    let planned = planned.map_err(|error| nothing(name, error))?;
    let to = state(&store, &planned.to)?;
    let outcome = if plain {
        // Who worked there since must not lose it.
        let there = state(&store, &planned.from)?;
        let entry = Entry::step(&subject(&record), direction, (planned.from, planned.to));
        plain::turn(&directory, &record, (&store, Trust::Check), ((&there, &to), &entry))?
    } else {
        let base = state(&store, &stands_on.snapshot)?;
        let along = kept.map(|kept| unheld(&record, &kept.outcome)).transpose()?.unwrap_or_default();
        let going = Going { base: &base, to: (planned.to, &to), along: &along };
        let outcome = replace(&directory, &record, &store, going)?;
        store.meta().record(&planned, SystemTime::now(), "{}").map_err(board::BoardError::from)?;
        outcome
    };
    let left_out = lacking(&directory, &store, &planned.to)?;
    let restored = Restored { from: planned.from, to: planned.to, outcome, left_out };
    Ok((planned, restored))
}

/// People know a sandbox by its name.
fn nothing(name: &SandboxName, error: MetaError) -> board::BoardError {
    match board::BoardError::from(error) {
        board::BoardError::NothingTo { done, .. } => {
            board::BoardError::NothingTo { subject: name.to_string(), done }
        }
        error => error,
    }
}

/// Writes down that a sandbox is at a snapshot now.
pub(super) fn note(
    store: &Store,
    record: &Record,
    kind: OperationKind,
    snapshot: ObjectId,
) -> Result<(), SessionError> {
    let done = OperationDraft {
        subject: subject(record).to_string(),
        kind,
        at: SystemTime::now(),
        head: HeadChange::Set(snapshot),
        details: "{}".to_owned(),
    };
    store.meta().append(&done).map_err(board::BoardError::from)?;
    Ok(())
}

/// What the state does not hold of what was there when it was recorded, and of what is there now.
fn lacking(directory: &SandboxDirectory, store: &Store, at: &ObjectId) -> Result<LeftOut, SessionError> {
    let then = board::left_out_of(store, at)?;
    let now = directory.read_arrived().and_then(|arrived| arrived.left_out(at));
    Ok(match now {
        Some(now) => board::joined_left_out(then, now),
        None => then,
    })
}

/// What the layer has and no state holds.
fn unheld(record: &Record, outcome: &snapshot::SnapshotOutcome) -> Result<Vec<RelPath>, SessionError> {
    if outcome.counts.skipped != outcome.skipped.len() as u64 {
        return Err(SessionError::TooManyUnheld { name: record.name.clone(), count: outcome.counts.skipped });
    }
    let unheld = outcome.skipped.iter().filter(|entry| !entry.why.is_there());
    Ok(unheld.map(|entry| entry.path.clone()).collect())
}

/// Where a sandbox with a layer is brought to.
#[derive(Clone, Copy)]
pub(super) struct Going<'a> {
    pub(super) base: &'a State,
    pub(super) to: (ObjectId, &'a State),
    /// What no state holds; it stays where it is.
    pub(super) along: &'a [RelPath],
}

/// Whether a state has something where `path` is, or a file above it. What the tree below the layer has is in no layer, so it
/// is the state that is asked.
fn has_in_place_of(state: &State, store: &Store, path: &RelPath) -> Result<bool, StateError> {
    for above in std::iter::successors(Some(path.clone()), RelPath::parent).filter(|above| !above.is_root()) {
        match state.lookup(store.objects(), &above)?.map(|node| node.what) {
            Some(What::File(_) | What::Symlink(_)) => return Ok(true),
            Some(What::Directory(_)) => return Ok(above == *path),
            // What lies in a repository within is no business of the state.
            Some(What::Gitlink(_)) => return Ok(false),
            None => {}
        }
    }
    Ok(false)
}

/// Puts a layer in the place of the sandbox's own that turns its base into another state. What no state holds is in the
/// new one too.
pub(super) fn replace(
    directory: &SandboxDirectory,
    record: &Record,
    store: &Store,
    going: Going<'_>,
) -> Result<RollbackOutcome, SessionError> {
    let Going { base, to, along } = going;
    let mut paths = Vec::new();
    for path in along {
        if has_in_place_of(to.1, store, path).map_err(board::BoardError::from)? {
            paths.push(path.clone());
        }
    }
    if !paths.is_empty() {
        return Err(SessionError::InTheWay { name: record.name.clone(), paths });
    }
    let lower = open(record.ground().as_path())?;
    let options = LayerWriteOptions { lower: Some(lower.as_fd()), ..LayerWriteOptions::default() };
    let upper = directory.layer(&LayerName::Workspace, LayerPart::Upper);
    let name =
        upper.as_path().file_name().and_then(std::ffi::OsStr::to_str).expect("a layer has a plain name");
    let replaced = exchange_upper(directory.path().as_path(), name, |new| {
        let outcome = write_upper(store.objects(), (base, to.1), new, &options)?;
        if let Some(layer) = &to.1.layer {
            write_git(store.objects(), layer, new, &options)?;
        }
        if !along.is_empty() {
            let old = open_named(upper.as_path())
                .map_err(|errno| layer::LayerWriteError::Exchange(errno.into()))?;
            carry(Layers { old: old.as_fd(), new, lower: options.lower }, along)?;
        }
        Ok(outcome)
    })
    .map_err(|error| match error {
        layer::LayerWriteError::InTheWay(paths) => {
            SessionError::InTheWay { name: record.name.clone(), paths }
        }
        source => SessionError::Layer { name: record.name.clone(), source },
    })?;
    let is_exact = along.is_empty() && replaced.skipped.is_empty();
    directory.arrive(record, store, Arrival { snapshot: to.0, state: to.1, is_exact });
    let layer::LayerWriteOutcome { files, whiteouts, skipped, .. } = replaced;
    Ok(RollbackOutcome { written: files, removed: whiteouts, skipped, ..RollbackOutcome::default() })
}
