//! What no state holds, said wherever a state is shown, written or handed over.

use sandtable_sandbox::board::{LeftOut, Skipped, told_left_out};
use serde::Serialize;

use crate::app::App;

/// An entry that could not be recorded, in an answer as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Left {
    pub(super) path: String,
    pub(super) why: &'static str,
}

/// All of them, for an answer as JSON.
pub(super) fn listed(left: &LeftOut) -> Vec<Left> {
    let listed = |entry: &Skipped| Left { path: entry.path.display_escaped(), why: entry.why.name() };
    left.skipped.iter().map(listed).collect()
}

/// The first few, as a warning.
pub(super) fn warn(app: &App, left: &LeftOut) {
    if let Some(text) = told_left_out(left.count, &left.skipped) {
        app.ui.warning("left-out", &text);
    }
}
