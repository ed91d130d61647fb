//! `sandtable rm`: remove sandboxes and everything in them.

use std::process::ExitCode;

use clap::Args;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::session::{self, Running, states};

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
        let newest = states::recorded(&sandboxes, name);
        session::remove(&sandboxes, name, running())?;
        let states = newest.map(|id| {
            let id = id.short(12);
            format!("; `sandtable fork {id}` brings its last state back until `sandtable store gc`")
        });
        app.ui.say(&format!("{name} removed{}", states.unwrap_or_default()));
        Ok(())
    });
    Ok(failed.map_or(ExitCode::SUCCESS, ExitCode::from))
}
