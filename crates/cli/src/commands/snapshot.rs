//! `sandtable snapshot` and `sandtable onboard`: record a state now.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use sandtable_app::target::Target;
use sandtable_sandbox::attention::Interruptible;
use sandtable_sandbox::board::{Consistency, Ignored, ObjectId, OperationKind, Skipped, Snapshot, Taking};
use sandtable_sandbox::session::states;
use serde::Serialize;

use super::SCHEMA;
use crate::app::{App, real};
use crate::error::CliError;
use crate::ui::observer::{TerminalObserver, Verbosity};

/// What `snapshot` takes.
#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// A sandbox or a directory; the source around the current directory if not given
    #[arg(value_name = "SANDBOX|DIR")]
    target: Option<String>,
    /// A word about it
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// The snapshot it was made from, instead of the newest of the same directory or sandbox
    #[arg(long, value_name = "SNAPSHOT")]
    parent: Option<String>,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `onboard` takes.
#[derive(Debug, Args)]
pub(crate) struct OnboardArgs {
    /// The directory; the source around the current directory if not given
    #[arg(value_name = "DIR")]
    directory: Option<std::path::PathBuf>,
    /// Which files that git ignores are recorded: all of them, those that changed since the last time, or none
    #[arg(long, value_name = "WHICH", default_value = "all")]
    ignored: Which,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    All,
    Changed,
    None,
}

/// What `--json` answers.
#[derive(Serialize)]
pub(crate) struct Answer {
    schema: u32,
    id: ObjectId,
    tree: ObjectId,
    parent: Option<ObjectId>,
    consistency: &'static str,
    skipped: Vec<Left>,
}

/// Something that is not in the snapshot.
#[derive(Serialize)]
struct Left {
    path: String,
    why: String,
}

pub(crate) fn run(app: &App, args: &SnapshotArgs) -> Result<ExitCode, CliError> {
    let terminal = TerminalObserver::new(app.ui, Verbosity::Normal).recording();
    let observer = Interruptible::new(&terminal);
    let board = app.board()?;
    let parent = args.parent.as_deref().map(|text| board.snapshot(text)).transpose()?;
    let taking = Taking {
        parent: parent.as_ref().map(|found| found.snapshot.id),
        ..Taking::of(Ignored::All, &OperationKind::Snapshot, &observer)
    };
    let taking = Taking { message: args.message.as_deref(), ..taking };
    let answer = match Target::of(&app.caller, args.target.as_deref())? {
        Target::Sandbox(name) => {
            app.caller.whole_sandbox(&name)?;
            let kept = states::snapshot(&app.sandboxes()?, &name, &taking)?;
            answer(&kept.snapshot, kept.parent, &kept.outcome.skipped)
        }
        Target::Directory(path) => {
            app.caller.whole(&path)?;
            let taken = board.snapshot_directory(&path, &taking)?;
            answer(&taken.snapshot, taken.parent, &taken.outcome.skipped)
        }
    };
    terminal.clear();
    if args.json {
        app.ui.json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    say(app, &answer)
}

pub(crate) fn onboard(app: &App, args: &OnboardArgs) -> Result<ExitCode, CliError> {
    let terminal = TerminalObserver::new(app.ui, Verbosity::Normal).recording();
    let observer = Interruptible::new(&terminal);
    let ignored = match args.ignored {
        Which::All => Ignored::All,
        Which::Changed => Ignored::Changed,
        Which::None => Ignored::None,
    };
    let source = match &args.directory {
        Some(directory) => real(directory)?,
        None => app.caller.source(None)?,
    };
    app.caller.whole(&source)?;
    let taken = app.board()?.onboard(&source, &Taking::of(ignored, &OperationKind::Onboard, &observer))?;
    terminal.clear();
    let answer = answer(&taken.snapshot, taken.parent, &taken.outcome.skipped);
    if args.json {
        app.ui.json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    say(app, &answer)
}

fn answer(snapshot: &Snapshot, parent: Option<ObjectId>, skipped: &[Skipped]) -> Answer {
    let left = |entry: &Skipped| Left { path: entry.path.display_escaped(), why: entry.why.to_string() };
    Answer {
        schema: SCHEMA,
        id: snapshot.id,
        tree: snapshot.tree,
        parent,
        consistency: match snapshot.consistency {
            Consistency::Frozen => "frozen",
            Consistency::Stable => "stable",
            Consistency::Torn => "torn",
        },
        skipped: skipped.iter().map(left).collect(),
    }
}

fn say(app: &App, answer: &Answer) -> Result<ExitCode, CliError> {
    for left in &answer.skipped {
        app.ui.warning("not-recorded", &format!("`{}` {}", left.path, left.why));
    }
    app.ui.answer(&format!("{}\n", answer.id))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        let id: ObjectId = "4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse().expect("an id");
        let left = Left { path: "pipe".to_owned(), why: "is a named pipe".to_owned() };
        let answer =
            Answer { schema: SCHEMA, id, tree: id, parent: None, consistency: "frozen", skipped: vec![left] };
        sandtable_testkit::schema::check("snapshot.json", &answer);
        sandtable_testkit::schema::check("snapshot.json", &Answer { parent: Some(id), ..answer });
    }
}
