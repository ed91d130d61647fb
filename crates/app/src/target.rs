//! What the words of a request about states mean: a sandbox, a directory, or a snapshot.

use std::path::{Path, PathBuf};

use sandtable_sandbox::board::Found;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::resolved::Warning;
use sandtable_sandbox::session;
use sandtable_sandbox::session::record::DriftEntry;
use sandtable_sandbox::session::states::{self, Ends, Lacking};

use crate::caller::{Caller, CallerError, real};

/// How many paths a warning names.
const NAMED: usize = 5;

/// What has states.
#[derive(Debug)]
pub enum Target {
    Sandbox(SandboxName),
    Directory(PathBuf),
}

impl Target {
    /// A sandbox of that name, else a directory; nothing is the source around the current directory.
    pub fn of(caller: &Caller, word: Option<&str>) -> Result<Self, CallerError> {
        let Some(word) = word else { return Ok(Self::Directory(caller.source(None)?)) };
        if let Some(name) = sandbox(caller, word)? {
            return Ok(Self::Sandbox(name));
        }
        if word.contains('/') || Path::new(word).is_dir() {
            return Ok(Self::Directory(real(Path::new(word))?));
        }
        Err(CallerError::NoTarget { word: word.to_owned() })
    }
}

/// The sandbox of that name, if there is one.
pub fn sandbox(caller: &Caller, word: &str) -> Result<Option<SandboxName>, CallerError> {
    let Ok(name) = word.parse::<SandboxName>() else { return Ok(None) };
    Ok(caller.sandboxes()?.has(&name).then_some(name))
}

/// Hears what somebody should know beside the answer.
pub type Tell<'a> = &'a mut dyn FnMut(Warning);

/// What a sandbox stands on and where it is. What its newest state leaves out is told.
pub fn ends(caller: &Caller, name: &SandboxName, tell: Tell<'_>) -> Result<Ends, CallerError> {
    caller.whole_sandbox(name)?;
    let ends = states::ends(&caller.sandboxes()?, name)?;
    if ends.lacking == Lacking::Running {
        tell(Warning::new("still-running", running(name)));
    }
    if !ends.moved.is_empty() {
        tell(Warning::new("base-recorded-late", late(name, &ends.moved)));
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
    let named: Vec<String> = moved.iter().take(NAMED).map(|entry| format!("`{}`", entry.path)).collect();
    let more = if moved.len() > NAMED { format!(" and {} more", moved.len() - NAMED) } else { String::new() };
    format!(
        "what {name} was made on was recorded afterwards, when its source had changed in {}{more}: of these only what they \
         are now is known",
        named.join(", ")
    )
}

/// The state that a word means: the newest of a sandbox, or a snapshot by the beginning of its id.
pub fn state(caller: &Caller, word: &str, tell: Tell<'_>) -> Result<Found, CallerError> {
    match sandbox(caller, word)? {
        Some(name) => Ok(ends(caller, &name, tell)?.into_newest()),
        None => Ok(caller.board()?.snapshot(word)?),
    }
}

/// The sandbox of the source around the current directory that was made last.
pub fn newest(caller: &Caller) -> Result<SandboxName, CallerError> {
    let root = caller.source(None)?;
    session::newest(&caller.sandboxes()?, &root)?.ok_or(CallerError::NoSandbox { root })
}
