//! What is said after a command: how it ended, what it changed, what was not enforced.

use std::fmt::Write as _;
use std::time::Duration;

use sandtable_app::config::SummaryLength;
use sandtable_protocol::report::Observed;
use sandtable_sandbox::model::spec::{Base, WorkspaceMode};
use sandtable_sandbox::session::LayerSize;
use sandtable_sandbox::session::record::{
    ChangeEntry, ChangeKind, Changes, DriftEntry, DriftKind, EntryType, Exit, ExitOrigin, GitState, Outcome,
    Timings,
};

use super::escape;
use super::style::{Colour, Role};
use crate::exit::Own;

/// Longer lists are cut: the whole of it is in `inspect --json`.
const LIMIT: usize = 50;

/// The whole summary, ready for the terminal. A sandbox that kept nothing has only its warnings and losses.
pub(crate) fn render(outcome: &Outcome, length: SummaryLength, colour: Colour) -> String {
    let full = length == SummaryLength::Full;
    let mut out = Summary { text: String::new(), colour, full };
    if let Some(changes) = &outcome.changes {
        let lines = lines(changes);
        out.head(outcome, lines.len());
        if full {
            out.list(&lines, outcome);
        }
        if changes.git == GitState::Changed {
            out.detail("git: the sandbox's own .git changed");
        }
        out.skipped(changes, outcome);
        out.drift(outcome);
    }
    for warning in &outcome.warnings {
        let label = colour.paint(Role::Warning, "warning");
        out.say(&format!("{label}: {} [{}]", escape::line(&warning.text), escape::line(&warning.code)));
    }
    out.losses(outcome);
    if let Some(snapshot) = outcome.snapshot.as_ref().filter(|_| full) {
        let (id, name) = (snapshot.id.short(12), &outcome.name);
        let same = if snapshot.unchanged { ", as before" } else { "" };
        out.say(&format!(
            "state {id}{same}   see it: sandtable diff {name}   take it back: sandtable undo {name}"
        ));
    }
    if full && outcome.changes.is_some() {
        let name = &outcome.name;
        out.say(&format!("look inside: sandtable exec {name} -- …   drop it: sandtable rm {name}"));
    }
    out.text
}

/// How a command ended, in words.
pub(crate) fn exit(exit: Exit) -> String {
    let why = match (exit.signal, exit.origin) {
        (Some(signal), _) => format!(" (signal {signal})"),
        (None, ExitOrigin::Sandbox) => match Own::meaning(exit.code) {
            Some(meaning) => format!(" ({meaning})"),
            None => " (sandtable's own)".to_owned(),
        },
        (None, ExitOrigin::Command) => String::new(),
    };
    format!("exit {}{why}", exit.code)
}

/// Space on disk as people say it.
pub(crate) fn size(size: LayerSize) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut bytes = size.bytes;
    while bytes >= 1024 * 10 && unit + 1 < UNITS.len() {
        bytes = bytes.div_ceil(1024);
        unit += 1;
    }
    let more = if size.complete { "" } else { "≥" };
    format!("{more}{bytes} {}", UNITS[unit])
}

/// A stretch of time as people say it.
pub(crate) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        1000..60_000 => format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds / 1000 % 60),
    }
}

/// How long ago, with one unit.
pub(crate) fn age(since: Duration) -> String {
    match since.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..86_400 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// All the time a command took, ours included.
pub(crate) fn total(timings: Timings) -> u64 {
    timings.resolve + timings.start + timings.run + timings.capture
}

/// One line of the list of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) letter: char,
    /// Harmless, and ending in a slash for a directory.
    pub(crate) path: String,
}

/// The changes as a person would list them.
pub(crate) fn lines(changes: &Changes) -> Vec<Line> {
    changes.entries.iter().map(line).collect()
}

