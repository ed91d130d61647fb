//! `sandtable stop`: end what runs, keep the state.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::session;

use crate::app::App;
use crate::error::CliError;

/// What `stop` takes.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The sandboxes
    #[arg(required = true, value_name = "NAME")]
    names: Vec<SandboxName>,
    /// How long commands may take to end before they are killed
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    grace: u16,
}

pub(crate) fn run(app: &App, args: &StopArgs) -> Result<ExitCode, CliError> {
    let sandboxes = app.sandboxes()?;
    let grace = Duration::from_secs(args.grace.into());
    let failed = app.for_each(&args.names, |name| {
        session::stop(&sandboxes, name, grace)?;
        app.ui.say(&format!("{name} stopped"));
        Ok(())
    });
    Ok(failed.map_or(ExitCode::SUCCESS, ExitCode::from))
}
