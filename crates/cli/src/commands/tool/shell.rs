//! `sandtable tool shell`: a clean sandbox with what a recipe declares, to try its steps by hand. Nothing is kept. Where a
//! build failed and its place was kept, that place instead, as the failed step saw it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sandtable_app::config::{self, Loaded};
use sandtable_app::env;
use sandtable_app::workshop::{Manner, workshop};
use sandtable_protocol::invocation::Terminal;
use sandtable_sandbox::facts::MachineFacts;
use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::model::setting::Setting;
use sandtable_sandbox::model::spec::{Lifetime, Spec};
use sandtable_sandbox::model::tool::ProvidedDep;
use sandtable_sandbox::resolve;
use sandtable_sandbox::session::{self, Request, Streams};
use sandtable_tools::build::{self as tools, Left};
use sandtable_tools::plan::Plan;

use super::ask;
use super::engine::{self, EngineArgs, observer};
use super::install::{MannerArgs, make};
use super::which::WhichArgs;
use crate::app::{self, App};
use crate::error::{CliError, ToolError};
use crate::ui::escape;

/// What `tool shell` takes.
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    which: WhichArgs,
    #[command(flatten)]
    on: EngineArgs,
    #[command(flatten)]
    manner: MannerArgs,
    /// A clean sandbox, also where a failed build left its place
    #[arg(long)]
    clean: bool,
    /// Instead of a shell
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(super) fn run(app: &App, args: &ShellArgs) -> Result<ExitCode, CliError> {
    let (root, libc) = engine::root(args.on.image(app)?);
    let plan = args.which.plan_on(libc)?;
    ask::consent(app, &plan, args.manner.answer(), args.manner.stays())?;
    if !args.clean
        && let Some(left) = left(app, args.manner.manner(root.clone()), &plan)?
    {
        return entered(app, args, left.resolved.clone());
    }
    let mut tools: Vec<ProvidedDep> = Vec::new();
    let mut held = Vec::new();
    for dependency in &plan.dependencies {
        let (provided, _) = make(app, dependency, args.manner.manner(root.clone()))?;
        tools.push(provided.tool.clone());
        tools.extend(provided.needs.iter().cloned());
        held.push(provided);
    }
    let base = app.environment().get(env::TMPDIR).map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let place = app::real(&base)?.join(format!("sandtable-tool-{}", std::process::id()));
    let failed = |source| CliError::Trial { place: place.clone(), source };
    fs_err::create_dir(&place).map_err(failed)?;
    let _place = Place(place.clone());
    let defaults = config::plain(place);
    let lifetime = Setting::default_value(Lifetime::Discard);
    let spec = args.on.on(Spec { lifetime, ..defaults.spec });
    let loaded = Loaded { spec, ..defaults };
    let mut host = app.environment().host()?;
    host.tools = tools;
    entered(app, args, resolve::resolve(&loaded.spec, &host, &MachineFacts)?)
}

/// What a failed build left, said aloud.
fn left(app: &App, manner: Manner, plan: &Plan) -> Result<Option<Left>, CliError> {
    let observer = observer(app, &manner.root);
    let workshop = workshop(app.environment(), manner)?;
    let found = tools::left(&workshop, plan, &observer).map_err(ToolError::from)?;
    observer.clear();
    if let Some(left) = &found {
        let title = escape::line(&plan.title());
        app.ui
            .say(&format!("this is what step {} of {title} ({}) left, as it saw it", left.step, left.action));
        left.commands.iter().for_each(|command| app.ui.say(&format!("it runs: {}", escape::line(command))));
    }
    Ok(found)
}

fn entered(app: &App, args: &ShellArgs, resolved: ResolvedSpec) -> Result<ExitCode, CliError> {
    let shell = [OsString::from("/bin/sh")];
    let command = if args.command.is_empty() { &shell[..] } else { &args.command };
    let streams = Streams::Caller(Terminal::Auto);
    let request = Request { command, resolve_ms: app.elapsed_ms(), streams, observer: &() };
    let outcome = session::run(&app.sandboxes()?, resolved, None, request)?;
    Ok(ExitCode::from(outcome.exit.code))
}

/// A directory of our own, gone when dropped.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed is a temporary file like any other.
        let _left_behind = fs_err::remove_dir_all(&self.0);
    }
}
