//! What came of a merge, for people.

use std::fmt::Write as _;

use sandtable_sandbox::merge::outcome::{DeliveredKind, MergeOutcome, Outcome};

use super::escape;

/// The outcome in lines: what happened, path by path, and what can be done next. Nothing in it steers a terminal.
pub(crate) fn rendered(outcome: &MergeOutcome) -> String {
    let mut text = format!("{}\n", escape::line(&outcome.message));
    let mut line = |words: String| {
        writeln!(text, "  {}", escape::line(&words)).expect("writing to a string does not fail");
    };
    for change in &outcome.changes {
        let letter = match change.kind {
            DeliveredKind::Added => 'A',
            DeliveredKind::Removed => 'D',
            DeliveredKind::Modified => 'M',
            DeliveredKind::ModeChanged => 'm',
            DeliveredKind::TypeChanged => 'T',
        };
        line(format!("{letter} {}", change.path.path));
    }
    match &outcome.outcome {
        Outcome::Conflicts { conflicts } => {
            for conflict in conflicts {
                line(format!("conflict {}: {}", conflict.path.path, conflict.text));
            }
        }
        Outcome::Held { held } => {
            for finding in held {
                line(format!("held {}: {}", finding.path.path, finding.reason));
            }
        }
        Outcome::Refused { refusal } => {
            for named in &refusal.paths {
                line(format!("{}: {}", named.path.path, named.why));
            }
        }
        _ => {}
    }
    for next in &outcome.next {
        line(format!("next: {next}"));
    }
    text
}
