//! Makes a tool from a plan and says what happened as one JSON object: for tests, which must not start sandboxes from a
//! process with threads.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use sandtable_sandbox::model::diagnosis::Diagnose as _;
use sandtable_sandbox::model::observe::{Event, Observer, ToolPlace, ToolStep};
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::resolved::Identity;
use sandtable_testkit::require::{is_root, say};
use sandtable_tools::build::{BuildRoot, DepsMode, Failures, Note, Provided, Workshop, provide};
use sandtable_tools::fetch::{CLIENTS, Clients};
use sandtable_tools::plan::Plan;

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(answer) => {
            let failed = answer.get("error").is_some();
            writeln!(std::io::stdout(), "{answer}").ok();
            ExitCode::from(u8::from(failed))
        }
        Err(error) => {
            say(&format!("workshop: {error}"));
            ExitCode::from(2)
        }
    }
}

/// `DEPOT PLAN [--deps MODE] [--root DIRECTORY] [--timeout SECONDS]`
fn run(words: Vec<String>) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let mut words = words.into_iter();
    let (depot, plan) = (words.next().ok_or("no depot")?, words.next().ok_or("no plan")?);
    let (mut deps, mut root, mut timeout) = (DepsMode::Store, None, None);
    while let Some(word) = words.next() {
        let value = words.next().ok_or("an option without a value")?;
        match word.as_str() {
            "--deps" => deps = value.parse()?,
            "--root" => {
                let path = HostPath::new(std::path::absolute(value)?)?;
                root = Some(BuildRoot::Tree { digest: path.to_string(), path });
            }
            "--timeout" => timeout = Some(Duration::from_secs(value.parse()?)),
            _ => return Err("an unknown option".into()),
        }
    }
    let environment = environment();
    let search = environment.get("PATH").map(|path| std::env::split_paths(path).collect::<Vec<PathBuf>>());
    let search = search.unwrap_or_default();
    let client = |name: &'static str| {
        let found = search.iter().map(|place| place.join(name)).find(|path| path.is_file())?;
        Some((name, HostPath::new(found).ok()?))
    };
    let programs = CLIENTS.into_iter().filter_map(client).collect();
    let (uid, gid) = if is_root() { (0, 0) } else { ids()? };
    let workshop = Workshop {
        depot: HostPath::new(std::path::absolute(depot)?)?,
        clients: Clients { programs, environment },
        root: root.unwrap_or_else(|| BuildRoot::here(deps)),
        deps,
        identity: Identity { uid, gid },
        jobs: 2,
        timeout,
        failures: Failures::Removed,
    };
    let plan = Plan::from_json(&fs_err::read_to_string(plan)?)?;
    Ok(match provide(&workshop, &plan, &Said) {
        Ok(provided) => success(&provided),
        Err(error) => {
            let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
            let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
            serde_json::json!({ "error": text, "code": error.code(), "remedy": error.remedy() })
        }
    })
}

fn success(provided: &Provided) -> serde_json::Value {
    let notes: Vec<String> = provided
        .notes
        .iter()
        .map(|note| match note {
            Note::Unused { tool, dependency } => format!("{tool} does not use {dependency}"),
            Note::Undeclared { tool, step, command } => format!("{tool} step {step} called {command}"),
        })
        .collect();
    serde_json::json!({
        "source": provided.tool.source.to_string(),
        "exists": provided.tool.source.as_path().is_dir(),
        "place": provided.tool.place.to_string(),
        "search": provided.tool.search.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "needs": provided.needs.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>(),
        "kept": provided.counts.kept,
        "made": provided.counts.made,
        "fetched": provided.counts.fetched,
        "notes": notes,
    })
}

/// Tells on standard error what happens.
#[derive(Debug)]
struct Said;

impl Observer for Said {
    fn event(&self, event: &Event<'_>) {
        match *event {
            Event::Fetched { file, came, .. } => say(&format!("{came:?} {file}")),
            Event::Tool { tool: ToolPlace { title, .. }, step } => say(&match step {
                ToolStep::Kept => format!("kept {title}"),
                ToolStep::Awaited => format!("waiting for {title}"),
                ToolStep::Begun { number, action, .. } => format!("step {number} of {title}: {action}"),
                ToolStep::Made => format!("made {title}"),
            }),
            _ => {}
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "clients find their configuration in it")]
fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The ids of this process.
fn ids() -> std::io::Result<(u32, u32)> {
    use std::os::unix::fs::MetadataExt as _;
    let own = fs_err::metadata("/proc/self")?;
    Ok((own.uid(), own.gid()))
}
