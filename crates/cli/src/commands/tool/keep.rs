//! The tools that are kept: listed, found, removed.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use sandtable_app::workshop::depot;
use sandtable_sandbox::model::limits::Timeout;
use sandtable_sandbox::model::tool::{MadeOn, ToolRequest};
use sandtable_sandbox::session;
use sandtable_tools::depot::{Fate, Receipt};
use sandtable_tools::plan::PlanKey;
use serde::Serialize;

use crate::app::App;
use crate::commands::SCHEMA;
use crate::error::{CliError, ToolError};
use crate::ui::{escape, summary, table, tool};

/// What is kept although nobody used it for that long is removed by `tool gc`.
const UNUSED: Duration = Duration::from_hours(30 * 24);

/// What `tool ls` takes.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `tool path` takes.
#[derive(Debug, Args)]
pub(crate) struct PathArgs {
    /// A name, a name with a version, or the beginning of a key
    tool: String,
}

/// What `tool rm` takes.
#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// Names, names with versions, or beginnings of keys
    #[arg(required = true)]
    tools: Vec<String>,
}

/// What `tool gc` takes.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct GcArgs {
    /// What was not used for that long, such as 90m or 12h; 30 days when left out
    #[arg(long, value_name = "TIME")]
    max_age: Option<Timeout>,
    /// Everything that no sandbox needs, however new
    #[arg(long, conflicts_with = "max_age")]
    all: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    schema: u32,
    tools: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    version: String,
    key: String,
    files: u64,
    bytes: u64,
    made_at: u64,
    /// The image it was made on; nothing if that was no container's.
    #[serde(skip_serializing_if = "Option::is_none")]
    made_on: Option<MadeOn>,
}

#[derive(Serialize)]
struct Collected {
    schema: u32,
    removed: Vec<Gone>,
    bytes: u64,
}

#[derive(Serialize)]
struct Gone {
    tool: String,
    key: String,
    bytes: u64,
}

