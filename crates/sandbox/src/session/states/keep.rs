//! Recording the state of a sandbox: from its layer where it has one.

use std::os::fd::{AsFd as _, BorrowedFd};

use sandtable_store::id::ObjectId;
use sandtable_store::ignore::Rules;
use sandtable_store::layer::{CaptureOptions, Captured, Run, Watch, capture};
use sandtable_store::meta::Snapshot;
use sandtable_store::object::commit::Consistency;
use sandtable_store::snapshot::{FILE_LIMIT, Ignored, SnapshotError, SnapshotOutcome, Store as Objects};
use sandtable_store::state::{LeftOut, State};
use sandtable_store::store::{Batch, Store};

use super::super::directory::SandboxDirectory;
use super::super::error::SessionError;
use super::super::record::Record;
use super::arrived::Arrived;
use super::regain::regain;
use super::{head, open, plain, state, subject};
use crate::board::take::{Words, commit};
use crate::board::{self, Taking};
use crate::model::layer::LayerName;
use crate::model::layout::LayerPart;
use crate::model::observe::Observer;

/// What a sandbox was recorded as.
#[derive(Debug)]
pub struct Kept {
    pub snapshot: Snapshot,
    pub parent: Option<ObjectId>,
    /// Whether this state is the one that was recorded before.
    pub unchanged: bool,
    pub outcome: SnapshotOutcome,
}

/// Whether anything in the sandbox can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Stillness {
    /// Nothing runs in it.
    Stopped,
    /// All of it is held.
    Frozen,
    /// Something may go on.
    Running,
}

/// Records the state of a sandbox, unless it is the one that was recorded last and nobody has words for it. One that
/// is stopped gets a base again if it has none.
pub(in crate::session) fn keep(
    directory: &SandboxDirectory,
    record: &Record,
    taking: &Taking<'_>,
    stillness: Stillness,
) -> Result<Kept, SessionError> {
    let (stands_on, store) = match directory.standing(record) {
        Err(SessionError::NoBase(_)) if stillness == Stillness::Stopped => {
            regain(directory, record)?;
            directory.standing(record)?
        }
        found => found?,
    };
    let base = state(&store, &stands_on.snapshot)?;
    let before = head(&store, record)?;
    if let Some(root) = plain::root(directory, record) {
        board::mend(&store, &root)?;
    }
    let batch = store.begin().map_err(board::BoardError::from)?;
    let (ignored, outcome) = if plain::root(directory, record).is_some() {
        (Ignored::All, plain::look(directory, record, &batch, taking)?)
    } else {
        let upper = open(directory.layer(&LayerName::Workspace, LayerPart::Upper).as_path())?;
        // The layer has all that was changed, ignored or not: the state speaks of whatever its base speaks of.
        let LeftOut { ignored, exclude, .. } = left_out(&store, &base).unwrap_or_default();
        (
            ignored,
            SnapshotOutcome {
                exclude,
                ..read_layer(record, upper.as_fd(), (&batch, &base), (stillness, taking.observer))?
            },
        )
    };
    let arrived = directory.read_arrived();
    if let Some(snapshot) = same((&store, arrived.as_ref()), before.as_ref(), &outcome, taking)? {
        settled(directory, stillness);
        return Ok(Kept { parent: None, snapshot, unchanged: true, outcome });
    }
    let parent = taking.parent.or(before.map(|snapshot| snapshot.id));
    let consistency = consistency(stillness, &outcome);
    let subject = subject(record);
    let words = Words { subject: &subject, parent, consistency, ignored, taking };
    let snapshot = commit(&store, batch, &outcome, &words)?;
    settled(directory, stillness);
    Ok(Kept { snapshot, parent, unchanged: false, outcome })
}

/// Everything that a sandbox did which has ended is recorded. What one does that runs may go on.
fn settled(directory: &SandboxDirectory, stillness: Stillness) {
    if stillness == Stillness::Stopped {
        directory.unmark_unrecorded();
    }
}

/// The state that a layer makes of the base.
pub(super) fn read_layer(
    record: &Record,
    layer: BorrowedFd<'_>,
    (batch, base): (&Batch<'_>, &State),
    (stillness, observer): (Stillness, &dyn Observer),
) -> Result<SnapshotOutcome, SessionError> {
    let rules = Rules::default();
    let watch = if stillness == Stillness::Running { Watch::Live } else { Watch::Still };
    let options = CaptureOptions {
        ignored: Ignored::Changed,
        rules: &rules,
        file_limit: FILE_LIMIT,
        cancelled: &|| observer.cancelled(),
        watch,
        cache: None,
    };
    let ends = Objects { objects: batch, sink: batch };
    let captured = capture(layer, base, ends, Run { options: &options, cache: None });
    let Captured { outcome, .. } = captured.map_err(|source| match source {
        SnapshotError::Cancelled => SessionError::Interrupted,
        source => SessionError::Snapshot { name: record.name.clone(), source },
    })?;
    Ok(outcome)
}

/// The snapshot before, if it says all that a new one would, or if nothing was done since the sandbox was brought to it.
fn same(
    (store, arrived): (&Store, Option<&Arrived>),
    before: Option<&Snapshot>,
    outcome: &SnapshotOutcome,
    taking: &Taking<'_>,
) -> Result<Option<Snapshot>, SessionError> {
    let Some(before) = before.filter(|_| taking.message.is_none()) else { return Ok(None) };
    if arrived.is_some_and(|arrived| arrived.is(&before.id, outcome)) {
        return Ok(Some(before.clone()));
    }
    let old = state(store, &before.id)?;
    let told = left_out(store, &old).unwrap_or_default();
    let skipped = (outcome.counts.skipped, outcome.skipped.as_slice());
    let same = (old.hash(), old.layer) == (outcome.state.hash(), outcome.state.layer)
        && LeftOut::new(told.ignored, told.exclude.clone(), skipped) == told;
    Ok(same.then(|| before.clone()))
}

/// What a state does not hold, where that is known.
pub(super) fn left_out(store: &Store, state: &State) -> Option<LeftOut> {
    state.left_out.and_then(|id| LeftOut::read(store.objects(), &id))
}

fn consistency(stillness: Stillness, outcome: &SnapshotOutcome) -> Consistency {
    match (stillness, outcome.changed.count) {
        (_, 1..) => Consistency::Torn,
        (Stillness::Running, 0) => Consistency::Stable,
        (Stillness::Stopped | Stillness::Frozen, 0) => Consistency::Frozen,
    }
}
