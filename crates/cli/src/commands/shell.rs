//! `sandtable shell`: `run` with the user's shell.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use sandtable_app::config;
use sandtable_app::env;
use sandtable_sandbox::session::{self, Streams};

use super::run::{Job, attended, dry_run};
use crate::app::App;
use crate::args::{CreatesAndRuns, SettingArgs};
use crate::error::CliError;

/// Always there.
const FALLBACK: &str = "/bin/sh";

/// What `shell` takes.
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    settings: SettingArgs<CreatesAndRuns>,
}

pub(crate) fn run(app: &App, args: ShellArgs) -> Result<ExitCode, CliError> {
    let loaded = config::load(app.environment(), args.settings.layer()?)?;
    super::tool::prepared(app, &loaded)?;
    let resolved = app.caller.resolve(&loaded)?;
    if loaded.output.dry_run.value {
        return dry_run(app, &app.sandboxes()?, &loaded, &resolved);
    }
    app.caller.whole(resolved.source.root.as_path())?;
    let start = |shell: OsString| {
        let job = Job { command: &[shell], streams: Streams::Caller(loaded.output.terminal()) };
        attended(app, &loaded, resolved.clone(), &job.told(&super::observer(app.ui, &loaded.output)))
    };
    // Whether it is there inside only the sandbox knows. One in which nothing ran is gone again.
    match app.environment().get(env::SHELL).map(|shell| start(shell.to_owned())) {
        Some(Err(CliError::Session(error))) if is_missing(&error) => start(FALLBACK.into()),
        Some(ended) => ended,
        None => start(FALLBACK.into()),
    }
}

fn is_missing(error: &session::SessionError) -> bool {
    matches!(
        error,
        session::SessionError::CommandNotFound { .. } | session::SessionError::CommandNotExecutable { .. }
    )
}
