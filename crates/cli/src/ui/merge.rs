//! What comes of a merge, for people: the plan before, and the outcome after. Nothing in it steers a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sandtable_merge::outcome::{ChangeKind, LeftOutWhy, MergeOutcome, Outcome, PathText};
use sandtable_merge::review::Finding;
use sandtable_merge::{ConflictKind, Planned, RelPath};

use super::escape;
use super::style::{Colour, Role};

/// So many directories and permissions are listed.
const LISTED: usize = 20;

/// What will be delivered, path by path.
pub(crate) fn plan(planned: &Planned<'_>, colour: Colour) -> String {
    let mut text = String::new();
    for change in planned.changes {
        let role = match change.kind {
            ChangeKind::Added => Role::Added,
            ChangeKind::Removed => Role::Removed,
            _ => Role::Changed,
        };
        line(
            &mut text,
            &format!("{} {}", colour.paint(role, change.kind.letter()), escape::path(&change.path)),
        );
    }
    text
}

/// The outcome in lines: what happened, what stands in the way, and what can be done next.
pub(crate) fn rendered(outcome: &MergeOutcome, colour: Colour) -> String {
    let mut text = format!("{}\n", escape::line(&outcome.message));
    reasons(&mut text, &outcome.outcome, colour);
    left_out(&mut text, outcome);
    for finding in &outcome.flagged {
        let label = colour.paint(Role::Warning, "flagged");
        line(&mut text, &format!("{label} {}: {}", escape::path(&finding.path), reason(finding)));
    }
    for note in &outcome.notes {
        line(&mut text, &format!("note: {}", escape::line(&note.text)));
    }
    for next in &outcome.next {
        line(&mut text, &format!("next: {}", escape::line(next)));
    }
    if let (Outcome::Held { .. }, Some(plan)) = (&outcome.outcome, &outcome.plan) {
        line(&mut text, &format!("next: or this plan as a whole, `--approve all@{}`", escape::line(plan)));
    }
    text
}

/// What was not delivered though nobody asked for that. What git cannot hold may be very much.
fn left_out(text: &mut String, outcome: &MergeOutcome) {
    let mut beyond = 0;
    for left in &outcome.left_out {
        let why = match left.why {
            LeftOutWhy::Selection => continue,
            LeftOutWhy::Ignored => "the repository ignores it",
            LeftOutWhy::Unrecorded => "it is no removal: what is there now could not be recorded",
            LeftOutWhy::EmptyDirectory => "a directory without files",
            LeftOutWhy::Permissions => "permissions other than the executable bit",
            LeftOutWhy::Attributes => "extended attributes",
        };
        let always = matches!(left.why, LeftOutWhy::Ignored | LeftOutWhy::Unrecorded);
        beyond += usize::from(!always);
        if always || beyond <= LISTED {
            line(text, &format!("left out {}: {why}", escape::path(&left.path)));
        }
    }
    if beyond > LISTED {
        line(text, &format!("left out {} more like these; `--json` lists them", beyond - LISTED));
    }
}

/// Why something could not be done, without what leads to it.
pub(crate) fn stopped(outcome: &Outcome, colour: Colour) -> String {
    let mut text = format!("sandtable: {}\n", escape::line(&outcome.message(0)));
    reasons(&mut text, outcome, colour);
    for next in outcome.next() {
        line(&mut text, &format!("next: {}", escape::line(&next)));
    }
    text
}

fn reasons(text: &mut String, outcome: &Outcome, colour: Colour) {
    match outcome {
        Outcome::Conflicts { conflicts } => {
            for conflict in conflicts {
                let label = colour.paint(Role::Error, "conflict");
                let (path, words) = (escape::path(&conflict.path), escape::line(plain(&conflict.text)));
                line(text, &format!("{label} {path} ({}): {words}", kind(conflict.kind)));
            }
        }
        Outcome::Held { held } => grouped(text, held, colour),
        Outcome::Refused { refusal } => {
            for named in &refusal.paths {
                line(text, &format!("{}: {}", escape::path(&named.path), escape::line(&named.why)));
            }
        }
        _ => {}
    }
}

/// By what they are, each path once with its reasons.
fn grouped(text: &mut String, held: &[Finding], colour: Colour) {
    let mut paths: BTreeMap<(&RelPath, &str), Vec<&Finding>> = BTreeMap::new();
    for finding in held {
        paths.entry((finding.rel_path(), finding.id.as_str())).or_default().push(finding);
    }
    let mut groups: BTreeMap<&str, Vec<Vec<&Finding>>> = BTreeMap::new();
    for findings in paths.into_values() {
        groups.entry(findings[0].group).or_default().push(findings);
    }
    for (group, paths) in groups {
        line(text, &format!("{}:", escape::line(group)));
        for findings in paths {
            let label = colour.paint(Role::Warning, "held");
            let (path, id) = (approvable(&findings[0].path), escape::line(&findings[0].id));
            let mut reasons: Vec<String> = Vec::new();
            for reason in findings.into_iter().map(reason) {
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
            line(text, &format!("  {label} {path}@{id}: {}", reasons.join("; ")));
        }
    }
}

/// A path as `--approve` takes it: the word `all` alone means everything.
fn approvable(path: &PathText) -> String {
    if path.path == "all" { "./all".to_owned() } else { escape::path(path) }
}

/// Why something is held or flagged, with the name that matters where it is not its own.
pub(crate) fn reason(finding: &Finding) -> String {
    let reason = escape::line(finding.reason);
    match &finding.alias {
        Some(alias) => format!("a link makes it `{}`: {reason}", escape::path(alias)),
        None => reason,
    }
}

const fn kind(kind: ConflictKind) -> &'static str {
    match kind {
        ConflictKind::Content => "content",
        ConflictKind::AddAdd => "added on both sides",
        ConflictKind::ModifyDelete => "modified and deleted",
        ConflictKind::RenameRename => "renamed to two names",
        ConflictKind::RenameDelete => "renamed and deleted",
        ConflictKind::RenameAdd => "renamed onto another",
        ConflictKind::DirectoryRename => "directory renamed",
        ConflictKind::FileDirectory => "file and directory",
        ConflictKind::Mode => "mode",
        ConflictKind::Type => "file and link",
        ConflictKind::Binary => "binary",
        ConflictKind::Submodule => "submodule",
        ConflictKind::SourceChangedDuringRun => "changed in the source during the run",
        ConflictKind::Other => "other",
    }
}

/// Git's words without the label that we say already.
fn plain(words: &str) -> &str {
    match words.split_once("): ") {
        Some((label, rest)) if label.starts_with("CONFLICT (") => rest,
        _ => words,
    }
}

fn line(text: &mut String, words: &str) {
    writeln!(text, "  {words}").expect("writing to a string does not fail");
}
