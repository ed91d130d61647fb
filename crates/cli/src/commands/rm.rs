//! `sandtable rm`: remove sandboxes and everything in them.

use std::process::ExitCode;

use clap::Args;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::session::{self, Running};

use crate::app::App;
use crate::error::CliError;

/// What `rm` takes.
#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// The sandboxes
    #[arg(required = true, value_name = "NAME")]
    names: Vec<SandboxName>,
    /// Stop a sandbox that runs, then remove it
    #[arg(short, long)]
    force: bool,
}

pub(crate) fn run(app: &App, args: &RmArgs) -> Result<ExitCode, CliError> {
    let sandboxes = app.sandboxes()?;
    let running = || if args.force { Running::Stop } else { Running::Refuse };
    let failed = app.for_each(&args.names, |name| {
        session::remove(&sandboxes, name, running())?;
        app.ui.say(&format!("{name} removed"));
        Ok(())
    });
    Ok(failed.map_or(ExitCode::SUCCESS, ExitCode::from))
}
