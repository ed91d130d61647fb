//! What the words of a state command mean: a sandbox, a directory, or a snapshot.

use std::path::{Path, PathBuf};

use sandtable_sandbox::board::Found;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::session::record::DriftEntry;
use sandtable_sandbox::session::states::{self, Ends, Lacking};

use crate::app::{App, real};
use crate::error::CliError;
use crate::ui::escape;

/// How many paths a warning names.
const NAMED: usize = 5;

/// What has states.
#[derive(Debug)]
pub(crate) enum Target {
    Sandbox(SandboxName),
    Directory(PathBuf),
}

impl Target {
    /// A sandbox of that name, else a directory; nothing is the source around the current directory.
    pub(crate) fn of(app: &App, word: Option<&str>) -> Result<Self, CliError> {
        let Some(word) = word else { return Ok(Self::Directory(app.caller.source(None)?)) };
        if let Some(name) = sandbox(app, word)? {
            return Ok(Self::Sandbox(name));
        }
        if word.contains('/') || Path::new(word).is_dir() {
            return Ok(Self::Directory(real(Path::new(word))?));
        }
        Err(CliError::NoTarget { word: word.to_owned() })
    }
}

/// The sandbox of that name, if there is one.
pub(crate) fn sandbox(app: &App, word: &str) -> Result<Option<SandboxName>, CliError> {
    let Ok(name) = word.parse::<SandboxName>() else { return Ok(None) };
    Ok(app.sandboxes()?.has(&name).then_some(name))
}

/// What a sandbox stands on and where it is. What its newest state leaves out is said.
pub(crate) fn ends(app: &App, name: &SandboxName) -> Result<Ends, CliError> {
    app.caller.whole_sandbox(name)?;
    let ends = states::ends(&app.sandboxes()?, name)?;
    if ends.lacking == Lacking::Running {
        app.ui.warning("still-running", &running(name));
    }
    if !ends.moved.is_empty() {
        app.ui.warning("base-recorded-late", &late(name, &ends.moved));
    }
    Ok(ends)
}

fn running(name: &SandboxName) -> String {
    format!(
        "a command runs in {name}: what it did since the newest recorded state is left out; `sandtable snapshot {name}` \
         records it"
    )
}

fn late(name: &SandboxName, moved: &[DriftEntry]) -> String {
    let named: Vec<String> =
        moved.iter().take(NAMED).map(|entry| format!("`{}`", escape::line(&entry.path))).collect();
    let more = if moved.len() > NAMED { format!(" and {} more", moved.len() - NAMED) } else { String::new() };
    format!(
        "what {name} was made on was recorded afterwards, when its source had changed in {}{more}: of these only what they \
         are now is known",
        named.join(", ")
    )
}

/// The state that a word means: the newest of a sandbox, or a snapshot by the beginning of its id.
pub(crate) fn state(app: &App, word: &str) -> Result<Found, CliError> {
    match sandbox(app, word)? {
        Some(name) => Ok(ends(app, &name)?.into_newest()),
        None => Ok(app.board()?.snapshot(word)?),
    }
}
