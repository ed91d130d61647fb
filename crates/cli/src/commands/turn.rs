//! `sandtable checkout`, `rollback`, `undo` and `redo`: bring a directory or a sandbox to a state.

mod held;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sandtable_app::back::{self, Logged, Named, Step};
use sandtable_app::caller::CallerError;
use sandtable_app::target::Target;
use sandtable_sandbox::board::{self, Board, Direction, ObjectId};
use sandtable_sandbox::model::causes::chained;
use sandtable_sandbox::model::diagnosis::Diagnose as _;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::session::states::{self, Unrecorded};

use super::left_out;
use super::target::state;
use super::told::{Whole, not_written, spared};
use crate::app::{App, real};
use crate::error::CliError;
use crate::exit::{Own, after_signal};

/// What `checkout` takes.
#[derive(Debug, Args)]
pub(crate) struct CheckoutArgs {
    /// A snapshot, or a sandbox for its newest state
    snapshot: String,
    /// An empty directory, one that does not exist, or one that a state was written into before
    directory: PathBuf,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `rollback` takes.
#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// The snapshot
    snapshot: String,
    /// The sandbox or directory to bring back
    #[arg(value_name = "SANDBOX|DIR")]
    target: String,
}

/// What `undo` and `redo` take.
#[derive(Debug, Args)]
pub(crate) struct StepArgs {
    /// The sandbox or directory; nothing means whatever was done last to the source around the current directory, or
    /// in one of its sandboxes
    #[arg(value_name = "SANDBOX|DIR|ID")]
    target: Option<String>,
    /// Only a merge or apply, whatever was done in sandboxes since: the last one into the directory, or the one with the
    /// id that `merge` and `apply` end with
    #[arg(long)]
    merge: bool,
}

