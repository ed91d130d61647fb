//! What a workspace looks like once it was brought to a state.
//!
//! That is not always the state. Whatever no state holds stays where it is, with the directories around it, and some of what a
//! state says is never written. None of that is anybody's work: if it were recorded as such before the next way back, `redo`
//! would have nothing to do again, and `undo` would take back that recording for ever. So what the workspace looks like,
//! recorded as a state, is written down; while it looks like that there is nothing to record.

use std::os::fd::AsFd as _;

use sandtable_store::id::ObjectId;
use sandtable_store::meta::OperationKind;
use sandtable_store::snapshot::{Ignored, SnapshotOutcome};
use sandtable_store::state::{LeftOut, State};
use sandtable_store::store::{Batch, Store};
use serde::{Deserialize, Serialize};

use super::super::directory::SandboxDirectory;
use super::super::error::SessionError;
use super::super::record::{Record, SCHEMA};
use super::keep::{Stillness, read_layer};
use super::{open, plain};
use crate::board::{self, Taking};
use crate::model::layer::LayerName;
use crate::model::layout::{ARRIVED, LayerPart};
use crate::model::spec::WorkspaceMode;

/// A workspace that was brought to a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::session) struct Arrived {
    schema: u32,
    /// The snapshot of the state. Once the newest one is another, this says nothing.
    snapshot: ObjectId,
    /// What the workspace would be recorded as.
    hash: String,
    layer: Option<ObjectId>,
    /// What no state holds of it, as a text.
    left_out: String,
}

impl Arrived {
    fn new(snapshot: ObjectId, seen: &SnapshotOutcome) -> Self {
        Self {
            schema: SCHEMA,
            snapshot,
            hash: seen.state.hash(),
            layer: seen.state.layer,
            left_out: left_out(seen).to_text(),
        }
    }

    /// Whether this is how a workspace looked when it was brought to `snapshot`.
    pub(super) fn is(&self, snapshot: &ObjectId, seen: &SnapshotOutcome) -> bool {
        *self == Self::new(*snapshot, seen)
    }

    /// What no state holds of a workspace that was brought to `snapshot`.
    pub(super) fn left_out(&self, snapshot: &ObjectId) -> Option<LeftOut> {
        (self.snapshot == *snapshot).then(|| LeftOut::from_text(&self.left_out)).flatten()
    }
}

/// Which files were ignored is the business of the state.
fn left_out(seen: &SnapshotOutcome) -> LeftOut {
    LeftOut::new(Ignored::default(), Vec::new(), (seen.counts.skipped, &seen.skipped))
}

/// Where a workspace was brought to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'a> {
    pub(super) snapshot: ObjectId,
    pub(super) state: &'a State,
    /// Whether the workspace is sure to be as the state says.
    pub(super) is_exact: bool,
}

impl SandboxDirectory {
    /// Writes down what the workspace looks like, now that it was brought to a state. To be called with the lock held, before
    /// anything runs in it. If that fails the next way back records what it finds, and no more is lost than a `redo`.
    pub(super) fn arrive(&self, record: &Record, store: &Store, at: Arrival<'_>) {
        let seen = if at.is_exact { None } else { self.seen(record, store, at.state).ok().flatten() };
        let kept = seen.is_some_and(|seen| self.write(ARRIVED, &Arrived::new(at.snapshot, &seen)).is_ok());
        if !kept {
            self.drop_arrived();
        }
    }

    /// What the workspace would be recorded as; nothing is.
    fn seen(
        &self,
        record: &Record,
        store: &Store,
        to: &State,
    ) -> Result<Option<SnapshotOutcome>, SessionError> {
        let batch = store.begin().map_err(board::BoardError::from)?;
        let seen = if plain::root(self, record).is_some() {
            self.seen_plainly(record, &batch)?
        } else {
            let base = super::state(store, &self.standing(record)?.0.snapshot)?;
            let upper = open(self.layer(&LayerName::Workspace, LayerPart::Upper).as_path())?;
            read_layer(record, upper.as_fd(), (&batch, &base), (Stillness::Stopped, &()))?
        };
        // In the source itself it may be the user's work that makes the difference.
        let is_users = record.resolved.mode.value == WorkspaceMode::Live && seen.state.hash() != to.hash();
        Ok((!is_users).then_some(seen))
    }

    fn seen_plainly(&self, record: &Record, batch: &Batch<'_>) -> Result<SnapshotOutcome, SessionError> {
        let taking = Taking::of(Ignored::All, &OperationKind::Snapshot, &());
        Ok(plain::look(self, record, batch, &taking)?)
    }
}
