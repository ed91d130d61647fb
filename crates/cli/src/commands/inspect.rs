//! `sandtable inspect`: what a sandbox is, and what its last command did.

use std::process::ExitCode;

use clap::Args;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::session::record::{Outcome, Record};
use sandtable_sandbox::session::{self, State};
use serde::Serialize;

use super::SCHEMA;
use crate::app::App;
use crate::error::CliError;
use crate::ui::inspect;

/// What `inspect` takes.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The sandbox
    name: SandboxName,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` answers.
#[derive(Serialize)]
struct Answer<'a> {
    schema: u32,
    state: State,
    record: &'a Record,
    outcome: Option<&'a Outcome>,
}

pub(crate) fn run(app: &App, args: &InspectArgs) -> Result<ExitCode, CliError> {
    let found = session::inspect(&app.sandboxes()?, &args.name)?;
    let outcome = found.outcome.as_ref();
    if args.json {
        app.ui.json(&Answer { schema: SCHEMA, state: found.state, record: &found.record, outcome })?;
    } else {
        app.ui.answer(&inspect::render(&found.record, found.state.word(), outcome))?;
    }
    Ok(ExitCode::SUCCESS)
}
