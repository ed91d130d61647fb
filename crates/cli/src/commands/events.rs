//! `sandtable events`: what happened to sandboxes.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use sandtable_sandbox::session::events::{Event, Events};

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
    loop {
        for event in events.take()? {
            let line = if args.json {
                serde_json::to_string(&event).map_err(CliError::Json)?
            } else {
                rendered(&event)
            };
            app.ui.answer(&format!("{line}\n"))?;
        }
        if !args.follow {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(PAUSE);
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
    use sandtable_sandbox::session::events::EventKind;
    use sandtable_sandbox::session::record::{Exit, ExitOrigin};

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
        crate::schema::check("events.json", &event());
        let created = Event { event: EventKind::Created, command: None, exit: None, ..event() };
        crate::schema::check("events.json", &created);
        let failed =
            Event { event: EventKind::Failed, exit: None, error: Some("lost".to_owned()), ..event() };
        crate::schema::check("events.json", &failed);
    }

    #[test]
    fn people_see_one_harmless_line() {
        insta::assert_snapshot!(rendered(&event()), @r"2027-01-15T08:00:00.000Z  ended     keen-otter-4f2k  exit 7  sh '\u{1b}c'");
    }
}
