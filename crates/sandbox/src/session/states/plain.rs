//! States of a workspace that has no layer: a copy of the source, or the source itself.
//!
//! Its base is recorded before its first command runs, since nothing tells afterwards what was there. Every
//! file is recorded, ignored ones too: nothing else has them. The stat cache spares reading what did not change. What a
//! command has written to is never read as a repository: its index could say anything.

use std::path::PathBuf;

use sandtable_store::id::ObjectId;
use sandtable_store::meta::OperationKind;
use sandtable_store::remove::remove_tree;
use sandtable_store::rollback::{RollbackOutcome, Verify};
use sandtable_store::snapshot;
use sandtable_store::state::{LeftOut, State};
use sandtable_store::store::{Batch, Store};

use super::super::directory::SandboxDirectory;
use super::super::error::SessionError;
use super::super::furnish::copy_workspace;
use super::super::record::Record;
use super::arrived::Arrival;
use super::subject;
use crate::board::take::{Words, commit, hash_kind, look_alone};
use crate::board::{self, Consistency, Entry, Ignored, Subject, Taking};
use crate::model::causes::chained;
use crate::model::layer::LayerName;
use crate::model::observe::{Event, Observer};
use crate::model::resolved::Warning;
use crate::model::spec::{Lifetime, WorkspaceMode};
use crate::repository::base_head;

/// Where the files of such a workspace are; `None` for one that has a layer.
pub(super) fn root(directory: &SandboxDirectory, record: &Record) -> Option<PathBuf> {
    match record.resolved.mode.value {
        WorkspaceMode::Copy => Some(directory.layout().copy(&LayerName::Workspace).into()),
        WorkspaceMode::Live => Some(record.resolved.source.root.as_path().to_owned()),
        WorkspaceMode::Auto | WorkspaceMode::Overlay => None,
    }
}

/// Records the base of such a sandbox before anything runs in it. Where that is not possible the sandbox has no
/// states, and a warning says why; if the observer cancels it, no sandbox is made.
pub(in crate::session) fn begin(
    directory: &SandboxDirectory,
    record: &mut Record,
    observer: &dyn Observer,
) -> Result<(), SessionError> {
    if record.resolved.lifetime.value == Lifetime::Discard {
        return Ok(());
    }
    let Some(root) = root(directory, record) else { return Ok(()) };
    let taking =
        Taking { message: Some("the source"), ..Taking::of(Ignored::All, &OperationKind::Onboard, observer) };
    let head = base_head(&record.resolved.source.root);
    let recorded = match record.resolved.mode.value {
        WorkspaceMode::Live => directory.board().onboard_changed(&root, &taking).map(|snapshot| snapshot.id),
        _ => record_copy(directory, record, &taking),
    };
    observer.event(&Event::Recorded);
    let begun = recorded.map_err(SessionError::from).and_then(|base| directory.stand_on(record, base, head));
    match begun {
        Err(SessionError::Interrupted) => return Err(SessionError::Interrupted),
        Err(error) => {
            let text = format!("the sandbox has no states: {}", chained(&error));
            record.resolved.warnings.push(Warning::new("not-recorded", text));
        }
        Ok(()) => {}
    }
    Ok(())
}

/// Records a copy as the state of its source: that is what the source was when it was copied.
fn record_copy(
    directory: &SandboxDirectory,
    record: &Record,
    taking: &Taking<'_>,
) -> Result<ObjectId, board::BoardError> {
    record_files(directory, record, taking, &|batch| look(directory, record, batch, taking))
}

/// Copies the source once more and records that, for a sandbox whose base is lost.
pub(super) fn record_again(directory: &SandboxDirectory, record: &Record) -> Result<ObjectId, SessionError> {
    let place = directory.layout().base_again();
    let clear = || {
        remove_tree(place.as_path())
            .map_err(|error| SessionError::state("remove", place.as_path())(error.source))
    };
    clear()?;
    let taking =
        Taking { message: Some("the source"), ..Taking::of(Ignored::All, &OperationKind::Onboard, &()) };
    let recorded = copy_workspace(&record.resolved, &place).and_then(|()| {
        let looked = |batch: &Batch<'_>| look_alone(batch, &subject(record), place.as_path(), &taking);
        Ok(record_files(directory, record, &taking, &looked)?)
    });
    clear()?;
    recorded
}

fn record_files(
    directory: &SandboxDirectory,
    record: &Record,
    taking: &Taking<'_>,
    look: &dyn Fn(&Batch<'_>) -> Result<snapshot::SnapshotOutcome, board::BoardError>,
) -> Result<ObjectId, board::BoardError> {
    let source = record.resolved.source.root.as_path();
    let store = directory.board().open(source, hash_kind(source)?)?;
    let batch = store.begin()?;
    let outcome = look(&batch)?;
    let owner = Subject::directory(source);
    let head = store.meta().head(&owner.to_string())?.map(|head| head.snapshot);
    if let Some(head) = head
        && store.state(&head)?.hash() == outcome.state.hash()
    {
        return Ok(head);
    }
    let consistency = Consistency::Frozen;
    let words = Words { subject: &owner, parent: head, consistency, ignored: Ignored::All, taking };
    Ok(commit(&store, batch, &outcome, &words)?.id)
}

/// The state of such a workspace now.
pub(super) fn look(
    directory: &SandboxDirectory,
    record: &Record,
    batch: &Batch<'_>,
    taking: &Taking<'_>,
) -> Result<snapshot::SnapshotOutcome, board::BoardError> {
    let root = root(directory, record).expect("the caller knows that there is no layer");
    // The cache of a source is the same for every reader; a copy has one of its own.
    let name = match record.resolved.mode.value {
        WorkspaceMode::Live => Subject::directory(&root),
        _ => subject(record),
    };
    look_alone(batch, &name, &root, taking)
}

/// Carries a rollback of such a workspace that was killed to its end, before anything is done with the files.
pub(in crate::session) fn whole(directory: &SandboxDirectory, record: &Record) -> Result<(), SessionError> {
    let Some(root) = root(directory, record) else { return Ok(()) };
    match directory.standing(record) {
        Ok((_, store)) => Ok(board::mend(&store, &root)?),
        // Where the store is lost, so is the journal.
        Err(SessionError::NoBase(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether what is there must be as it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It was recorded just now.
    Fresh,
    /// Somebody may have been at it since.
    Check,
}

/// Brings such a workspace from one state to another, and enters that into the log.
pub(super) fn turn(
    directory: &SandboxDirectory,
    record: &Record,
    (store, trust): (&Store, Trust),
    turning: ((&State, &State), &Entry),
) -> Result<RollbackOutcome, SessionError> {
    let root = root(directory, record).expect("the caller knows that there is no layer");
    let verify = match trust {
        Trust::Fresh => Verify::Trust,
        Trust::Check => Verify::Check(&|_, _| None),
    };
    let ((from, to), entry) = turning;
    let carries = carries(directory, store, from);
    let outcome = board::turn(store, &root, turning, verify)?;
    let is_exact = !carries && outcome.skipped.is_empty() && outcome.kept.is_empty();
    directory.arrive(record, store, Arrival { snapshot: entry.to(), state: to, is_exact });
    Ok(outcome)
}

/// Whether there may be something in such a workspace that no state holds.
fn carries(directory: &SandboxDirectory, store: &Store, from: &State) -> bool {
    let known = from.left_out.and_then(|id| LeftOut::read(store.objects(), &id));
    // What an earlier way back left there is not in the state it led to.
    directory.read_arrived().is_some() || known.is_none_or(|known| known.count > 0)
}