pub(crate) fn checkout(app: &App, args: &CheckoutArgs) -> Result<ExitCode, CliError> {
    let found = state(app, &args.snapshot)?;
    let name = args.directory.file_name();
    let target = match (args.directory.parent(), name) {
        // It may not exist yet, but what it lies in must.
        (Some(above), Some(name)) if !args.directory.exists() => {
            let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
            real(above)?.join(name)
        }
        _ => real(&args.directory)?,
    };
    app.caller.whole(&target)?;
    let outcome = app.board()?.checkout_snapshot(&found, &target)?;
    let held = held::of(app, &found);
    let missing = board::left_out_of_all(&found)?;
    if args.json {
        let id = found.snapshot.id;
        let left = left_out::listed(&missing);
        app.ui.json(&held::Answer::new((id, &target), (&outcome, left), &held))?;
        return Ok(ExitCode::SUCCESS);
    }
    not_written(app, &outcome.skipped, Whole::InJson);
    spared(app, &outcome, Whole::InJson);
    held::warn(app, &held);
    left_out::warn(app, &missing);
    app.ui.say(&format!("{} is in {}", found.snapshot.id.short(12), escaped(&target)));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn rollback(app: &App, args: &RollbackArgs) -> Result<ExitCode, CliError> {
    let found = state(app, &args.snapshot)?;
    let (from, to, missing) = match Target::of(&app.caller, Some(&args.target))? {
        Target::Sandbox(name) => {
            app.caller.whole_sandbox(&name)?;
            let done = states::rollback(&app.sandboxes()?, &name, &found)?;
            not_written(app, &done.outcome.skipped, Whole::Nowhere);
            spared(app, &done.outcome, Whole::Nowhere);
            (done.from, done.to, done.left_out)
        }
        Target::Directory(path) => {
            app.caller.whole(&path)?;
            let done = app.board()?.rollback(&found, &path)?;
            not_written(app, &done.outcome.skipped, Whole::Nowhere);
            spared(app, &done.outcome, Whole::Nowhere);
            (done.from, done.to, done.left_out)
        }
    };
    left_out::warn(app, &missing);
    said(app, &args.target, from, to);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn step(app: &App, args: &StepArgs, direction: Direction) -> Result<ExitCode, CliError> {
    if let Some(word) = args.target.as_deref().filter(|_| args.merge)
        && let Some(named) = back::merge_named(&app.board()?, word, direction)?
    {
        return step_named(app, word, named, direction);
    }
    let target = Target::of(&app.caller, args.target.as_deref()).map_err(|error| match error {
        CallerError::NoTarget { word } if args.merge => CliError::NotAMerge { word },
        error => error.into(),
    })?;
    let (root, found) = match target {
        Target::Sandbox(name) if args.merge => return Err(CliError::MergeIntoSandbox { name }),
        Target::Sandbox(name) => return step_sandbox(app, &name, direction),
        Target::Directory(root) => {
            app.caller.whole(&root)?;
            let board = app.board()?;
            let found = match args.target {
                _ if args.merge => back::merge_into(&board, &root, direction)?,
                Some(_) => back::of_directory(&board, &root, direction)?,
                None => last_done(app, &board, &root, direction)?,
            };
            (root, found)
        }
    };
    match found {
        None => Err(CliError::NothingBack { root, direction }),
        Some(Step::Sandbox(name)) => step_sandbox(app, &name, direction),
        Some(Step::Merge(logged)) => step_merge(app, &root, &logged, direction),
        Some(Step::Directory) => {
            let (step, done) = app.board()?.step(&root, direction)?;
            not_written(app, &done.outcome.skipped, Whole::Nowhere);
            spared(app, &done.outcome, Whole::Nowhere);
            left_out::warn(app, &done.left_out);
            said_kind(app, (step.over.kind.as_str(), &format!("of {}", escaped(&root))), direction);
            if step.over.only_recorded() {
                app.ui.say("it recorded a state, so no file was changed");
            }
            said(app, &root.to_string_lossy(), done.from, done.to);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What was done last to a source, or in one of its sandboxes. It may not be in any log yet.
fn last_done(app: &App, board: &Board, root: &Path, way: Direction) -> Result<Option<Step>, CliError> {
    let failed = states::record_all(&app.sandboxes()?, root)?;
    let found = back::of_source(board, root, way)?;
    for Unrecorded { since, error } in failed {
        // Whatever else is older, and what is not recorded cannot be taken back.
        if way == Direction::Undo && found.as_ref().is_none_or(|(at, _)| since > *at) {
            return Err(error.into());
        }
        app.ui.warning(error.code(), &chained(&error));
    }
    Ok(found.map(|(_, step)| step))
}

fn step_sandbox(app: &App, name: &SandboxName, direction: Direction) -> Result<ExitCode, CliError> {
    app.caller.whole_sandbox(name)?;
    let (step, done) = states::step(&app.sandboxes()?, name, direction)?;
    not_written(app, &done.outcome.skipped, Whole::Nowhere);
    spared(app, &done.outcome, Whole::Nowhere);
    left_out::warn(app, &done.left_out);
    said_kind(app, (step.over.kind.as_str(), &format!("in sandbox {name}")), direction);
    said(app, &name.to_string(), done.from, done.to);
    Ok(ExitCode::SUCCESS)
}

fn step_named(app: &App, id: &str, named: Named, direction: Direction) -> Result<ExitCode, CliError> {
    match named {
        Named::Ready(logged) => {
            let root = logged.target().to_owned();
            app.caller.whole(&root)?;
            step_merge(app, &root, &logged, direction)
        }
        Named::NotNow(root) => {
            let root = root.as_path().to_owned();
            Err(CliError::MergeNotThere { id: id.to_owned(), root, direction })
        }
        Named::Below(above) => {
            let what = match above.sandbox()? {
                Some(name) => format!("of sandbox {name}"),
                None => format!("of snapshot {}", above.done.snapshot().short(12)),
            };
            Err(CliError::MergedSince { what, id: above.name.clone(), direction })
        }
    }
}

fn step_merge(
    app: &App,
    root: &std::path::Path,
    logged: &Logged,
    direction: Direction,
) -> Result<ExitCode, CliError> {
    let turned = logged.turn(&app.caller.means()?, direction)?;
    for note in &turned.notes {
        app.ui.warning(note.code, &note.text);
    }
    let of = match logged.sandbox()? {
        Some(name) => format!("of sandbox {name}"),
        None => format!("into {}", escaped(root)),
    };
    if !turned.outcome.is_success() {
        let (kind, root) = (logged.done.kind(), escaped(root));
        let into = if of.starts_with("into") { String::new() } else { format!(" into {root}") };
        app.ui.say(&format!("`{kind}` {of}{into} was not {}", direction.done()));
        app.ui.write(&crate::ui::merge::stopped(&turned.outcome, app.ui.colour));
        return Ok(turned.interrupted.map_or_else(|| ExitCode::from(Own::Failed), after_signal));
    }
    if direction == Direction::Redo {
        left_out::warn(app, &logged.left_out());
    }
    said_kind(app, (logged.done.kind().as_str(), &of), direction);
    let verb = match direction {
        Direction::Undo => "is as it was before",
        Direction::Redo => "has the work again",
    };
    app.ui.say(&format!("{} {verb}", escaped(root)));
    Ok(turned.interrupted.map_or(ExitCode::SUCCESS, after_signal))
}

/// Says what was done, and to whom: nobody should have to guess what a bare `undo` took back.
fn said_kind(app: &App, (kind, of): (&str, &str), direction: Direction) {
    let verb = match direction {
        Direction::Undo => "undone",
        Direction::Redo => "done again",
    };
    app.ui.say(&format!("`{}` {of} was {verb}", crate::ui::escape::line(kind)));
}

fn said(app: &App, target: &str, from: ObjectId, to: ObjectId) {
    let target = crate::ui::escape::name(target);
    app.ui.say(&format!("{target} is at {}; it was at {}", to.short(12), from.short(12)));
}

fn escaped(path: &std::path::Path) -> String {
    crate::ui::escape::name(&path.to_string_lossy())
}
