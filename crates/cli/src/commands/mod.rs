//! One file per command: its arguments, and what it does with them.

use std::process::ExitCode;

use sandtable_sandbox::session::record::{ExitOrigin, Outcome};

use crate::app::App;
use crate::config::Output;
use crate::error::CliError;
use crate::exit::Own;
use crate::report::Report;
use crate::ui::{escape, summary};

pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod inspect;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod policy;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod stop;
pub(crate) mod trust;
pub(crate) mod why;

/// The version of every answer in JSON that is not a stored record.
const SCHEMA: u32 = 1;

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
    if !output.quiet.value {
        app.ui.write(&summary::render(outcome, app.ui.colour));
    }
    report.map(|report| report.write(outcome)).transpose()?;
    Ok(ExitCode::from(outcome.exit.code))
}
