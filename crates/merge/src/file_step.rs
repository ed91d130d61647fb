//! What happens to a file of the user.

use sandtable_store::RelPath;

use super::tree::Entry;
use super::worktree::Seen;

/// A file to be made, exchanged or removed.
#[derive(Debug)]
pub(super) struct FileStep {
    pub(super) path: RelPath,
    /// What is there now, and must still be.
    pub(super) seen: Seen,
    pub(super) new: Option<Entry>,
}
