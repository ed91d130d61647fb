//! `sandtable events`: what happened to sandboxes, and every operation on a recorded state.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use sandtable_sandbox::board::{Telling, Told};
use sandtable_sandbox::session::events::{Event, Events};

use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ui::{escape, summary, time};

/// What `events` takes.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Go on with what happens from now on
    #[arg(short, long)]
    follow: bool,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

/// How long to wait for more.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) fn run(app: &App, args: &EventsArgs) -> Result<ExitCode, CliError> {
    let mut events = Events::new(&app.sandboxes()?);
    let mut telling = Telling::new(app.board()?);
    loop {
        let mut lines = Vec::new();
        for event in events.take()? {
            let line = if args.json { json(&event)? } else { rendered(&event) };
            lines.push((event.at_ms, line));
        }
        for told in telling.take()? {
            let line = if args.json { json(&told)? } else { rendered_operation(&told) };
            lines.push((told.at_ms, line));
        }
        lines.sort_by_key(|(at, _)| *at);
        for (_, line) in lines {
            app.ui.answer(&format!("{line}\n"))?;
        }
        if !args.follow {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(PAUSE);
    }
}

fn json(value: &impl Serialize) -> Result<String, CliError> {
    serde_json::to_string(value).map(|text| escape::json(&text)).map_err(CliError::Json)
}

/// What was done, to whom, and where it led.
fn rendered_operation(told: &Told) -> String {
    let snapshot = told.snap_sha.as_deref().map_or("-", |id| id.get(..12).unwrap_or(id));
    let (kind, actor) = (escape::name(told.kind.as_str()), escape::name(&told.actor));
    let line = format!("{}  {kind:8}  {actor}  {}", time::utc(told.at_ms), escape::name(snapshot));
    match &told.proof {
        Some(proof) => format!("{line}  proof {}", escape::name(proof.get(..12).unwrap_or(proof))),
        None => line,
    }
}

fn rendered(event: &Event) -> String {
    let mut line = format!("{}  {:8}  {}", time::utc(event.at_ms), event.event.word(), event.name);
    let exit = event.exit.map(summary::exit);
    let error = event.error.as_deref().map(escape::line);
    let command = event.command.as_deref().map(escape::command);
    for word in [exit, error, command].into_iter().flatten() {
        line.push_str("  ");
        line.push_str(&word);
    }
    line
}

#[cfg(test)]
mod tests {
    use sandtable_sandbox::board::Payload;
    use sandtable_sandbox::session::events::EventKind;
    use sandtable_sandbox::session::record::{Exit, ExitOrigin};

    use sandtable_sandbox::board::OperationKind;

    use super::*;

    fn event() -> Event {
        Event {
            schema: 1,
            at_ms: 1_800_000_000_000,
            event: EventKind::Ended,
            sandbox: "0f".to_owned(),
            name: "keen-otter-4f2k".parse().expect("a name"),
            command: Some(vec!["sh".to_owned(), "\u{1b}c".to_owned()]),
            exit: Some(Exit { code: 7, signal: None, origin: ExitOrigin::Command }),
            error: None,
        }
    }

    #[test]
    fn a_line_has_the_shape_its_schema_promises() {
        sandtable_testkit::schema::check("events.json", &event());
        let created = Event { event: EventKind::Created, command: None, exit: None, ..event() };
        sandtable_testkit::schema::check("events.json", &created);
        let failed =
            Event { event: EventKind::Failed, exit: None, error: Some("lost".to_owned()), ..event() };
        sandtable_testkit::schema::check("events.json", &failed);
    }

    fn told() -> Told {
        Told {
            schema: 1,
            op_id: "0f".repeat(32),
            at_ms: 1_800_000_000_000,
            kind: OperationKind::Verify,
            actor: "sandbox 0f".to_owned(),
            causality: None,
            snap_sha: Some("4b825dc642cb6eb9a060e54bf8d69288fbee4904".to_owned()),
            payload: Payload {
                source: "/r\u{1b}".to_owned(),
                number: 1,
                before: None,
                target: None,
                details: serde_json::json!({ "proof": "ab" }),
            },
            proof: Some("ab".repeat(32)),
        }
    }

    #[test]
    fn an_operation_has_the_shape_its_schema_promises() {
        sandtable_testkit::schema::check("events.json", &told());
        let plain = Told { snap_sha: None, proof: None, causality: Some("0f".repeat(32)), ..told() };
        sandtable_testkit::schema::check("events.json", &plain);
        insta::assert_snapshot!(rendered_operation(&told()), @"2027-01-15T08:00:00.000Z  verify    sandbox 0f  4b825dc642cb  proof abababababab");
    }

    #[test]
    fn people_see_one_harmless_line() {
        insta::assert_snapshot!(rendered(&event()), @r"2027-01-15T08:00:00.000Z  ended     keen-otter-4f2k  exit 7  sh '\u{1b}c'");
    }
}
