//! `sandtable checkout`, `rollback`, `undo` and `redo`: bring a directory or a sandbox to a state.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sandtable_sandbox::board::{Direction, ObjectId, checkout};
use sandtable_sandbox::session::states;

use super::target::{Target, state};
use crate::app::{App, real};
use crate::error::CliError;

/// What `checkout` takes.
#[derive(Debug, Args)]
pub(crate) struct CheckoutArgs {
    /// A snapshot, or a sandbox for its newest state
    snapshot: String,
    /// An empty directory, one that does not exist, or one that a state was written into before
    directory: PathBuf,
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
    /// The sandbox or directory
    #[arg(value_name = "SANDBOX|DIR")]
    target: String,
}

pub(crate) fn checkout(app: &App, args: &CheckoutArgs) -> Result<ExitCode, CliError> {
    let found = state(app, &args.snapshot)?;
    let name = args.directory.file_name();
    let target = match (args.directory.parent(), name) {
        // It may not exist yet, but what it lies in must.
        (Some(above), Some(name)) if !args.directory.exists() => {
            let above = if above.as_os_str().is_empty() { std::path::Path::new(".") } else { above };
            real(above)?.join(name)
        }
        _ => real(&args.directory)?,
    };
    let outcome = app.board()?.checkout_snapshot(&found, &target)?;
    left_out(app, &outcome.skipped);
    app.ui.say(&format!("{} is in {}", found.snapshot.id.short(12), escaped(&target)));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn rollback(app: &App, args: &RollbackArgs) -> Result<ExitCode, CliError> {
    let found = state(app, &args.snapshot)?;
    let (from, to) = match Target::of(app, Some(&args.target))? {
        Target::Sandbox(name) => {
            let done = states::rollback(&app.sandboxes()?, &name, &found)?;
            left_out(app, &done.outcome.skipped);
            (done.from, done.to)
        }
        Target::Directory(path) => {
            let done = app.board()?.rollback(&found, &path)?;
            left_out(app, &done.outcome.skipped);
            (done.from, done.to)
        }
    };
    said(app, &args.target, from, to);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn step(app: &App, args: &StepArgs, direction: Direction) -> Result<ExitCode, CliError> {
    let (kind, from, to) = match Target::of(app, Some(&args.target))? {
        Target::Sandbox(name) => {
            let (step, done) = states::step(&app.sandboxes()?, &name, direction)?;
            left_out(app, &done.outcome.skipped);
            (step.over.kind, done.from, done.to)
        }
        Target::Directory(path) => {
            let (step, done) = app.board()?.step(&path, direction)?;
            left_out(app, &done.outcome.skipped);
            (step.over.kind, done.from, done.to)
        }
    };
    let verb = match direction {
        Direction::Undo => "undone",
        Direction::Redo => "done again",
    };
    app.ui.say(&format!("`{}` was {verb}", crate::ui::escape::line(&kind)));
    said(app, &args.target, from, to);
    Ok(ExitCode::SUCCESS)
}

fn said(app: &App, target: &str, from: ObjectId, to: ObjectId) {
    let target = crate::ui::escape::name(target);
    app.ui.say(&format!("{target} is at {}; it was at {}", to.short(12), from.short(12)));
}

fn left_out(app: &App, skipped: &[checkout::Skipped]) {
    for entry in skipped {
        app.ui.warning("not-written", &format!("`{}` {}", entry.path.display_escaped(), entry.why));
    }
}

fn escaped(path: &std::path::Path) -> String {
    crate::ui::escape::name(&path.to_string_lossy())
}
