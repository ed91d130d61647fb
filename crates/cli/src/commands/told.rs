//! What is said of paths that are not as the state has them: the first few of each kind, and how many more there are.

use sandtable_merge::RelPath;
use sandtable_sandbox::board::{checkout, rollback};

use crate::app::App;

/// So many lines are said of a kind. A state may have a million entries, and every one of them something that is told.
const LINES: usize = 20;
/// So many names are in one line.
const NAMED: usize = 5;

/// Whether there is an answer that has all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    InJson,
    Nowhere,
}

/// Says what could not be written as it was recorded.
pub(super) fn not_written(app: &App, skipped: &[checkout::CheckoutSkipped], whole: Whole) {
    let line =
        |entry: &checkout::CheckoutSkipped| format!("`{}` {}", entry.path.display_escaped(), entry.why);
    for text in capped(skipped, line, whole) {
        app.ui.warning("not-written", &text);
    }
}

/// Names what stayed because the state was recorded without it, and where edits are that were made meanwhile.
pub(super) fn spared(app: &App, outcome: &rollback::RollbackOutcome, whole: Whole) {
    let line = |path: &RelPath| {
        format!("edits made during the operation were saved as `{}`", path.display_escaped())
    };
    for text in capped(&outcome.beside, line, whole) {
        app.ui.warning("kept-beside", &text);
    }
    let paths: Vec<&RelPath> = outcome.spared.iter().chain(&outcome.kept).collect();
    let Some(more) = paths.len().checked_sub(1) else { return };
    let mut names: Vec<String> =
        paths.iter().take(NAMED).map(|path| format!("`{}`", path.display_escaped())).collect();
    if let Some(more @ 1..) = (more + 1).checked_sub(NAMED) {
        names.push(format!("{more} more"));
    }
    app.ui.say(&format!("not part of the state, left unchanged: {}", names.join(", ")));
}

/// A line for each of the first, and one for all others.
fn capped<T>(all: &[T], line: impl Fn(&T) -> String, whole: Whole) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().take(LINES).map(line).collect();
    if let Some(more @ 1..) = all.len().checked_sub(LINES) {
        let place = match whole {
            Whole::InJson => ": `--json` lists them",
            Whole::Nowhere => "",
        };
        lines.push(format!("… and {more} more{place}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_are_listed_and_the_others_counted() {
        let listed = |count: usize, whole| capped(&vec![7; count], i32::to_string, whole);
        assert_eq!(listed(0, Whole::Nowhere), Vec::<String>::new());
        assert_eq!(listed(LINES, Whole::Nowhere), vec!["7"; LINES]);
        let cut = listed(1_000_000, Whole::Nowhere);
        assert_eq!((cut.len(), cut[LINES].as_str()), (LINES + 1, "… and 999980 more"));
        let cut = listed(LINES + 1, Whole::InJson);
        assert_eq!(cut.last().map(String::as_str), Some("… and 1 more: `--json` lists them"));
    }
}
