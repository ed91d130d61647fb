//! `sandtable rm`: remove sandboxes and everything in them.

use std::process::ExitCode;

use clap::Args;
use sandtable_sandbox::model::causes::chained;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::session::{self, Removal, Removed};

use crate::app::App;
use crate::error::CliError;

/// What `rm` takes.
#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// The sandboxes
    #[arg(required = true, value_name = "NAME")]
    names: Vec<SandboxName>,
    /// Stop a sandbox that runs, and remove it without recording what is not recorded yet: that work is lost
    #[arg(short, long)]
    force: bool,
}

pub(crate) fn run(app: &App, args: &RmArgs) -> Result<ExitCode, CliError> {
    let sandboxes = app.sandboxes()?;
    let how = if args.force { Removal::Forced } else { Removal::Careful };
    let failed = app.for_each(&args.names, |name| {
        let removed = session::remove(&sandboxes, name, how)?;
        let back = brings_back(&removed).map(|back| format!("; {back}"));
        app.ui.say(&format!("{name} removed{}", back.unwrap_or_default()));
        lacking(app, name, &removed);
        Ok(())
    });
    Ok(failed.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// How the last state of a sandbox is brought back.
pub(super) fn brings_back(removed: &Removed) -> Option<String> {
    let id = removed.last.as_ref()?.id.short(12);
    let which = if removed.lost.is_some() { "last recorded" } else { "last" };
    Some(format!("`sandtable fork {id}` brings its {which} state back until `sandtable store gc`"))
}

/// Says what that state does not hold.
pub(super) fn lacking(app: &App, name: &SandboxName, removed: &Removed) {
    if let Some(error) = &removed.lost {
        let text = format!("what {name} did since its last recorded state was not recorded and is lost");
        app.ui.warning("not-recorded", &format!("{text}: {}", chained(error)));
    }
    if let Some(missing) = removed.last.as_ref().and_then(|last| last.missing.as_ref()) {
        app.ui.warning("left-out", missing);
    }
}
