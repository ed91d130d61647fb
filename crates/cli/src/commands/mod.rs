//! One file per command: its arguments, and what it does with them.

use std::process::ExitCode;

use sandtable_app::config::Output;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::session::record::{ExitOrigin, Outcome};
use sandtable_sandbox::session::{CopyNews, Watcher};

use crate::app::App;
use crate::error::CliError;
use crate::exit::Own;
use crate::report::Report;
use crate::ui::progress::ProgressLine;
use crate::ui::{Ui, escape, summary};

pub(crate) mod background;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod fork;
pub(crate) mod inspect;
mod left_out;
pub(crate) mod log;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod policy;
pub(crate) mod prune;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod snapshot;
pub(crate) mod stop;
pub(crate) mod store;
mod target;
mod told;
pub(crate) mod tool;
pub(crate) mod trust;
pub(crate) mod turn;
pub(crate) mod verify;
pub(crate) mod why;

/// The version of every answer in JSON that is not a stored record.
const SCHEMA: u32 = 1;

/// Says on the terminal what a caller wants to know while its command runs.
#[derive(Debug)]
struct Attentive {
    ui: Ui,
    /// Not for who wants it quiet.
    copy: Option<ProgressLine>,
    record: Option<ProgressLine>,
}

impl Attentive {
    fn new(ui: Ui, output: &Output) -> Self {
        let line = |what| (!output.quiet.value).then(|| ProgressLine::new(ui, what));
        Self { ui, copy: line("copying the source"), record: line("recording the source") }
    }
}

impl Watcher for Attentive {
    fn copying(&self, news: CopyNews) {
        if let Some(line) = &self.copy {
            match news {
                CopyNews::Going { files, bytes } => line.tell(files, bytes),
                CopyNews::Over => line.clear(),
            }
        }
    }

    fn fetching(&self, image: &str, line: &str) {
        if self.copy.is_some() {
            self.ui.say(&format!("fetching {}: {}", escape::name(image), escape::name(line)));
        }
    }

    fn started(&self, _: &SandboxName) {}

    fn pinned(&self, paths: usize) {
        if paths > 0 {
            let what = if paths == 1 { "one path has".to_owned() } else { format!("{paths} paths have") };
            self.ui.say(&format!("{what} changed in the source since; inside it is as it was"));
        }
    }

    fn source_replaced(&self) {
        let text = "the source is gone or was replaced; inside is its recorded state, without its git directory and \
                    files that git ignores";
        self.ui.warning("source-replaced", text);
    }

    fn unsettled(&self, why: &str) {
        let text = format!(
            "what changed in the source since is seen inside, because it could not be compared: {why}"
        );
        self.ui.warning("source-not-compared", &text);
    }

    fn recording(&self, entries: u64, bytes: u64) {
        if let Some(line) = &self.record {
            line.tell(entries, bytes);
        }
    }

    fn recorded(&self) {
        if let Some(line) = &self.record {
            line.clear();
        }
    }

    fn waiting(&self, others: usize) {
        let whom =
            if others == 1 { "one other command".to_owned() } else { format!("{others} other commands") };
        self.ui.say(&format!(
            "the command has ended; waiting for {whom} in its sandbox, Ctrl-C ends the wait and them"
        ));
    }
}

/// The end of a command: report, summary, exit code.
fn finish(
    app: &App,
    output: &Output,
    report: Option<Report>,
    outcome: &Outcome,
) -> Result<ExitCode, CliError> {
    if outcome.exit.origin == ExitOrigin::Sandbox
        && let Some(meaning) = Own::meaning(outcome.exit.code)
    {
        let program = outcome.command.first().map(|word| escape::name(word)).unwrap_or_default();
        app.ui.say(&format!("{meaning}: {program}"));
    }
    if output.quiet.value {
        // Nobody wants it so quiet that work is lost unheard.
        let lost = |code: &str| matches!(code, "not-recorded" | "left-out");
        for warning in outcome.warnings.iter().filter(|warning| lost(&warning.code)) {
            app.ui.warning(&warning.code, &warning.text);
        }
    } else {
        app.ui.write(&summary::render(outcome, output.summary.value, app.ui.colour));
    }
    report.map(|report| report.write(outcome)).transpose()?;
    Ok(ExitCode::from(outcome.exit.code))
}
