//! `sandtable exec`: another command in an existing sandbox.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sandtable_app::config::{self, ConfigError};
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::path::BoxPath;
use sandtable_sandbox::session::{self, ExecRequest};

use super::finish;
use crate::app::App;
use crate::args::{Runs, SettingArgs};
use crate::error::CliError;
use crate::report::Report;

/// What `exec` takes.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The sandbox
    name: SandboxName,
    /// Start in DIR, an absolute path inside the sandbox
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The command and its arguments; no shell interprets them
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    settings: SettingArgs<Runs>,
}

pub(crate) fn run(app: &App, args: ExecArgs) -> Result<ExitCode, CliError> {
    let output = config::output(app.environment(), args.settings.layer()?)?;
    let directory = args.directory.map(BoxPath::new).transpose().map_err(CliError::InsideDirectory)?;
    let report = output.report.as_ref().map(|report| Report::open(&report.value)).transpose()?;
    let observer = super::observer(app.ui, &output);
    let host = app.environment().host().map_err(ConfigError::from)?;
    let request = ExecRequest {
        command: &args.command,
        directory,
        terminal: output.terminal(),
        observer: &observer,
        host: &host,
    };
    app.caller.whole_sandbox(&args.name)?;
    let outcome = session::exec(&app.sandboxes()?, &args.name, request)?;
    finish(app, &output, report, &outcome)
}
