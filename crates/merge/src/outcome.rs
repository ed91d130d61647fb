//! What came of a merge: the one answer for people, scripts and the library's caller.

use sandtable_sandbox::model::choice::choice;
use sandtable_sandbox::model::path::HostPath;
use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;
use serde::Serialize;

use super::conflict::Conflict;
use super::request::Effect;
use super::review::Finding;
use super::tree::{Change, Mode};

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

choice! {
    /// Why nothing was done.
    Reason {
        NotARepository = "not-a-repository", Bare = "bare-repository", GitDirectory = "git-directory",
        Owner = "foreign-owner", Detached = "detached-head", Operation = "operation-in-progress", Locked = "locked",
        ObjectFormat = "object-format", Signing = "signing-required", CheckedOutTwice = "checked-out-elsewhere",
        Dirty = "local-changes", Unsafe = "unsafe-content", Objects = "broken-objects", Missing = "missing-objects",
        Filtered = "filtered", CaseCollision = "case-collision", Moved = "moved", OtherBranch = "other-branch", BranchName = "branch-name",
        BranchExists = "branch-exists", FileExists = "file-exists", Selection = "selection",
        Approval = "approval", Mixed = "mixed-commits", Reftable = "reftable",
        TooMuch = "too-much", NotWritable = "not-writable",
    }
}

/// A merge that must not happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    pub reason: Reason,
    pub text: String,
    pub paths: Vec<Named>,
    /// What can be done about it, where that depends on more than the reason.
    #[serde(skip)]
    pub next: Vec<String>,
}

impl Refusal {
    pub(super) fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self::of(reason, text, Vec::new())
    }

    pub(super) fn of(reason: Reason, text: impl Into<String>, paths: Vec<Named>) -> Self {
        Self { reason, text: text.into(), paths, next: Vec::new() }
    }

    /// The same with what to do about it.
    pub(super) fn with(self, next: impl Into<String>) -> Self {
        Self { next: vec![next.into()], ..self }
    }
}

/// A path, exact for machines, and a word about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    #[serde(flatten)]
    pub path: PathText,
    pub why: String,
}

impl Named {
    pub(super) fn new(path: &RelPath, why: impl Into<String>) -> Self {
        Self { path: path.into(), why: why.into() }
    }
}

/// A path in an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PathText {
    pub path: String,
    /// The exact bytes, when `path` is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_hex: Option<String>,
}

impl From<&RelPath> for PathText {
    fn from(path: &RelPath) -> Self {
        let (path, path_hex) = path.to_text();
        Self { path, path_hex }
    }
}

/// One path of the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Delivered {
    #[serde(flatten)]
    pub path: PathText,
    pub kind: DeliveredKind,
    pub old: Option<Side>,
    pub new: Option<Side>,
}

/// What happens to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveredKind {
    Added,
    Removed,
    Modified,
    ModeChanged,
    TypeChanged,
}

/// A version of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    pub mode: Mode,
    pub id: ObjectId,
}

impl From<&Change> for Delivered {
    fn from(change: &Change) -> Self {
        let side = |entry: super::tree::Entry| Side { mode: entry.mode, id: entry.id };
        let kind = match (change.old, change.new) {
            (None, _) => DeliveredKind::Added,
            (_, None) => DeliveredKind::Removed,
            (Some(old), Some(new)) if old.mode == new.mode => DeliveredKind::Modified,
            (Some(old), Some(new)) if old.mode.is_regular() && new.mode.is_regular() && old.id == new.id => {
                DeliveredKind::ModeChanged
            }
            (Some(old), Some(new)) if old.mode.is_regular() && new.mode.is_regular() => {
                DeliveredKind::Modified
            }
            _ => DeliveredKind::TypeChanged,
        };
        let (old, new) = (change.old.map(side), change.new.map(side));
        Self { path: (&change.path).into(), kind, old, new }
    }
}

/// A change of the snapshot that was not considered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    #[serde(flatten)]
    pub path: PathText,
    pub why: LeftOutWhy,
}

impl LeftOut {
    /// Whether git has no way to keep it.
    pub(super) fn is_beyond_git(&self) -> bool {
        !matches!(self.why, LeftOutWhy::Selection | LeftOutWhy::Ignored | LeftOutWhy::Unrecorded)
    }
}

/// Why a change was not considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutWhy {
    /// Outside of `--only` or inside of `--exclude`.
    Selection,
    /// The repository ignores such files.
    Ignored,
    /// It seems to be removed, but something is there that could not be recorded.
    Unrecorded,
    /// A directory that has, or had, no file in it: git knows none.
    EmptyDirectory,
    /// Permissions other than the executable bit.
    Permissions,
    /// Extended attributes.
    Attributes,
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
