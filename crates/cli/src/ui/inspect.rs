//! A sandbox for people: what it is, how its last command ended, what differs from the source.

use sandtable_protocol::report::Observed;
use sandtable_sandbox::session::record::{Outcome, Record};

use super::policy::indented;
use super::{escape, summary, table};

/// What `inspect` shows without `--json`.
pub(crate) fn render(record: &Record, state: &str, outcome: Option<&Outcome>) -> String {
    let cell = |name: &str, value: String| [name.to_owned(), value];
    let resolved = &record.resolved;
    let mut rows = vec![
        cell("name", record.name.to_string()),
        cell("id", escape::line(&record.sandbox)),
        cell("state", state.to_owned()),
        cell("engine", format!("{} ({})", resolved.engine, escape::line(&resolved.engine_reason))),
        cell("source", escape::name(&resolved.source.root.to_string())),
        cell("directory", escape::name(&resolved.directory.to_string())),
        cell("network", resolved.network.value.to_string()),
        cell("made for", escape::command(&record.command)),
    ];
    let Some(outcome) = outcome else { return table::aligned(&rows) };
    rows.push(cell("last command", escape::command(&outcome.command)));
    rows.push(cell("ended", summary::exit(outcome.exit)));
    rows.push(cell("took", summary::duration(summary::total(outcome.timings_ms))));
    let mut out = table::aligned(&rows);
    if let Some(changes) = &outcome.changes {
        out.push_str("\nchanges\n");
        let lines = summary::lines(changes);
        out.extend(lines.iter().map(|line| format!("  {} {}\n", line.letter, line.path)));
    }
    out.push_str("\nenforcement\n");
    let controls = outcome.enforcement.iter().map(|(control, observed)| {
        let (state, why) = match observed {
            Observed::Enforced => ("enforced", ""),
            Observed::Watched { how } => ("watched", how.as_str()),
            Observed::Partial { why } => ("partial", why.as_str()),
            Observed::Absent { why } => ("absent", why.as_str()),
        };
        [control.to_string(), state.to_owned(), escape::line(why)]
    });
    let controls: Vec<[String; 3]> = controls.collect();
    out.push_str(&indented(&table::aligned(&controls)));
    out
}
