//! Bringing the work of a sandbox back: looked over, merged in memory, and only then delivered.
//!
//! [`merge`] is the whole of it: `MergeRequest → Plan → MergeOutcome`. The result is known in every byte before the first
//! byte of the user's repository is written; a refusal, a conflict or a failure leaves it as it was. What a sandbox wrote
//! is read as objects, never as a repository, and nothing it names is run.
//!
//! This crate knows states and repositories, and no sandbox: which states are merged, and into what, is the caller's to say. It
//! prints nothing and reads no environment.

#![forbid(unsafe_code)]

mod approval;
mod around;
mod beyond;
mod blobs;
pub mod conflict;
mod convert;
mod deliver;
mod encoded;
mod error;
mod file_step;
pub mod git;
mod halt;
mod history;
mod ignore;
mod index;
mod left_out;
mod lookup;
mod named;
mod or_git;
pub mod outcome;
mod place;
mod plan;
mod planning;
mod preflight;
mod preview;
mod recorded;
mod refusal;
mod report;
mod request;
pub mod review;
mod scratch;
mod seal;
mod select;
mod story;
pub mod target;
pub mod tree;
mod undo;
mod union;
mod way_back;
mod whereabouts;
mod whole;
mod worktree;

pub use beyond::{Beyond, beyond_git};
pub use conflict::{Conflict, ConflictKind};
pub use error::{Error, GitLock};
pub use git::Git;
pub use index::policy_name;
pub use outcome::{MergeOutcome, Outcome, Recovered};
pub use preview::held_by_merge;
pub use recorded::Recorded;
pub use refusal::{Reason, Refusal};
pub use request::{
    Approvals, BaseHead, Binding, CONFIGURING, Come, CommitText, Effect, History, Identity, Log, Means,
    MergeRequest, Mode, Over, Way,
};
/// The changes of a file, to choose from.
pub use sandtable_store::diff::Hunks;
/// What paths and objects are called in a request.
pub use sandtable_store::path::PathError;
pub use sandtable_store::{RelPath, id::ObjectId};
pub use seal::is_name;
pub use story::{
    Planned, Recovery, Turn, merge, merge as execute_merge, merge_watched, recover, recover_marked, redo,
    undo,
};
pub use way_back::Undo;
pub use whereabouts::Whereabouts;
