//! A merge that must not happen, and why.

use sandtable_sandbox::model::choice::choice;
use serde::Serialize;

use super::named::Named;

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
