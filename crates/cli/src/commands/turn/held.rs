//! What of a state that is written somewhere a merge would have held: it is told, since nobody is asked there.

use std::collections::BTreeSet;
use std::path::Path;

use sandtable_merge::RelPath;
use sandtable_merge::held_by_merge;
use sandtable_merge::review::Finding;
use sandtable_sandbox::board::{Found, ObjectId, checkout, rollback};
use sandtable_sandbox::model::path::HostPath;
use serde::Serialize;

use super::left_out;
use crate::app::App;

/// How many names a warning has.
const NAMED: usize = 5;

/// The answer of `checkout` as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a> {
    schema: u32,
    id: ObjectId,
    directory: String,
    /// What could not be written.
    skipped: Vec<left_out::Left>,
    /// What was there, and was left unchanged because it is not part of the state.
    spared: Vec<String>,
    /// Directories that should have gone, but hold what no state knows.
    kept: Vec<String>,
    /// Edits made during the operation to files that were replaced, under new names.
    beside: Vec<String>,
    /// What no state holds.
    left_out: Vec<left_out::Left>,
    /// What a merge would hold or refuse, and now lies in the directory.
    held: &'a [Finding],
    /// Why nobody knows what a merge would hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_reviewed: Option<&'a str>,
}

/// What a merge would hold of a state.
#[derive(Debug, Default)]
pub(super) struct Preview {
    held: Vec<Finding>,
    /// Why that is not known.
    not_reviewed: Option<String>,
}

impl<'a> Answer<'a> {
    pub(super) fn new(
        (id, directory): (ObjectId, &Path),
        (outcome, left_out): (&rollback::RollbackOutcome, Vec<left_out::Left>),
        preview: &'a Preview,
    ) -> Self {
        let left = |entry: &checkout::CheckoutSkipped| left_out::Left {
            path: entry.path.display_escaped(),
            why: entry.why.name(),
        };
        let directory = directory.to_string_lossy().into_owned();
        let named = |paths: &[RelPath]| paths.iter().map(RelPath::display_escaped).collect();
        Self {
            schema: 1,
            id,
            directory,
            skipped: outcome.skipped.iter().map(left).collect(),
            spared: named(&outcome.spared),
            kept: named(&outcome.kept),
            beside: named(&outcome.beside),
            left_out,
            held: &preview.held,
            not_reviewed: preview.not_reviewed.as_deref(),
        }
    }
}

/// What of a state a merge would hold. A state without another below it is the user's own, and one that cannot be compared
/// is no reason to refuse what was asked for.
pub(super) fn of(app: &App, found: &Found) -> Preview {
    let trees = || {
        let base = app.board().ok()?.base(found).ok()?.snapshot.id;
        Some((HostPath::new(found.store.git_dir()).ok()?, base))
    };
    let Some((store, base)) = trees() else { return Preview::default() };
    match held_by_merge(&store, &base, &found.snapshot.id) {
        Ok(held) => Preview { held, not_reviewed: None },
        Err(error) => Preview { held: Vec::new(), not_reviewed: Some(error.to_string()) },
    }
}

/// Names the first of them.
pub(super) fn warn(app: &App, preview: &Preview) {
    if let Some(why) = &preview.not_reviewed {
        let text = format!("what a merge would hold is not known: {why}; look before anything runs there");
        app.ui.warning("not-reviewed", &text);
    }
    let paths: BTreeSet<&RelPath> = preview.held.iter().map(Finding::rel_path).collect();
    if paths.is_empty() {
        return;
    }
    let named = paths.iter().take(NAMED).map(|path| format!("`{}`", path.display_escaped()));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match paths.len().saturating_sub(NAMED) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let text = format!("a merge would hold {named}{more}; look at them before anything runs there");
    app.ui.warning("held-by-merge", &text);
}

#[cfg(test)]
mod tests {
    use sandtable_sandbox::board;

    use super::*;

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        let id: ObjectId = "4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse().expect("an id");
        let preview = Preview {
            held: sandtable_testkit::schema::findings(),
            not_reviewed: Some("too many paths".to_owned()),
        };
        assert!(!preview.held.is_empty());
        let path = |name: &str| vec![RelPath::new(name).expect("a path")];
        let (spared, kept, beside) = (path("ignored"), path("full"), path("f.sandtable-1"));
        let skipped = checkout::CheckoutSkipReason::ALL.map(|why| {
            let path = RelPath::new(why.name()).expect("a path");
            checkout::CheckoutSkipped { path, why }
        });
        let outcome = rollback::RollbackOutcome {
            spared,
            kept,
            beside,
            skipped: skipped.to_vec(),
            ..rollback::RollbackOutcome::default()
        };
        let left_out =
            board::SkipReason::ALL.map(|why| left_out::Left { path: "path".to_owned(), why: why.name() });
        let left_out = Vec::from(left_out);
        let answer = Answer::new((id, Path::new("/d")), (&outcome, left_out), &preview);
        sandtable_testkit::schema::check("checkout.json", &answer);
    }
}