pub(super) fn ls(app: &App, args: &LsArgs) -> Result<ExitCode, CliError> {
    let depot = depot(app.environment())?;
    for key in depot.damaged().map_err(ToolError::from)? {
        let key = key.short();
        let text =
            format!("what is kept as {key} cannot be used any more; `sandtable tool rm {key}` removes it");
        app.ui.warning("damaged-tool", &text);
    }
    let mut kept = depot.list().map_err(ToolError::from)?;
    kept.sort_by(|a, b| (&a.name, &a.version, a.key).cmp(&(&b.name, &b.version, b.key)));
    if args.json {
        let tools = kept.iter().map(entry).collect();
        app.ui.json(&Listed { schema: SCHEMA, tools })?;
    } else {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let row = |receipt: &Receipt| {
            let age = now.saturating_sub(Duration::from_secs(receipt.made_at));
            let (name, version) = (receipt.name.to_string(), receipt.version.to_string());
            let on = receipt.made_on.as_ref();
            let on = on.map_or_else(String::new, |on| escape::line(&format!("on {on}")));
            [name, version, receipt.key.short(), tool::bytes(receipt.bytes), summary::age(age), on]
        };
        app.ui.answer(&table::aligned(&kept.iter().map(row).collect::<Vec<_>>()))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn path(app: &App, args: &PathArgs) -> Result<ExitCode, CliError> {
    let depot = depot(app.environment())?;
    let receipt = one(app, &args.tool)?;
    let path = depot.root().join("store").join(receipt.key.to_string()).join("tool");
    app.ui.answer(&format!("{path}\n"))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn rm(app: &App, args: &RmArgs) -> Result<ExitCode, CliError> {
    let depot = depot(app.environment())?;
    let damaged = depot.damaged().map_err(ToolError::from)?;
    let meant = |word: &String| match damaged.iter().filter(|key| is_meant(word, key)).collect::<Vec<_>>()[..]
    {
        [key] => Ok((*key, format!("damaged {}", key.short()))),
        _ => one(app, word).map(|found| (found.key, format!("{} {}", found.name, found.version))),
    };
    let found = args.tools.iter().map(meant).collect::<Result<Vec<_>, _>>()?;
    for (key, title) in found {
        depot.remove(key).map_err(ToolError::from)?;
        app.ui.say(&format!("removed {title}"));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn gc(app: &App, args: &GcArgs) -> Result<ExitCode, CliError> {
    let unused = match &args.max_age {
        _ if args.all => Duration::ZERO,
        Some(age) => age.duration(),
        None => UNUSED,
    };
    let fate = if args.dry_run { Fate::Listed } else { Fate::Removed };
    let removed = depot(app.environment())?.collect(&used(app)?, unused, fate).map_err(ToolError::from)?;
    let bytes = removed.iter().map(|gone| gone.bytes).sum();
    let gone = |gone: sandtable_tools::depot::Removable| Gone {
        tool: gone.title,
        key: gone.key.to_string(),
        bytes: gone.bytes,
    };
    let removed: Vec<Gone> = removed.into_iter().map(gone).collect();
    if args.json {
        app.ui.json(&Collected { schema: SCHEMA, removed, bytes })?;
    } else {
        let verb = if args.dry_run { "would go" } else { "are gone" };
        let names: Vec<String> = removed.iter().map(|gone| format!("  {}\n", gone.tool)).collect();
        let text = format!("{} tools {verb}: {}\n{}", removed.len(), tool::bytes(bytes), names.concat());
        app.ui.answer(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What sandboxes have among their mounts. They are started again, so it has to stay.
fn used(app: &App) -> Result<BTreeSet<PlanKey>, CliError> {
    let sandboxes = app.sandboxes()?;
    let mut keys = BTreeSet::new();
    for entry in session::list(&sandboxes)?.entries {
        let tools = session::inspect(&sandboxes, &entry.name).map(|seen| seen.record.resolved.tools);
        keys.extend(tools.unwrap_or_default().iter().filter_map(|tool| tool.key.parse::<PlanKey>().ok()));
    }
    Ok(keys)
}

/// Whether a word is the beginning of a key.
fn is_meant(word: &str, key: &PlanKey) -> bool {
    word.len() >= 4 && key.to_string().starts_with(word)
}

/// The kept tool that a word means.
fn one(app: &App, word: &str) -> Result<Receipt, CliError> {
    let request: Option<ToolRequest> = word.parse().ok();
    let mut found = depot(app.environment())?.list().map_err(ToolError::from)?;
    found.retain(|receipt| {
        let named =
            request.as_ref().is_some_and(|it| it.name == receipt.name && it.accepts(&receipt.version));
        named || is_meant(word, &receipt.key)
    });
    match found.len() {
        0 => Err(ToolError::NoSuchTool(word.to_owned()).into()),
        1 => Ok(found.remove(0)),
        _ => {
            let keys = found
                .iter()
                .map(|receipt| format!("{} {} {}", receipt.name, receipt.version, receipt.key.short()));
            Err(ToolError::Several { word: word.to_owned(), keys: keys.collect() }.into())
        }
    }
}

fn entry(receipt: &Receipt) -> Entry {
    Entry {
        name: receipt.name.to_string(),
        version: receipt.version.to_string(),
        key: receipt.key.to_string(),
        files: receipt.files,
        bytes: receipt.bytes,
        made_at: receipt.made_at,
        made_on: receipt.made_on.clone(),
    }
}

#[cfg(test)]
mod tests {
    use sandtable_sandbox::model::resolved::EngineName;

    use super::*;

    #[test]
    fn the_answers_have_the_shape_their_schema_promises() {
        let (name, version, key) = ("a".to_owned(), "1".to_owned(), "ab".repeat(32));
        let on = MadeOn { engine: EngineName::Docker, image: "a:1".to_owned(), id: "sha256:0".to_owned() };
        let made_on = Some(on);
        let entry = Entry { name, version, key: key.clone(), files: 1, bytes: 2, made_at: 3, made_on };
        sandtable_testkit::schema::check("tool-ls.json", &Listed { schema: SCHEMA, tools: vec![entry] });
        let gone = Gone { tool: "a 1".to_owned(), key, bytes: 2 };
        sandtable_testkit::schema::check(
            "tool-gc.json",
            &Collected { schema: SCHEMA, removed: vec![gone], bytes: 2 },
        );
    }
}
