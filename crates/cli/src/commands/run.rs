//! `sandtable run`: a new sandbox for one command.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::model::spec::Spec;
use sandtable_sandbox::session::{self, Request, Sandboxes};
use serde::Serialize;

use super::{SCHEMA, finish};
use crate::app::App;
use crate::args::{OutputArgs, SettingArgs, flag};
use crate::config::key::Key;
use crate::config::layer::Layer;
use crate::config::{self, Loaded};
use crate::error::CliError;
use crate::report::Report;
use crate::ui::{escape, policy, progress};

const EXAMPLES: &str = "\
Examples:
  sandtable run -- make test                      run, then list what changed; the source stays as it is
  sandtable run --profile safe -- ./install.sh    no network, masked secrets, filtered git configuration
  sandtable run --rm -v ~/data -- ./report        show a directory read-only, keep nothing
  sandtable run --name try -- sh -c 'rm -rf src'  then: sandtable exec try -- git status
  sandtable run --dry-run -- true                 show the policy and the plan, do nothing

Every option can also be set by a variable (`--git-config` is SANDTABLE_GIT_CONFIG) and in
~/.config/sandtable/config.toml (`git_config = \"off\"`). A project's .sandtable.toml can only narrow.";

/// What `run` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::TABLE))]
pub(crate) struct RunArgs {
    #[command(flatten)]
    settings: SettingArgs,
    /// Show the policy and the plan, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
    /// The command and its arguments, passed on as they are, never through a shell
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
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
    let what = Layer {
        dry_run: flag(Key::DryRun, args.dry_run.then_some(true)),
        json: flag(Key::Json, args.json.then_some(true)),
        ..args.output.layer()
    };
    let loaded = config::load(&app.environment, args.settings.layer()?.or(what))?;
    if loaded.output.json_by_flag() && !loaded.output.dry_run.value {
        return Err(CliError::JsonWithoutDryRun);
    }
    let resolved = app.resolve(&loaded)?;
    let sandboxes = app.sandboxes()?;
    if loaded.output.dry_run.value {
        return dry_run(app, &sandboxes, &loaded, &resolved);
    }
    let report = loaded.output.report.as_deref().map(Report::open).transpose()?;
    let name = loaded.spec.name.map(|name| name.value);
    let notify = progress::copying(app.ui, loaded.output.quiet.value);
    let request = Request { command: args.command, resolve_ms: app.elapsed_ms(), notify };
    let outcome = session::run(&sandboxes, resolved, name.as_ref(), request)?;
    finish(app, &loaded.output, report, &outcome)
}

fn dry_run(
    app: &App,
    sandboxes: &Sandboxes,
    loaded: &Loaded,
    resolved: &ResolvedSpec,
) -> Result<ExitCode, CliError> {
    let name = loaded.spec.name.as_ref().map(|name| name.value.clone());
    let plan = session::preview(sandboxes, resolved, name);
    if loaded.output.json.value {
        let resolved = policy::redacted(resolved);
        app.ui.json(&DryRun { schema: SCHEMA, spec: &loaded.spec, resolved, plan: &plan })?;
    } else {
        let settings = policy::settings(&loaded.spec, resolved);
        app.ui
            .answer(&format!("{settings}\nplan\n{}", policy::indented(&escape::lines(&plan.to_string()))))?;
        resolved.warnings.iter().for_each(|warning| app.ui.warning(&warning.code, &warning.text));
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::policy::tests::{resolved, spec};

    #[test]
    fn a_dry_run_has_the_shape_its_schema_promises() {
        let spec = spec();
        let plan = serde_json::json!({ "ops": [] });
        let answer = DryRun { schema: SCHEMA, spec: &spec, resolved: resolved(&spec), plan: &plan };
        crate::schema::check("dry-run.json", &answer);
    }
}
