//! `sandtable ls`: the sandboxes there are.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use sandtable_sandbox::model::diagnosis::Diagnose as _;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::session::record::Exit;
use sandtable_sandbox::session::{self, LayerSize, ListedSandbox, Listing, State};
use serde::Serialize;

use super::SCHEMA;
use crate::app::App;
use crate::error::CliError;
use crate::ui::{escape, summary, table};

/// What `ls` takes.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Answer as JSON
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
    /// Names only
    #[arg(short, long)]
    quiet: bool,
}

/// What `--json` answers.
#[derive(Serialize)]
struct Answer<'a> {
    schema: u32,
    sandboxes: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a SandboxName,
    state: State,
    created_at: u64,
    source: &'a HostPath,
    command: &'a [String],
    exit: Option<Exit>,
    size: LayerSize,
}

pub(crate) fn run(app: &App, args: &LsArgs) -> Result<ExitCode, CliError> {
    let Listing { entries, unreadable } = session::list(&app.sandboxes()?)?;
    for error in &unreadable {
        app.ui.warning(error.code(), &error.to_string());
    }
    if args.json {
        app.ui.json(&Answer { schema: SCHEMA, sandboxes: entries.iter().map(row).collect() })?;
    } else if args.quiet {
        let names: Vec<[String; 1]> = entries.iter().map(|entry| [entry.name.to_string()]).collect();
        app.ui.answer(&table::aligned(&names))?;
    } else {
        app.ui.answer(&rendered(&entries, SystemTime::now()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(entry: &ListedSandbox) -> Row<'_> {
    Row {
        name: &entry.name,
        state: entry.state,
        created_at: entry.created_at,
        source: &entry.source,
        command: &entry.command,
        exit: entry.exit,
        size: entry.size,
    }
}

fn rendered(entries: &[ListedSandbox], now: SystemTime) -> String {
    let head = ["NAME", "STATE", "EXIT", "AGE", "SIZE", "SOURCE", "COMMAND"].map(str::to_owned);
    let cells = |entry: &ListedSandbox| {
        [
            entry.name.to_string(),
            entry.state.to_string(),
            entry.exit.map_or_else(|| "-".to_owned(), |exit| exit.code.to_string()),
            age(entry.created_at, now),
            summary::size(entry.size),
            escape::name(&entry.source.to_string()),
            shortened(&escape::command(&entry.command)),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(entries.iter().map(cells)).collect();
    table::aligned(&rows)
}

fn age(created_at: u64, now: SystemTime) -> String {
    let made = SystemTime::UNIX_EPOCH + Duration::from_secs(created_at);
    now.duration_since(made).map_or_else(|_| "-".to_owned(), summary::age)
}

fn shortened(text: &str) -> String {
    const WIDTH: usize = 40;
    match text.char_indices().nth(WIDTH) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use sandtable_sandbox::session::record::ExitOrigin;

    use super::*;

    fn entries() -> [ListedSandbox; 2] {
        let entry = |name: &str, exit: Option<u8>, command: &[&str]| ListedSandbox {
            name: name.parse().expect("a name"),
            state: if exit.is_some() { State::Stopped } else { State::Running },
            created_at: 1000,
            source: HostPath::new("/home/u/repo").expect("absolute"),
            command: command.iter().map(|&word| word.to_owned()).collect(),
            exit: exit.map(|code| Exit { code, signal: None, origin: ExitOrigin::Command }),
            size: LayerSize { bytes: if exit.is_some() { 20 << 20 } else { 4096 }, complete: exit.is_some() },
        };
        [
            entry("keen-otter-4f2k", Some(7), &["sh", "-c", "echo \u{1b}[2J\nrm -rf src"]),
            entry("try", None, &["make", "a-target-with-a-very-long-name-indeed", "and-more"]),
        ]
    }

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        let entries = entries();
        let answer = Answer { schema: SCHEMA, sandboxes: entries.iter().map(row).collect() };
        sandtable_testkit::schema::check("ls.json", &answer);
    }

    #[test]
    fn a_line_per_sandbox_and_no_line_breaks_from_inside() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 + 3 * 3600);
        insta::assert_snapshot!(rendered(&entries(), now), @r"
        NAME             STATE    EXIT  AGE  SIZE     SOURCE        COMMAND
        keen-otter-4f2k  stopped  7     3 h  20 MiB   /home/u/repo  sh -c 'echo \u{1b}[2J\nrm -rf src'
        try              running  -     3 h  ≥4096 B  /home/u/repo  make a-target-with-a-very-long-name-inde…
        ");
    }
}
