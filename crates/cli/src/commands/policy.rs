//! `sandtable policy`: the policy that would hold, and where each line of it comes from.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use sandtable_app::config;
use sandtable_app::config::key::Key;
use sandtable_app::config::layer::Layer;
use sandtable_app::redaction;
use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::model::spec::Spec;
use serde::Serialize;

use super::SCHEMA;
use super::why::{self, WhyArgs};
use crate::app::App;
use crate::args::{Creates, SettingArgs, switched_on};
use crate::error::CliError;
use crate::ui::policy;

/// The commands about the policy.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Show every setting, mount and variable with its origin
    Show(Box<ShowArgs>),
    /// Say which line decides about a path, a host or a variable, and what would change it
    Why(Box<WhyArgs>),
}

/// What `policy show` takes.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    settings: SettingArgs<Creates>,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` answers.
#[derive(Serialize)]
struct Answer<'a> {
    schema: u32,
    spec: &'a Spec,
    resolved: ResolvedSpec,
}

pub(crate) fn run(app: &App, command: PolicyCommand) -> Result<ExitCode, CliError> {
    match command {
        PolicyCommand::Show(args) => show(app, *args),
        PolicyCommand::Why(args) => why::run(app, *args),
    }
}

fn show(app: &App, args: ShowArgs) -> Result<ExitCode, CliError> {
    let json = if args.json { switched_on(Key::Json) } else { Layer::default() };
    let loaded = config::load(app.environment(), args.settings.layer()?.or(json))?;
    let resolved = app.caller.resolve(&loaded)?;
    if loaded.output.json.value {
        let resolved = redaction::redacted(&resolved);
        app.ui.json(&Answer { schema: SCHEMA, spec: &loaded.spec, resolved })?;
    } else {
        app.ui.answer(&policy::render(&loaded.layer, &resolved))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtable_testkit::fixtures::{resolved, spec};

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        let spec = spec();
        sandtable_testkit::schema::check(
            "policy-show.json",
            &Answer { schema: SCHEMA, spec: &spec, resolved: resolved(&spec) },
        );
    }
}
