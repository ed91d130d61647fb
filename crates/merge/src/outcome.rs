//! What came of a merge: the one answer for people, scripts and the library's caller.

use sandtable_sandbox::model::path::HostPath;
pub use sandtable_store::change::ChangeKind;
use sandtable_store::id::ObjectId;
use serde::Serialize;

use super::conflict::Conflict;
pub use super::conflict::Side;
pub use super::left_out::{LeftOut, LeftOutWhy};
pub use super::named::{Named, PathText};
pub use super::refusal::{Reason, Refusal};
use super::request::Effect;
use super::review::Finding;
use super::tree::Change;

/// The version of this answer.
pub const SCHEMA: u32 = 1;

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MergeOutcome {
    pub schema: u32,
    /// Whether the work is now where it was asked to be; for a plan, whether it would be.
    pub success: bool,
    /// Whether it is not because both sides changed the same thing.
    pub conflict: bool,
    pub message: String,
    pub mode: &'static str,
    pub effect: Effect,
    pub target: HostPath,
    pub base: ObjectId,
    pub snapshot: ObjectId,
    pub outcome: Outcome,
    /// What is delivered, from the state of the target to the result.
    pub changes: Vec<Delivered>,
    /// What of the snapshot was not considered, and why.
    pub left_out: Vec<LeftOut>,
    /// Held changes that were let through because they were approved.
    pub approved: Vec<Finding>,
    /// Changes that are worth a look, and pass.
    pub flagged: Vec<Finding>,
    /// The name of all that is delivered, as far as it came to that: an approval can name it.
    pub plan: Option<String>,
    /// What an earlier call, interrupted, left to this one.
    pub recovered: Option<Recovered>,
    /// The signal that ended it, after everything was put back or, past the point of no return, finished.
    pub interrupted: Option<i32>,
    pub notes: Vec<Note>,
    /// Where the work is, whatever happened: this snapshot in this store.
    pub kept_at: HostPath,
    /// The name by which `undo --merge` takes exactly this one back, where that is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// What can be done next.
    pub next: Vec<String>,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// The target has it all already.
    UpToDate,
    /// The target was as the base: the result is the snapshot.
    FastForward {
        branch: String,
        commit: Option<ObjectId>,
    },
    /// Both sides had changed, in different places.
    Merged {
        branch: String,
        commit: Option<ObjectId>,
    },
    Applied,
    Exported {
        branch: Option<String>,
        file: Option<HostPath>,
        commit: Option<ObjectId>,
    },
    Conflicts {
        conflicts: Vec<Conflict>,
    },
    Held {
        held: Vec<Finding>,
    },
    Refused {
        refusal: Refusal,
    },
    /// Something moved while the result was written, and everything was put back.
    RolledBack {
        reason: String,
    },
    /// It failed, and something kept us from putting everything back: the next call does it.
    Unfinished {
        reason: String,
    },
}

/// One path of the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Delivered {
    #[serde(flatten)]
    pub path: PathText,
    pub kind: ChangeKind,
    pub old: Option<Side>,
    pub new: Option<Side>,
}

impl From<&Change> for Delivered {
    fn from(change: &Change) -> Self {
        let side = |entry: super::tree::Entry| Side { mode: entry.mode, id: entry.id };
        let kind = match (change.old, change.new) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            (Some(old), Some(new)) if old.mode == new.mode => ChangeKind::Modified,
            (Some(old), Some(new)) if old.mode.is_regular() && new.mode.is_regular() && old.id == new.id => {
                ChangeKind::ModeChanged
            }
            (Some(old), Some(new)) if old.mode.is_regular() && new.mode.is_regular() => ChangeKind::Modified,
            _ => ChangeKind::TypeChanged,
        };
        let (old, new) = (change.old.map(side), change.new.map(side));
        Self { path: (&change.path).into(), kind, old, new }
    }
}

/// Something worth knowing that changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    pub code: &'static str,
    pub text: String,
}

/// What became of an earlier call that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovered {
    /// Its result stands.
    Finished,
    /// The files are as they were before it.
    Undone,
}
