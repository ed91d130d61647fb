//! `sandtable tool install`: from a name, a recipe or a plan to a tool that is kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sandtable_app::workshop::{Manner, workshop};
use sandtable_sandbox::model::limits::Timeout;
use sandtable_sandbox::model::tool::MadeOn;
use sandtable_tools::build::{self as tools, BuildRoot, Counts, DepsMode, Failures, Note, Provided};
use sandtable_tools::plan::{Plan, ToolName, ToolVersion};
use serde::Serialize;

use super::ask::{self, Answer};
use super::engine::{self, EngineArgs, observer};
use super::which::WhichArgs;
use crate::app::App;
use crate::args::words;
use crate::commands::SCHEMA;
use crate::error::{CliError, ToolError};
use crate::ui::{escape, tool};

/// What `tool install` takes.
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    which: WhichArgs,
    #[command(flatten)]
    on: EngineArgs,
    #[command(flatten)]
    manner: MannerArgs,
    #[command(flatten)]
    answer: AnswerArgs,
}

/// How it is answered.
#[derive(Debug, Args)]
struct AnswerArgs {
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// How a tool is made.
#[derive(Debug, Args)]
pub(super) struct MannerArgs {
    /// Where dependencies come from: the store, made anew and thrown away, or only what the system has
    #[arg(long, value_name = "WHERE", default_value = "store", value_parser = words(DepsMode::ALL))]
    deps: DepsMode,
    /// Consent to a plan that did not come with the program
    #[arg(long)]
    yes: bool,
    /// Keep the place of a failed build, and say where it is
    #[arg(long)]
    keep: bool,
    /// End the steps of each tool after this time
    #[arg(long, value_name = "TIME")]
    timeout: Option<Timeout>,
}

/// What `--json` answers.
#[derive(Serialize)]
pub(super) struct Installed {
    schema: u32,
    name: ToolName,
    version: ToolVersion,
    key: String,
    /// Where it is kept; nothing where nothing is.
    path: Option<PathBuf>,
    place: String,
    search: Vec<String>,
    env: BTreeMap<String, String>,
    cache: Cache,
    notes: Vec<String>,
    /// The image it was made on; nothing if that was no container's.
    #[serde(skip_serializing_if = "Option::is_none")]
    made_on: Option<MadeOn>,
}

#[derive(Clone, Copy, Serialize)]
struct Cache {
    hit: usize,
    built: usize,
    fetched: u64,
}

impl MannerArgs {
    pub(super) fn manner(&self, root: Option<BuildRoot>) -> Manner {
        Manner {
            root: root.unwrap_or_else(|| BuildRoot::here(self.deps)),
            deps: self.deps,
            timeout: self.timeout.as_ref().map(|timeout| timeout.duration()),
            failures: if self.keep { Failures::Kept } else { Failures::Removed },
        }
    }

    pub(super) fn answer(&self) -> Answer {
        if self.yes { Answer::Yes } else { Answer::Ask }
    }

    pub(super) fn stays(&self) -> &'static str {
        tool::stays(self.deps)
    }
}

pub(super) fn run(app: &App, args: &InstallArgs) -> Result<ExitCode, CliError> {
    if args.answer.dry_run {
        let plan = args.which.plan()?;
        let on = || args.on.shown().unwrap_or_default();
        let text =
            if args.answer.json { plan.to_json() } else { tool::explained(&plan, args.manner.deps) + &on() };
        app.ui.answer(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (root, libc) = engine::root(args.on.image(app)?);
    let plan = args.which.plan_on(libc)?;
    ask::consent(app, &plan, args.manner.answer(), args.manner.stays())?;
    let (provided, installed) = make(app, &plan, args.manner.manner(root))?;
    installed.notes.iter().for_each(|note| app.ui.warning("tool-dependency", note));
    if args.answer.json {
        app.ui.json(&installed)?;
    } else {
        let Cache { hit, built, .. } = installed.cache;
        app.ui.say(&format!("cache: {hit} hit / {built} built"));
        let place = match &installed.path {
            Some(path) => escape::name(&path.to_string_lossy()),
            None => "nothing is kept".to_owned(),
        };
        app.ui.answer(&format!("{} {place}\n", escape::line(&plan.title())))?;
    }
    drop(provided);
    Ok(ExitCode::SUCCESS)
}

/// Makes a tool and says what became of it.
pub(super) fn make(app: &App, plan: &Plan, manner: Manner) -> Result<(Provided, Installed), CliError> {
    let (failures, deps) = (manner.failures, manner.deps);
    let observer = observer(app, &manner.root);
    let workshop = workshop(app.environment(), manner)?;
    let provided = tools::provide(&workshop, plan, &observer);
    observer.clear();
    if provided.is_err() && failures == Failures::Kept {
        let place = workshop.depot.join("store");
        app.ui.say(&format!(
            "what it left is in a `.partial` directory of {}",
            escape::name(&place.to_string())
        ));
    }
    let provided = provided.map_err(ToolError::from)?;
    let installed = installed(&provided, deps);
    Ok((provided, installed))
}

fn installed(provided: &Provided, deps: DepsMode) -> Installed {
    let Counts { kept, made, fetched } = provided.counts;
    let tool = &provided.tool;
    Installed {
        schema: SCHEMA,
        name: tool.name.clone(),
        version: tool.version.clone(),
        key: tool.key.clone(),
        path: (deps != DepsMode::Isolated).then(|| tool.source.as_path().to_owned()),
        place: tool.place.to_string(),
        search: tool.search.iter().map(ToString::to_string).collect(),
        env: tool.env.clone(),
        cache: Cache { hit: kept, built: made, fetched },
        notes: provided.notes.iter().map(note).collect(),
        made_on: tool.made_on.clone(),
    }
}

fn note(note: &Note) -> String {
    match note {
        Note::Unused { tool, dependency } => {
            format!("{tool} declares `{dependency}`, and nothing of it was used")
        }
        Note::Undeclared { tool, step, command } => {
            format!("step {step} of {tool} called `{command}`, which is not a declared dependency")
        }
    }
}

#[cfg(test)]
mod tests {
    use sandtable_sandbox::model::resolved::EngineName;

    use super::*;

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        let answer = Installed {
            schema: SCHEMA,
            name: "ninja".parse().expect("a name"),
            version: "1.13.2".parse().expect("a version"),
            key: "ab".repeat(32),
            path: Some("/d/tools/store/ab/tool".into()),
            place: "/opt/sandtable/tools/ninja-1.13.2".to_owned(),
            search: vec!["/opt/sandtable/tools/ninja-1.13.2/bin".to_owned()],
            env: BTreeMap::new(),
            cache: Cache { hit: 1, built: 2, fetched: 3 },
            notes: vec![note(&Note::Unused { tool: "a".to_owned(), dependency: "b".to_owned() })],
            made_on: Some(MadeOn {
                engine: EngineName::Podman,
                image: "localhost/base:1".to_owned(),
                id: "cd".repeat(32),
            }),
        };
        sandtable_testkit::schema::check("tool-install.json", &answer);
    }
}
