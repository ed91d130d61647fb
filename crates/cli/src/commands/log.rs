//! `sandtable log`: what was recorded, newest first.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use sandtable_app::target::Target;
use sandtable_sandbox::board::{
    Board, Descendant, Filter, ObjectId, Operation, OperationKind, Store, Subject, history,
};
use sandtable_sandbox::model::causes::chained;
use sandtable_sandbox::model::diagnosis::Diagnose as _;
use sandtable_sandbox::session::{self, states};
use serde::Serialize;

use super::SCHEMA;
use crate::app::App;
use crate::error::CliError;
use crate::ui::graph::Graph;
use crate::ui::{escape, table, time};

/// What `log` takes.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// A sandbox or a directory; everything of the source around the current directory if not given
    #[arg(value_name = "SANDBOX|DIR")]
    target: Option<String>,
    /// Draw which snapshot was made from which, instead of listing operations
    #[arg(long, conflicts_with = "json")]
    graph: bool,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` answers.
#[derive(Serialize)]
struct Answer {
    schema: u32,
    operations: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    number: i64,
    at_ms: u64,
    operation: OperationKind,
    subject: String,
    before: Option<ObjectId>,
    after: Option<ObjectId>,
    message: Option<String>,
    details: String,
}

pub(crate) fn run(app: &App, args: &LogArgs) -> Result<ExitCode, CliError> {
    let board = app.board()?;
    let (store, subject) = match &args.target {
        None => {
            let source = app.caller.source(None)?;
            recorded(app, &source)?;
            (of_source(&board, &source)?, None)
        }
        Some(word) => match Target::of(&app.caller, Some(word))? {
            Target::Directory(path) => {
                (board.head_of(&path)?.store, Some(Subject::directory(&path).to_string()))
            }
            Target::Sandbox(name) => {
                let found = session::inspect(&app.sandboxes()?, &name)?;
                let source = found.record.resolved.source.root.as_path().to_owned();
                recorded(app, &source)?;
                (of_source(&board, &source)?, Some(Subject::sandbox(&found.record.sandbox).to_string()))
            }
        },
    };
    if args.graph {
        app.ui.answer(&drawn(&history(&store, subject.as_deref())?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let filter = Filter { subject, ..Filter::default() };
    let operations = store.meta().operations(&filter).map_err(board_error)?;
    let rows: Vec<Row> = operations.iter().rev().map(|operation| row(&store, operation)).collect();
    if args.json {
        app.ui.json(&Answer { schema: SCHEMA, operations: rows })?;
    } else {
        app.ui.answer(&rendered(&rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What no state has yet is recorded first. What cannot be is named, and hides nothing that is.
fn recorded(app: &App, source: &std::path::Path) -> Result<(), CliError> {
    for states::Unrecorded { error, .. } in states::record_all(&app.sandboxes()?, source)? {
        app.ui.warning(error.code(), &chained(&error));
    }
    Ok(())
}

fn of_source(board: &Board, source: &std::path::Path) -> Result<Store, CliError> {
    let none = || sandtable_sandbox::board::BoardError::NoStates(source.to_owned());
    Ok(board.of_source(source)?.ok_or_else(none)?)
}

fn board_error(error: impl Into<sandtable_sandbox::board::BoardError>) -> CliError {
    error.into().into()
}

fn row(store: &Store, operation: &Operation) -> Row {
    let message = operation.after.and_then(|id| store.meta().snapshot(&id).ok()).map(|found| found.message);
    Row {
        number: operation.number,
        at_ms: millis(operation.at()),
        operation: operation.kind.clone(),
        subject: operation.subject.clone(),
        before: operation.before,
        after: operation.after,
        message,
        details: operation.details.clone(),
    }
}

fn millis(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// One line for each snapshot, beside the lines of descent.
fn drawn(snapshots: &[Descendant]) -> String {
    let mut graph = Graph::new();
    let mut lines = Vec::new();
    for Descendant { snapshot, parents, operation } in snapshots {
        let mut columns = graph.next(snapshot.id, parents);
        let own = columns.pop().unwrap_or_default();
        lines.extend(columns);
        let words = [
            own,
            snapshot.id.short(12),
            time::utc(millis(snapshot.at)),
            escape::name(operation),
            escape::name(&snapshot.subject),
            escape::line(snapshot.message.trim_end()),
        ];
        lines.push(words.join("  "));
    }
    lines.iter().map(|line| [line.as_str(), "\n"].concat()).collect()
}

fn rendered(rows: &[Row]) -> String {
    let head = ["SNAPSHOT", "WHEN", "OPERATION", "OF", "MESSAGE"].map(str::to_owned);
    let cells = |row: &Row| {
        [
            row.after.map_or_else(|| "-".to_owned(), |id| id.short(12)),
            time::utc(row.at_ms),
            escape::name(row.operation.as_str()),
            escape::name(&row.subject),
            escape::line(row.message.as_deref().unwrap_or("-")),
        ]
    };
    let all: Vec<_> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    table::aligned(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            number: 2,
            at_ms: 1_800_000_000_000,
            operation: OperationKind::Run,
            subject: "sandbox 0f".to_owned(),
            before: None,
            after: Some("4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse().expect("an id")),
            message: Some("\u{1b}[2J\nrun".to_owned()),
            details: "{}".to_owned(),
        }
    }

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        let gone = Row { after: None, message: None, ..row() };
        sandtable_testkit::schema::check(
            "log.json",
            &Answer { schema: SCHEMA, operations: vec![row(), gone] },
        );
    }

    #[test]
    fn a_line_each_and_nothing_that_moves_the_cursor() {
        insta::assert_snapshot!(rendered(&[row()]), @r"
        SNAPSHOT      WHEN                      OPERATION  OF          MESSAGE
        4b825dc642cb  2027-01-15T08:00:00.000Z  run        sandbox 0f  \u{1b}[2J\nrun
        ");
    }
}