fn line(entry: &ChangeEntry) -> Line {
    let (letter, note) = match (entry.kind, entry.below) {
        (ChangeKind::Added, _) => ('A', String::new()),
        (ChangeKind::Modified, _) => ('M', String::new()),
        (ChangeKind::Removed, 1) => ('D', " (1 file)".to_owned()),
        (ChangeKind::Removed, 0) => ('D', String::new()),
        (ChangeKind::Removed, files) => ('D', format!(" ({files} files)")),
        (ChangeKind::ModeChanged, _) => ('M', " (mode)".to_owned()),
        (ChangeKind::TypeChanged, _) => ('T', format!(" (now a {})", entry.entry)),
    };
    let directory = if entry.entry == EntryType::Directory { "/" } else { "" };
    let full = match &entry.mount {
        Some(mount) => format!("{mount}/{}{directory}", entry.path),
        None => format!("{}{directory}", entry.path),
    };
    Line { letter, path: format!("{}{note}", escape::name(&full)) }
}

struct Summary {
    text: String,
    colour: Colour,
    /// Whether lists of changes and suggestions belong to it.
    full: bool,
}

impl Summary {
    fn say(&mut self, text: &str) {
        writeln!(self.text, "sandtable: {text}").expect("a string takes everything");
    }

    fn detail(&mut self, text: &str) {
        writeln!(self.text, "  {text}").expect("a string takes everything");
    }

    fn head(&mut self, outcome: &Outcome, changes: usize) {
        let name = self.colour.paint(Role::Name, &outcome.name);
        let changes = match changes {
            0 => "no changes".to_owned(),
            1 => "1 change".to_owned(),
            many => format!("{many} changes"),
        };
        let time = duration(total(outcome.timings_ms));
        self.say(&format!("{name} · {} · {changes} · {time}", exit(outcome.exit)));
    }

    fn list(&mut self, lines: &[Line], outcome: &Outcome) {
        for line in lines.iter().take(LIMIT) {
            let role = match line.letter {
                'A' => Role::Added,
                'D' => Role::Removed,
                _ => Role::Changed,
            };
            let letter = self.colour.paint(role, line.letter);
            self.detail(&format!("{letter} {}", line.path));
        }
        self.rest(lines.len(), outcome);
    }

    fn skipped(&mut self, changes: &Changes, outcome: &Outcome) {
        for skipped in changes.skipped.iter().take(LIMIT) {
            self.detail(&format!("skipped {}: {}", escape::name(&skipped.path), escape::line(&skipped.why)));
        }
        self.rest(changes.skipped.len(), outcome);
    }

    fn drift(&mut self, outcome: &Outcome) {
        if outcome.drift.is_empty() {
            return;
        }
        self.say("the source moved while the command ran (drift):");
        for drift in outcome.drift.iter().take(LIMIT) {
            self.detail(&drift_line(drift));
        }
        self.rest(outcome.drift.len(), outcome);
        if self.full && outcome.mode.value == WorkspaceMode::Overlay && outcome.base == Base::Source {
            self.say(
                "for a long run beside your own work, `--base store` keeps such changes out of the sandbox",
            );
        }
    }

    fn rest(&mut self, length: usize, outcome: &Outcome) {
        if length > LIMIT {
            let more = length - LIMIT;
            self.detail(&format!("… and {more} more: sandtable inspect {} --json", outcome.name));
        }
    }

    fn losses(&mut self, outcome: &Outcome) {
        for (control, observed) in &outcome.enforcement {
            let (what, why) = match observed {
                Observed::Enforced | Observed::Watched { .. } => continue,
                Observed::Partial { why } => ("only partly enforced", why),
                Observed::Absent { why } => ("not enforced", why),
            };
            let what = self.colour.paint(Role::Warning, what);
            self.say(&format!("{what}: {control}: {}", escape::line(why)));
        }
    }
}

fn drift_line(drift: &DriftEntry) -> String {
    let (letter, note) = match drift.kind {
        DriftKind::Added => ('A', ""),
        DriftKind::Modified => ('M', ""),
        DriftKind::Removed => ('D', ""),
        DriftKind::Contents => ('M', " (entries came or went)"),
    };
    format!("{letter} {}{note}", escape::name(&drift.path))
}

#[cfg(test)]
pub(crate) mod tests;
