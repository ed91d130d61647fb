//! What the commands share: the caller, the terminal, the time.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::builder::StyledStr;
use sandtable_app::caller::{self, Caller};
use sandtable_app::config::key::closest;
use sandtable_app::env::Environment;
use sandtable_sandbox::board::Board;
use sandtable_sandbox::model::causes::chained;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::resolved::Warning;
use sandtable_sandbox::session::Sandboxes;

use crate::error::CliError;
use crate::exit::Own;
use crate::ui::style::Colour;
use crate::ui::{Ui, escape};

/// The directory itself, whatever links lead to it.
pub(crate) fn real(path: &Path) -> Result<PathBuf, CliError> {
    Ok(caller::real(path)?)
}

/// One call of the program.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) caller: Caller,
    pub(crate) ui: Ui,
    started: Instant,
}

impl App {
    pub(crate) fn new(environment: Environment) -> Self {
        let ui = Ui::new(&environment);
        Self { caller: Caller::new(environment), ui, started: Instant::now() }
    }

    pub(crate) fn environment(&self) -> &Environment {
        self.caller.environment()
    }

    /// Help, with colours where the answer goes to a terminal that has them.
    pub(crate) fn help(&self, text: &StyledStr) -> Result<(), CliError> {
        let text = match Ui::answer_colour(self.environment()) {
            Colour::Ansi => text.ansi().to_string(),
            Colour::Never => text.to_string(),
        };
        Ok(self.ui.answer(&text)?)
    }

    /// What went wrong, why, and what can be done; for the name of a sandbox that does not exist, the one most like it.
    pub(crate) fn error(&self, error: &CliError) {
        self.failure(error);
        let names = error.unknown_sandbox().and_then(|_| self.sandboxes().ok()?.names().ok());
        let names: Vec<String> = names.into_iter().flatten().map(|name| name.to_string()).collect();
        let meant = error.unknown_sandbox().and_then(|word| closest(word, names.iter().map(String::as_str)));
        if let Some(meant) = meant {
            self.ui.write(&format!("  try: did you mean `{}`?\n", escape::line(meant)));
        }
    }

    /// What went wrong, why, and what can be done.
    pub(crate) fn failure(&self, error: &CliError) {
        self.ui.write(&error.rendered(self.ui.colour));
    }

    /// Carries to its end what an earlier command left unfinished, and says so.
    pub(crate) fn recover(&self) {
        self.caller.recover(&mut |found| match found {
            Ok(found) => self.ui.warning("recovered", &crate::ui::recovered(found)),
            Err(error) => self.ui.warning("not-recovered", &chained(error)),
        });
    }

    pub(crate) fn warning(&self, warning: &Warning) {
        self.ui.warning(&warning.code, &warning.text);
    }

    /// Milliseconds since the program started.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn sandboxes(&self) -> Result<Sandboxes, CliError> {
        Ok(self.caller.sandboxes()?)
    }

    /// The recorded states.
    pub(crate) fn board(&self) -> Result<Board, CliError> {
        Ok(self.caller.board()?)
    }

    /// Does something to each of several sandboxes. One that fails does not keep the others from theirs;
    /// the code of the gravest failure is the answer.
    pub(crate) fn for_each(
        &self,
        names: &[SandboxName],
        act: impl Fn(&SandboxName) -> Result<(), CliError>,
    ) -> Option<Own> {
        let mut worst = None;
        for name in names {
            if let Err(error) = act(name) {
                worst = worst.max(Some(error.exit()));
                self.failure(&error);
            }
        }
        worst
    }
}
