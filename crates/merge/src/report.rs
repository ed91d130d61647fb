//! What planning finds besides the result.

use sandtable_store::RelPath;

use super::left_out::{LeftOut, LeftOutWhy};
use super::outcome::Note;
use super::review::Finding;

/// What is told besides the result.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) left_out: Vec<LeftOut>,
    /// What of it was left out because the snapshot does not hold what is there.
    pub(super) unrecorded: Vec<RelPath>,
    /// Whether something was left to be compared with the target.
    pub(super) compared: bool,
    pub(super) held: Vec<Finding>,
    pub(super) approved: Vec<Finding>,
    pub(super) flagged: Vec<Finding>,
    pub(super) notes: Vec<Note>,
    /// The name of the plan.
    pub(super) plan: Option<String>,
    /// The name by which it can be taken back.
    pub(super) way_back: Option<String>,
}

impl Report {
    pub(super) fn leave_out<'a>(&mut self, paths: impl Iterator<Item = &'a RelPath>, why: LeftOutWhy) {
        self.left_out.extend(paths.map(|path| LeftOut { path: path.into(), why }));
    }
}
