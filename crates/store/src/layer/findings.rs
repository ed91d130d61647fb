//! Collects what a reader finds, within limits.

use super::attribute::ForeignReason;
use super::outcome::{Change, Foreign, GitState, LayerOutcome, LayerSkipReason, LayerSkipped};
use super::{Git, LayerOptions};
use crate::path::RelPath;

/// Paths are whole in the outcome, so a very deep tree makes them long: this bounds their sum.
const PATH_BYTES: usize = 64 << 20;

#[derive(Debug)]
pub(super) struct Findings {
    options: LayerOptions,
    outcome: LayerOutcome,
    changes: u64,
    room: usize,
    bytes: usize,
}

impl Findings {
    pub(super) fn new(options: LayerOptions) -> Self {
        Self { options, outcome: LayerOutcome::default(), changes: 0, room: options.limit, bytes: PATH_BYTES }
    }

    /// How many changes there were so far, listed or not.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) const fn is_full(&self) -> bool {
        self.outcome.truncated
    }

    pub(super) fn change(&mut self, change: Change) {
        self.changes += 1;
        if change.path.components().next() == Some(b".git") {
            self.outcome.git = GitState::Changed;
            if self.options.git == Git::Collapse {
                return;
            }
        }
        if self.has_room(&change.path) {
            self.outcome.changes.push(change);
        }
    }

    pub(super) fn skip(&mut self, path: &RelPath, why: LayerSkipReason) {
        if self.has_room(path) {
            self.outcome.skipped.push(LayerSkipped { path: path.clone(), why });
        }
    }

    pub(super) fn foreign(&mut self, path: &RelPath, attributes: Vec<(String, ForeignReason)>) {
        for (attribute, why) in attributes {
            if self.has_room(path) {
                self.outcome.foreign.push(Foreign { path: path.clone(), attribute, why });
            }
        }
    }

    pub(super) fn into_outcome(mut self) -> LayerOutcome {
        self.outcome.changes.sort_unstable();
        self.outcome.skipped.sort_unstable();
        self.outcome.skipped.dedup();
        self.outcome.foreign.sort_unstable();
        self.outcome
    }

    /// Takes the room for one more finding, if there is any left.
    fn has_room(&mut self, path: &RelPath) -> bool {
        let room = self.room.checked_sub(1);
        let bytes = self.bytes.checked_sub(path.as_bytes().len());
        let (Some(room), Some(bytes)) = (room, bytes) else {
            self.outcome.truncated = true;
            return false;
        };
        (self.room, self.bytes) = (room, bytes);
        true
    }
}
