//! One file per command: its arguments, and what it does with them.

use std::process::ExitCode;

use sandtable_app::config::Output;
use sandtable_sandbox::session::record::{ExitOrigin, Outcome};

use crate::app::App;
use crate::error::CliError;
use crate::exit::Own;
use crate::report::Report;
use crate::ui::observer::{TerminalObserver, Verbosity};
use crate::ui::{Ui, escape, summary};

pub(crate) mod background;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod fork;
pub(crate) mod inspect;
mod left_out;
pub(crate) mod log;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod policy;
pub(crate) mod prune;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod snapshot;
pub(crate) mod stop;
pub(crate) mod store;
mod target;
mod told;
pub(crate) mod tool;
pub(crate) mod trust;
pub(crate) mod turn;
pub(crate) mod verify;
pub(crate) mod why;

/// The version of every answer in JSON that is not a stored record.
const SCHEMA: u32 = 1;

/// Prints events on the terminal, as much as the output settings ask for.
fn observer(ui: Ui, output: &Output) -> TerminalObserver {
    TerminalObserver::new(ui, if output.quiet.value { Verbosity::Quiet } else { Verbosity::Normal })
}

/// The end of a command: report, summary, exit code.
fn finish(
    app: &App,
    output: &Output,
    report: Option<Report>,
    outcome: &Outcome,
) -> Result<ExitCode, CliError> {
    if outcome.exit.origin == ExitOrigin::Sandbox
        && let Some(meaning) = Own::meaning(outcome.exit.code)
    {
        let program = outcome.command.first().map(|word| escape::name(word)).unwrap_or_default();
        app.ui.say(&format!("{meaning}: {program}"));
    }
    if output.quiet.value {
        // Nobody wants it so quiet that work is lost unheard.
        let lost = |code: &str| matches!(code, "not-recorded" | "left-out" | "interrupted");
        for warning in outcome.warnings.iter().filter(|warning| lost(&warning.code)) {
            app.ui.warning(&warning.code, &warning.text);
        }
    } else {
        app.ui.write(&summary::render(outcome, output.summary.value, app.ui.colour));
    }
    report.map(|report| report.write(outcome)).transpose()?;
    if outcome.was_interrupted() {
        return Ok(Own::Interrupted.into());
    }
    Ok(ExitCode::from(outcome.exit.code))
}
