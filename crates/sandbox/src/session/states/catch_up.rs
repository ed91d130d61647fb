//! Work that no recorded state has: its supervisor was killed before it could be recorded, or there was no room.
//!
//! The layer holds it all the same. Before anybody asks for the newest state of a sandbox it is recorded, so that
//! nothing a command did is taken for nothing.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sandtable_store::meta::Operation;
use sandtable_store::meta::OperationKind;
use sandtable_store::store::Store;
use serde::{Deserialize, Serialize};

use super::super::directory::{Holding, SandboxDirectory, Sandboxes};
use super::super::error::SessionError;
use super::super::record::Record;
use super::base::StandsOn;
use super::head;
use super::keep::{Kept, Stillness, keep};
use crate::board::{Ignored, Taking};
use crate::model::spec::Lifetime;

/// What the newest recorded state of a sandbox leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    Nothing,
    /// What a command did that still runs.
    Running,
}

/// What a sandbox stands on, after what no state of it has was recorded.
pub(super) fn standing(
    directory: &SandboxDirectory,
    record: &Record,
) -> Result<(Lacking, (StandsOn, Store)), SessionError> {
    if let Some(standing) = settled(directory, record)? {
        return Ok((Lacking::Nothing, standing));
    }
    let Holding::Ours(_lock) = directory.hold()? else {
        return Ok((Lacking::Running, directory.standing(record)?));
    };
    // Somebody else may have been faster.
    if let Some(standing) = settled(directory, record)? {
        return Ok((Lacking::Nothing, standing));
    }
    let behind = |cause| SessionError::Behind { name: record.name.clone(), cause: Box::new(cause) };
    Ok((Lacking::Nothing, caught_up(directory, record).map_err(behind)?))
}

/// The same for whoever holds the lock.
pub(super) fn caught_up(
    directory: &SandboxDirectory,
    record: &Record,
) -> Result<(StandsOn, Store), SessionError> {
    if let Some(standing) = settled(directory, record)? {
        return Ok(standing);
    }
    directory.reap_groups();
    keep_first(directory, record)?;
    directory.standing(record)
}

/// Work that could not be recorded.
#[derive(Debug)]
pub struct Unrecorded {
    /// When the command began that did it.
    pub since: SystemTime,
    pub error: SessionError,
}

/// In the log, of work that was recorded later than it was done.
#[derive(Serialize, Deserialize)]
struct Late {
    /// When the command began, in nanoseconds of Unix time.
    since: u64,
}

/// When something was done, which may be long before it was written down.
pub fn done_at(operation: &Operation) -> SystemTime {
    let late: Option<Late> = serde_json::from_str(&operation.details).ok();
    late.map_or_else(|| operation.at(), |Late { since }| UNIX_EPOCH + Duration::from_nanos(since))
}

/// Records what no state has of the sandboxes of a source, but for those that run. What could not be recorded is answered:
/// it keeps no other from it.
pub fn record_all(sandboxes: &Sandboxes, source: &Path) -> Result<Vec<Unrecorded>, SessionError> {
    let mut failed = Vec::new();
    for name in sandboxes.names()? {
        let directory = sandboxes.at(&name);
        // One whose record cannot be read is named by a listing.
        let Ok(record) = directory.read_record() else { continue };
        let is_kept = record.resolved.lifetime.value == Lifetime::Keep;
        if !is_kept || record.resolved.source.root.as_path() != source || !directory.is_unrecorded() {
            continue;
        }
        let recorded = match directory.hold() {
            Ok(Holding::Ours(_lock)) => caught_up(&directory, &record).map(drop),
            Ok(Holding::Running) | Err(SessionError::Unknown(_)) => Ok(()),
            Err(error) => Err(error),
        };
        failed.extend(recorded.err().map(|cause| Unrecorded {
            since: directory.unrecorded_since().unwrap_or_else(SystemTime::now),
            error: SessionError::Behind { name, cause: Box::new(cause) },
        }));
    }
    Ok(failed)
}

/// What the sandbox stands on, if everything it did is recorded.
fn settled(directory: &SandboxDirectory, record: &Record) -> Result<Option<(StandsOn, Store)>, SessionError> {
    if directory.is_unrecorded() {
        return Ok(None);
    }
    match directory.standing(record) {
        Err(SessionError::NoBase(_)) => Ok(None),
        found => found.map(Some),
    }
}

/// Whatever the layer holds that was not recorded is recorded now. The lock must be held.
pub(super) fn keep_first(directory: &SandboxDirectory, record: &Record) -> Result<Kept, SessionError> {
    let details = details(directory);
    let operation = operation(directory, record);
    let taking = Taking::of(Ignored::Changed, &operation, &());
    let taking = Taking { details: &details, ..taking };
    keep(directory, record, &taking, Stillness::Stopped)
}

/// What the log has to say of it besides.
fn details(directory: &SandboxDirectory) -> String {
    let since = directory.unrecorded_since().and_then(|since| since.duration_since(UNIX_EPOCH).ok());
    let since = since.and_then(|since| u64::try_from(since.as_nanos()).ok());
    let late = since.and_then(|since| serde_json::to_string(&Late { since }).ok());
    late.unwrap_or_else(|| "{}".to_owned())
}

/// What the log calls it: the command whose work it is, if one was not recorded.
fn operation(directory: &SandboxDirectory, record: &Record) -> OperationKind {
    if !directory.is_unrecorded() {
        return OperationKind::Snapshot;
    }
    let is_at = |(stands_on, store): (StandsOn, Store)| {
        Ok(head(&store, record)?.is_some_and(|head| head.id != stands_on.snapshot))
    };
    let went_on =
        directory.last_outcome().is_some() || directory.standing(record).and_then(is_at).unwrap_or(false);
    if went_on { OperationKind::Exec } else { OperationKind::Run }
}
