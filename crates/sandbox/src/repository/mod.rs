//! The user's repository and what a sandbox wrote beside it, read as files and objects. Git is not started, and nothing
//! that a repository names is run.
//!
//! Sessions need it to know where `HEAD` was and whose work a commit is; merges need it for the rest. Whatever is not plain
//! (references kept in another way, a tree that git would write otherwise) is not understood here: callers that have a git ask it.

mod error;
mod layer;
mod locate;
mod mixed;
mod refs;
mod tree;
mod trees;

use std::path::Path;

use sandtable_store::id::ObjectId;
use serde::{Deserialize, Serialize};

pub use error::RepositoryError;
pub use layer::{Layer, LayerError};
pub use locate::{Found, Located, Place, common, find};
pub(crate) use mixed::{Ended, note_mixed};
pub use mixed::{Mixed, mixed_since};
pub use refs::{Head, Reference, head, is_plain, reference_at, short};
pub use tree::{Change, Entry, Mode, foreign};
pub use trees::{Failed, NotUnderstood, Parts, Trees, entry, shown};

use crate::model::path::HostPath;

/// Where a source's `HEAD` was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseHead {
    /// The full name of the branch.
    pub branch: Option<String>,
    pub commit: Option<ObjectId>,
}

/// Where the `HEAD` of a source is, if that is plain to see.
pub fn base_head(source: &HostPath) -> Option<BaseHead> {
    let Ok(Found::Repository(found)) = find(source) else { return None };
    head_in(&found.git_dir, &found.common_dir)
}

/// The same, in the directories of a repository.
pub fn head_in(git_dir: &Path, common_dir: &Path) -> Option<BaseHead> {
    let head = head(git_dir, common_dir)?;
    Some(BaseHead { branch: head.branch().map(str::to_owned), commit: head.tip().copied() })
}
