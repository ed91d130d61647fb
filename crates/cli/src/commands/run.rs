//! `sandtable run`: a new sandbox for one command.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use sandtable_app::config::{self, Loaded};
use sandtable_app::redaction;
use sandtable_sandbox::model::observe::Observer;
use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::model::spec::Spec;
use sandtable_sandbox::session::{self, Request, Sandboxes, Streams};
use serde::Serialize;

use super::{SCHEMA, background, finish};
use crate::app::App;
use crate::args::{All, SettingArgs};
use crate::error::CliError;
use crate::report::Report;
use crate::ui::{escape, policy};

const EXAMPLES: &str = "\
Examples:
  sandtable run -- make test                     run, then list the changes; the source is unchanged
  sandtable run --profile safe -- ./install.sh   no network, masked secrets, filtered git settings
  sandtable run --name try -- sh -c 'a && b'     then: sandtable exec try -- git status

Each option is also a variable (SANDTABLE_GIT_CONFIG) and a key of ~/.config/sandtable/config.toml
(`git_config = \"off\"`). A project's .sandtable.toml can only narrow the policy.";

/// What `run` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::TABLE))]
pub(crate) struct RunArgs {
    /// The command and its arguments; no shell interprets them
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    settings: SettingArgs<All>,
}

/// What `--dry-run --json` answers.
#[derive(Serialize)]
struct DryRun<'a, Plan> {
    schema: u32,
    spec: &'a Spec,
    resolved: ResolvedSpec,
    plan: &'a Plan,
}

pub(crate) fn run(app: &App, args: RunArgs) -> Result<ExitCode, CliError> {
    let loaded = config::load(app.environment(), args.settings.layer()?)?;
    if loaded.output.json_by_flag() && !loaded.output.dry_run.value {
        return Err(CliError::JsonWithoutDryRun);
    }
    super::tool::prepared(app, &loaded)?;
    let resolved = app.caller.resolve(&loaded)?;
    let sandboxes = app.sandboxes()?;
    if loaded.output.dry_run.value {
        return dry_run(app, &sandboxes, &loaded, &resolved);
    }
    app.caller.whole(resolved.source.root.as_path())?;
    if loaded.output.detach.value {
        return background::run(app, &loaded, resolved, &args.command);
    }
    let job = Job { command: &args.command, streams: Streams::Caller(loaded.output.terminal()) };
    attended(app, &loaded, resolved, &job.told(&super::observer(app.ui, &loaded.output)))
}

/// What is run, and on which streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job<'a> {
    pub(crate) command: &'a [OsString],
    pub(crate) streams: Streams,
}

/// A job and who hears of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<'a> {
    job: Job<'a>,
    observer: &'a dyn Observer,
}

impl<'a> Job<'a> {
    pub(crate) fn told(self, observer: &'a dyn Observer) -> Told<'a> {
        Told { job: self, observer }
    }
}

/// Runs a job in a new sandbox and stays until its end.
pub(crate) fn attended(
    app: &App,
    loaded: &Loaded,
    resolved: ResolvedSpec,
    told: &Told<'_>,
) -> Result<ExitCode, CliError> {
    let report = loaded.output.report.as_ref().map(|report| Report::open(&report.value)).transpose()?;
    let name = loaded.spec.name.as_ref().map(|name| &name.value);
    let Told { job: Job { command, streams }, observer } = *told;
    let request = Request { command, resolve_ms: app.elapsed_ms(), streams, observer };
    let outcome = session::run(&app.sandboxes()?, resolved, name, request)?;
    finish(app, &loaded.output, report, &outcome)
}

pub(crate) fn dry_run(
    app: &App,
    sandboxes: &Sandboxes,
    loaded: &Loaded,
    resolved: &ResolvedSpec,
) -> Result<ExitCode, CliError> {
    let name = loaded.spec.name.as_ref().map(|name| name.value.clone());
    let plan = session::preview(sandboxes, resolved, name);
    if loaded.output.json.value {
        let resolved = redaction::redacted(resolved);
        app.ui.json(&DryRun { schema: SCHEMA, spec: &loaded.spec, resolved, plan: &plan })?;
    } else {
        let settings = policy::settings(&loaded.layer, resolved);
        app.ui
            .answer(&format!("{settings}\nplan\n{}", policy::indented(&escape::lines(&plan.to_string()))))?;
        resolved.warnings.iter().for_each(|warning| app.ui.warning(&warning.code, &warning.text));
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtable_testkit::fixtures::{resolved, spec};

    #[test]
    fn a_dry_run_has_the_shape_its_schema_promises() {
        let spec = spec();
        let plan = serde_json::json!({ "ops": [] });
        let answer = DryRun { schema: SCHEMA, spec: &spec, resolved: resolved(&spec), plan: &plan };
        sandtable_testkit::schema::check("dry-run.json", &answer);
    }
}
