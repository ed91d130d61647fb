//! `sandtable run --detach`: the caller hears whether the command runs, and goes on.
//!
//! Everything that can fail before the command runs is told to the caller, with the exit code it would have
//! had otherwise.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Mutex;

use sandtable_app::config::Loaded;
use sandtable_launch::outside::detach::{Background, Role, detach};
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::observe::{Event, Observer};
use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::session::Streams;
use serde::{Deserialize, Serialize};

use super::run::{Job, attended};
use crate::app::App;
use crate::error::CliError;

/// What the caller is told.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Started { name: SandboxName },
    Failed { code: u8, text: String },
}

/// Gives one answer.
#[derive(Debug)]
struct Line(Mutex<Option<Background>>);

impl Line {
    fn answer(&self, answer: &Answer) {
        let caller = self.0.lock().ok().and_then(|mut caller| caller.take());
        if let (Some(caller), Ok(text)) = (caller, serde_json::to_vec(answer)) {
            caller.answer(&text);
        }
    }
}

impl Observer for Line {
    fn event(&self, event: &Event<'_>) {
        if let Event::Started(name) = *event {
            self.answer(&Answer::Started { name: name.clone() });
        }
    }
}

pub(crate) fn run(
    app: &App,
    loaded: &Loaded,
    resolved: ResolvedSpec,
    command: &[OsString],
) -> Result<ExitCode, CliError> {
    let warnings = resolved.warnings.clone();
    match detach().map_err(CliError::Detach)? {
        Role::Caller(caller) => {
            if !loaded.output.quiet.value {
                for warning in &warnings {
                    app.ui.warning(&warning.code, &warning.text);
                }
            }
            heard(app, &caller.answer())
        }
        Role::Background(caller) => {
            let line = Line(Mutex::new(Some(caller)));
            let job = Job { command, streams: Streams::Log };
            let ended = attended(app, loaded, resolved, &job.told(&line));
            if let Err(error) = &ended {
                let text = error.rendered(app.ui.colour);
                line.answer(&Answer::Failed { code: error.exit() as u8, text });
            }
            ended
        }
    }
}

fn heard(app: &App, answer: &[u8]) -> Result<ExitCode, CliError> {
    match serde_json::from_slice(answer).map_err(|_| CliError::NoAnswer)? {
        Answer::Started { name } => {
            app.ui.answer(&format!("{name}\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        Answer::Failed { code, text } => {
            app.ui.write(&text);
            Ok(ExitCode::from(code))
        }
    }
}
