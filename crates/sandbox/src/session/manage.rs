//! Looking at sandboxes and stopping them. Every listing clears away what dead supervisors left.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use sandtable_launch::outside::attach;
use sandtable_store::size::{Size, measure};
use serde::{Deserialize, Serialize};

use super::directory::{SandboxDirectory, Sandboxes};
use super::error::SessionError;
use super::record::{Exit, Outcome, Record};
use crate::model::choice::choice;
use crate::model::id::SandboxName;
use crate::model::layout::LayerPart;
use crate::model::mount::Content;
use crate::model::path::HostPath;
use crate::model::resolved::ResolvedSpec;
use crate::model::spec::Lifetime;
use crate::os;

choice! {
    /// Running means that its lock is held, interrupted that its supervisor died.
    State { Running = "running", Stopped = "stopped", Interrupted = "interrupted" }
}

/// One sandbox in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedSandbox {
    pub name: SandboxName,
    pub state: State,
    /// Seconds since 1970.
    pub created_at: u64,
    pub source: HostPath,
    pub command: Vec<String>,
    /// How the last command ended, if one did.
    pub exit: Option<Exit>,
    /// What the sandbox takes on disk.
    pub size: LayerSize,
}

/// What layers and private home take on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerSize {
    pub bytes: u64,
    /// False when there is more than was looked at.
    pub complete: bool,
}

/// All sandboxes.
#[derive(Debug, Default)]
pub struct Listing {
    pub entries: Vec<ListedSandbox>,
    /// Why some are missing: records that are lost, broken or of another version, or that may not be read. They must
    /// not hide the others.
    pub unreadable: Vec<SessionError>,
}

/// Everything known about a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    pub state: State,
    pub record: Record,
    pub outcome: Option<Outcome>,
}

/// How many files are looked at for the size of one part of a sandbox.
const MOST_ENTRIES: usize = 2000;
/// How long the lock may take to become free after the end.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// All sandboxes, after clearing away what dead supervisors left.
pub fn list(sandboxes: &Sandboxes) -> Result<Listing, SessionError> {
    sandboxes.reap()?;
    let mut listing = Listing::default();
    for name in sandboxes.names()? {
        match entry(&sandboxes.at(&name), name) {
            Ok(found) => listing.entries.extend(found),
            // Removed by somebody else in the meantime.
            Err(SessionError::Unknown(_)) => {}
            Err(error) => listing.unreadable.push(error),
        }
    }
    Ok(listing)
}

/// The line of one sandbox, unless it only waited to be cleared away.
fn entry(directory: &SandboxDirectory, name: SandboxName) -> Result<Option<ListedSandbox>, SessionError> {
    if directory.is_damaged() {
        return Err(SessionError::damaged(directory));
    }
    let record = directory.read_record()?;
    let state = state(directory)?;
    if record.resolved.lifetime.value == Lifetime::Discard && state != State::Running {
        return reap(directory).map(|()| None);
    }
    let exit = directory.read_outcome()?.map(|outcome| outcome.exit);
    let size = size(directory, &record.resolved);
    let Record { created_at, command, resolved, .. } = record;
    Ok(Some(ListedSandbox { name, state, created_at, source: resolved.source.root, command, exit, size }))
}

/// The sandbox of a source that was made last.
pub fn newest(sandboxes: &Sandboxes, source: &Path) -> Result<Option<SandboxName>, SessionError> {
    let entries = list(sandboxes)?.entries.into_iter().filter(|entry| entry.source.as_path() == source);
    // Records have seconds; the lock is made first of all.
    let made = |entry: &ListedSandbox| (entry.created_at, sandboxes.at(&entry.name).locked_since());
    Ok(entries.max_by_key(made).map(|entry| entry.name))
}

/// One sandbox.
pub fn inspect(sandboxes: &Sandboxes, name: &SandboxName) -> Result<Inspection, SessionError> {
    let directory = existing(sandboxes, name)?;
    let record = directory.read_record()?;
    Ok(Inspection { state: state(&directory)?, record, outcome: directory.read_outcome()? })
}

