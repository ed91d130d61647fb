//! Asking for consent to a plan that did not come with the program: on a terminal, once for each plan.

use std::io::{self, BufRead as _, IsTerminal as _};

use sandtable_tools::consent::{Consents, Question};
use sandtable_tools::plan::Plan;

use crate::app::App;
use crate::error::{CliError, ToolError};
use crate::ui::tool;

/// How the answer is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Said on the command line.
    Yes,
    /// To be asked for, where there is somebody to ask.
    Ask,
}

/// Goes on only if the plan came with the program or somebody consented to it, now or before.
pub(crate) fn consent(app: &App, plan: &Plan, answer: Answer, stays: &str) -> Result<(), CliError> {
    let Some(question) = Question::about(plan) else { return Ok(()) };
    let consents = Consents::new(app.environment().data()?.as_path());
    if consents.has(question.digest).map_err(ToolError::from)? {
        return Ok(());
    }
    app.ui.write(&tool::question(plan, &question, stays));
    let refused = || CliError::from(ToolError::NoConsent(plan.title()));
    if answer == Answer::Ask {
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(refused());
        }
        app.ui.write("sandtable: fetch and run this, inside a sandbox? [y/N] ");
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(|_| refused())?;
        if !matches!(line.trim(), "y" | "Y" | "yes") {
            return Err(refused());
        }
    }
    Ok(consents.give(&question).map_err(ToolError::from)?)
}
