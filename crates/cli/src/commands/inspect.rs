//! `sandtable inspect`: what a sandbox is, and what its last command did.

use std::process::ExitCode;

use clap::Args;
use sandtable_app::redaction;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::session::record::{Outcome, Record};
use sandtable_sandbox::session::{self, State};
use serde::Serialize;

use super::SCHEMA;
use crate::app::App;
use crate::error::CliError;
use crate::ui::inspect;

/// What `inspect` takes.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The sandbox
    name: SandboxName,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` answers.
#[derive(Serialize)]
struct Answer<'a> {
    schema: u32,
    state: State,
    record: Record,
    outcome: Option<&'a Outcome>,
}

impl<'a> Answer<'a> {
    fn of(state: State, record: &Record, outcome: Option<&'a Outcome>) -> Self {
        let resolved = redaction::redacted(&record.resolved);
        Self { schema: SCHEMA, state, record: Record { resolved, ..record.clone() }, outcome }
    }
}

pub(crate) fn run(app: &App, args: &InspectArgs) -> Result<ExitCode, CliError> {
    let found = session::inspect(&app.sandboxes()?, &args.name)?;
    let outcome = found.outcome.as_ref();
    if args.json {
        app.ui.json(&Answer::of(found.state, &found.record, outcome))?;
    } else {
        app.ui.answer(&inspect::render(&found.record, found.state.word(), outcome))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::summary::tests::{busy, outcome};
    use sandtable_testkit::fixtures::{resolved, spec};

    fn record() -> Record {
        Record {
            schema: 1,
            sandbox: "0f".to_owned(),
            name: "keen-otter-4f2k".parse().expect("a name"),
            created_at: 1000,
            id_base: Some(1 << 20),
            command: vec!["sh".to_owned(), "-c".to_owned(), "\u{1b}c".to_owned()],
            resolved: resolved(&spec()),
        }
    }

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        for outcome in [None, Some(outcome()), Some(busy())] {
            sandtable_testkit::schema::check(
                "inspect.json",
                &Answer::of(State::Stopped, &record(), outcome.as_ref()),
            );
        }
    }

    #[test]
    fn a_variable_whose_name_says_secret_is_not_in_the_answer() {
        let json = serde_json::to_string(&Answer::of(State::Stopped, &record(), None)).expect("plain data");
        assert!(!json.contains("ghp_123") && json.contains("GH_TOKEN"), "{json}");
    }

    #[test]
    fn people_see_what_it_is_and_what_it_did() {
        insta::assert_snapshot!(inspect::render(&record(), "stopped", Some(&busy())), @r"
        name          keen-otter-4f2k
        id            0f
        state         stopped
        engine        native (the only one here)
        source        /repo
        directory     /repo/sub
        network       host
        made for      sh -c '\u{1b}c'
        last command  true
        ended         exit 0
        took          41 ms

        changes
          M README
          A d/f
          A empty/
          D src/ (3 files)
          P run.sh (mode)
          T link (now a symlink)
          D /data/src/x

        enforcement
          network-namespace  absent    the host's network was asked for
          seccomp            enforced
        ");
    }
}
