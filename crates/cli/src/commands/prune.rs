//! `sandtable prune`: remove sandboxes that nobody needs any more.

use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use sandtable_sandbox::board::ObjectId;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::session::{self, LayerSize, ListedSandbox, Prune, Removal, Removed, Scope, State};
use serde::Serialize;

use super::{SCHEMA, rm};
use crate::app::App;
use crate::error::CliError;
use crate::ui::summary;

/// What `prune` takes.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Those with changes too; only what runs stays
    #[arg(long)]
    all: bool,
    /// Only those that nobody used for so long: 45s, 30m, 12h, 7d
    #[arg(long, value_name = "TIME")]
    older_than: Option<Age>,
    #[command(flatten)]
    shown: ShownArgs,
}

/// What is done with the answer.
#[derive(Debug, Args)]
struct ShownArgs {
    /// Say what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` answers.
#[derive(Serialize)]
struct Answer<'a> {
    schema: u32,
    dry_run: bool,
    removed: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a SandboxName,
    state: State,
    created_at: u64,
    size: LayerSize,
    /// Its last recorded state.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<ObjectId>,
}

pub(crate) fn run(app: &App, args: &PruneArgs) -> Result<ExitCode, CliError> {
    let sandboxes = app.sandboxes()?;
    let scope = if args.all { Scope::All } else { Scope::Unchanged };
    let idle_for = args.older_than.map(|age| age.0).unwrap_or_default();
    let found = session::prunable(&sandboxes, Prune { scope, idle_for })?;
    let mut worst = None;
    let mut removed = Vec::new();
    for entry in &found {
        let done = if args.shown.dry_run {
            Ok(Removed::default())
        } else {
            session::remove(&sandboxes, &entry.name, Removal::Careful)
        };
        match done {
            Ok(gone) => removed.push((entry, gone)),
            // Somebody else was faster, or uses it again.
            Err(session::SessionError::Unknown(_) | session::SessionError::StillRunning(_)) => {}
            Err(error) => {
                let error = CliError::from(error);
                worst = worst.max(Some(error.exit()));
                app.failure(&error);
            }
        }
    }
    if args.shown.json {
        let removed = removed.iter().map(row).collect();
        app.ui.json(&Answer { schema: SCHEMA, dry_run: args.shown.dry_run, removed })?;
    } else {
        for (entry, gone) in &removed {
            app.ui.answer(&format!("{}\n", entry.name))?;
            let work = gone.last.as_ref().is_some_and(|last| last.has_work);
            if let Some(back) = rm::brings_back(gone).filter(|_| work) {
                app.ui.say(&format!("{}: {back}", entry.name));
            }
            rm::lacking(app, &entry.name, gone);
        }
        app.ui.say(&closing(&removed, args));
    }
    Ok(worst.map_or(ExitCode::SUCCESS, ExitCode::from))
}

fn row<'a>((entry, gone): &(&'a ListedSandbox, Removed)) -> Row<'a> {
    let last = gone.last.as_ref().map(|last| last.id);
    Row { name: &entry.name, state: entry.state, created_at: entry.created_at, size: entry.size, last }
}

fn closing(removed: &[(&ListedSandbox, Removed)], args: &PruneArgs) -> String {
    let bytes = removed.iter().map(|(entry, _)| entry.size.bytes).sum();
    let verb = if args.shown.dry_run { "would remove" } else { "removed" };
    let count = removed.len();
    let which = if args.all { "" } else { "; those with changes stay without `--all`" };
    format!("{verb} {count}, {}{which}", summary::size(LayerSize { bytes, complete: true }))
}

/// A stretch of time, as in `7d`.
#[derive(Clone, Copy, Debug)]
struct Age(Duration);

/// A stretch of time that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time: a number and one of `s`, `m`, `h`, `d`")]
pub(crate) struct NotATime;

impl FromStr for Age {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
        let split = |(unit, seconds)| text.strip_suffix(unit).map(|number| (number, seconds));
        let (number, seconds) = units.into_iter().find_map(split).ok_or(NotATime)?;
        let number: u64 = number.parse().map_err(|_| NotATime)?;
        number.checked_mul(seconds).map(Duration::from_secs).map(Self).ok_or(NotATime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        let name = "try".parse().expect("a name");
        let size = LayerSize { bytes: 4096, complete: true };
        let row = Row { name: &name, state: State::Stopped, created_at: 1, size, last: None };
        let last = Some("4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse().expect("an id"));
        let other = Row { last, ..row };
        let row = Row { name: &name, last: None, ..other };
        let removed = vec![row, other];
        sandtable_testkit::schema::check("prune.json", &Answer { schema: SCHEMA, dry_run: false, removed });
    }

    #[test]
    fn times() {
        let seconds = |text: &str| text.parse::<Age>().map(|age| age.0.as_secs());
        assert_eq!(seconds("45s"), Ok(45));
        assert_eq!(seconds("7d"), Ok(604_800));
        for bad in ["", "7", "d", "-1d", "1w", "999999999999999999d", "1dd"] {
            assert_eq!(seconds(bad), Err(NotATime), "{bad}");
        }
    }
}
