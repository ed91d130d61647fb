//! What the words of a state command mean: a sandbox, a directory, or a snapshot.

use std::path::{Path, PathBuf};

use sandtable_sandbox::board::Found;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::session::states;

use crate::app::{App, real};
use crate::error::CliError;

/// What has states.
#[derive(Debug)]
pub(crate) enum Target {
    Sandbox(SandboxName),
    Directory(PathBuf),
}

impl Target {
    /// A sandbox of that name, else a directory; nothing is the source around the current directory.
    pub(crate) fn of(app: &App, word: Option<&str>) -> Result<Self, CliError> {
        let Some(word) = word else { return Ok(Self::Directory(app.source(None)?)) };
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

/// The state that a word means: the newest of a sandbox, or a snapshot by the beginning of its id.
pub(crate) fn state(app: &App, word: &str) -> Result<Found, CliError> {
    match sandbox(app, word)? {
        Some(name) => Ok(states::newest(&app.sandboxes()?, &name)?),
        None => Ok(app.board()?.snapshot(word)?),
    }
}
