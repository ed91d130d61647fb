//! `sandtable fork`: a new sandbox from any state.

use std::process::ExitCode;

use clap::Args;
use sandtable_app::config;
use sandtable_app::config::layer::Layer;
use sandtable_protocol::invocation::Terminal;
use sandtable_sandbox::board::left_out_of_all;
use sandtable_sandbox::model::observe::{Event, Observer as _};
use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::Base;
use sandtable_sandbox::session::{Request, Streams, states};

use super::target::state;
use super::{left_out, told};
use crate::app::App;
use crate::args::{Creates, SettingArgs};
use crate::error::CliError;

/// What `fork` takes.
#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// A snapshot, or a sandbox for its newest state
    #[arg(value_name = "SNAPSHOT|SANDBOX")]
    snapshot: String,
    #[command(flatten)]
    settings: SettingArgs<Creates>,
}

pub(crate) fn run(app: &App, args: ForkArgs) -> Result<ExitCode, CliError> {
    let found = state(app, &args.snapshot)?;
    let source = Setting::new(found.store.source().to_owned(), Origin::Default);
    let place = Layer { directory: Some(source), ..Layer::default() };
    let loaded = config::load(app.environment(), args.settings.layer()?.or(place))?;
    super::tool::prepared(app, &loaded)?;
    let observer = super::observer(app.ui, &loaded.output);
    let resolved = if found.store.source().is_dir() {
        app.caller.resolve(&loaded)?
    } else {
        // What was recorded is all that is left.
        observer.event(&Event::SourceReplaced);
        let resolved = app.caller.resolve_recorded(&loaded, found.store.source())?;
        ResolvedSpec { base: Setting::default_value(Base::Store), ..resolved }
    };
    app.caller.whole(resolved.source.root.as_path())?;
    let streams = Streams::Caller(Terminal::Never);
    let request = Request { command: &[], resolve_ms: app.elapsed_ms(), streams, observer: &observer };
    let name = loaded.spec.name.as_ref().map(|name| &name.value);
    let (name, outcome) = states::fork(&app.sandboxes()?, resolved, name, (&found, request))?;
    told::not_written(app, &outcome.skipped, told::Whole::Nowhere);
    told::spared(app, &outcome, told::Whole::Nowhere);
    left_out::warn(app, &left_out_of_all(&found)?);
    app.ui.say(&format!("{name} is at {}; next: sandtable exec {name} -- …", found.snapshot.id.short(12)));
    app.ui.answer(&format!("{name}\n"))?;
    Ok(ExitCode::SUCCESS)
}
