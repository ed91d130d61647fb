//! Making what a sandbox asks for before it starts.

use sandtable_app::config::Loaded;
use sandtable_app::workshop::{missing, workshop_of};
use sandtable_tools::build::provide;

use crate::app::App;
use crate::error::{CliError, ToolError};
use crate::ui::observer::{TerminalObserver, Verbosity};

/// Makes the tools that a sandbox asks for and that are not there yet.
pub(crate) fn prepared(app: &App, loaded: &Loaded) -> Result<(), CliError> {
    if loaded.output.dry_run.value {
        return Ok(());
    }
    for plan in missing(app.environment(), &loaded.spec)? {
        let observer = TerminalObserver::new(app.ui, Verbosity::Normal);
        provide(&workshop_of(app.environment(), &loaded.spec)?, &plan, &observer).map_err(ToolError::from)?;
    }
    Ok(())
}
