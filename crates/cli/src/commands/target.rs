//! What the words of a state command mean, with what there is to know about it on the terminal.

use sandtable_app::target;
use sandtable_sandbox::board::Found;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::session::states::Ends;

use crate::app::App;
use crate::error::CliError;

/// What a sandbox stands on and where it is.
pub(crate) fn ends(app: &App, name: &SandboxName) -> Result<Ends, CliError> {
    Ok(target::ends(&app.caller, name, &mut |warning| app.warning(&warning))?)
}

/// The state that a word means.
pub(crate) fn state(app: &App, word: &str) -> Result<Found, CliError> {
    Ok(target::state(&app.caller, word, &mut |warning| app.warning(&warning))?)
}