/// Ends a running sandbox: `SIGTERM` to everything inside, `SIGKILL` after `grace`. Returns when it is gone.
pub fn stop(sandboxes: &Sandboxes, name: &SandboxName, grace: Duration) -> Result<(), SessionError> {
    stop_this(sandboxes, name, grace, None)
}

/// The same for the sandbox with that id, whatever else has its name by now. Without an id, for the one of that name.
pub(super) fn stop_this(
    sandboxes: &Sandboxes,
    name: &SandboxName,
    grace: Duration,
    id: Option<&str>,
) -> Result<(), SessionError> {
    let directory = existing(sandboxes, name)?;
    let is_this = || match id {
        Some(id) => directory.read_record().map(|record| record.sandbox == id),
        None => Ok(true),
    };
    let ended = SandboxDirectory::retry(PATIENCE, || {
        if state(&directory)? != State::Running {
            return Err(SessionError::NotRunning(name.clone()));
        }
        let socket = directory.connect();
        // Asked after connecting: what took the name before that has its own record there.
        if !is_this()? {
            return Err(SessionError::NotRunning(name.clone()));
        }
        let Some(socket) = socket else { return Ok(None) };
        let stopped = attach::stop(socket.as_fd(), grace).ok();
        wake(socket.as_fd());
        Ok(stopped)
    })?;
    ended.ok_or_else(|| SessionError::Busy(name.clone()))?;
    let gone = SandboxDirectory::retry(PATIENCE, || {
        let free = directory.try_lock()?.is_some();
        Ok((free || !is_this()?).then_some(()))
    });
    match gone {
        // One that is not kept is removed by its supervisor.
        Ok(Some(())) | Err(SessionError::Unknown(_)) => Ok(()),
        Ok(None) => Err(SessionError::Busy(name.clone())),
        Err(error) => Err(error),
    }
}

pub(super) fn existing(sandboxes: &Sandboxes, name: &SandboxName) -> Result<SandboxDirectory, SessionError> {
    let directory = sandboxes.at(name);
    match directory.exists() {
        true => Ok(directory),
        false if directory.is_damaged() => Err(SessionError::damaged(&directory)),
        false => Err(SessionError::Unknown(name.clone())),
    }
}

fn state(directory: &SandboxDirectory) -> Result<State, SessionError> {
    Ok(match directory.try_lock()? {
        None => State::Running,
        Some(_lock) => {
            directory.reap_groups();
            if directory.was_interrupted() { State::Interrupted } else { State::Stopped }
        }
    })
}

/// The layers and private directories: what a command can fill.
fn size(directory: &SandboxDirectory, resolved: &ResolvedSpec) -> LayerSize {
    let parts = resolved.mounts.iter().filter_map(|mount| match &mount.content {
        Content::Cow { layer, .. } => Some(directory.layer(layer, LayerPart::Upper)),
        Content::Private { area } => Some(directory.path().join(area)),
        _ => None,
    });
    let sizes = parts.map(|part| measure(part.as_path(), MOST_ENTRIES));
    let Size { bytes, complete } = sizes.fold(Size::default(), Size::and);
    LayerSize { bytes, complete }
}

/// A supervisor that was stopped by Ctrl-Z has to go on to end.
fn wake(control: BorrowedFd<'_>) {
    // Whoever called `listen`: the supervisor, while it is there.
    if let Ok(supervisor) = os::peer(control) {
        let _gone = kill_process(supervisor.pid, Signal::CONT);
    }
}

/// Removes what the supervisor of a `--rm` sandbox could not.
fn reap(directory: &SandboxDirectory) -> Result<(), SessionError> {
    match directory.try_lock()? {
        Some(_lock) => directory.delete_noted(),
        None => Ok(()),
    }
}
