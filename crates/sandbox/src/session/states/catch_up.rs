//! Work that no recorded state has: its supervisor was killed before it could be recorded, or there was no room.
//!
//! The layer holds it all the same. Before anybody asks for the newest state of a sandbox it is recorded, so that
//! nothing a command did is taken for nothing.

use std::path::Path;

use sandtable_store::store::Store;

use super::super::directory::{Holding, SandboxDirectory, Sandboxes};
use super::super::error::Error;
use super::super::record::Record;
use super::base::StandsOn;
use super::head;
use super::keep::{Kept, Stillness, keep};
use crate::board::{Ignored, Silent, Taking};
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
) -> Result<(Lacking, (StandsOn, Store)), Error> {
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
    let behind = |cause| Error::Behind { name: record.name.clone(), cause: Box::new(cause) };
    Ok((Lacking::Nothing, caught_up(directory, record).map_err(behind)?))
}

/// The same for whoever holds the lock.
pub(super) fn caught_up(directory: &SandboxDirectory, record: &Record) -> Result<(StandsOn, Store), Error> {
    if let Some(standing) = settled(directory, record)? {
        return Ok(standing);
    }
    directory.reap_groups();
    keep_first(directory, record)?;
    directory.standing(record)
}

/// Records what no state has of the sandboxes of a source, but for those that run. What could not be recorded is answered:
/// it keeps no other from it.
pub fn record_all(sandboxes: &Sandboxes, source: &Path) -> Result<Vec<Error>, Error> {
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
            Ok(Holding::Running) | Err(Error::Unknown(_)) => Ok(()),
            Err(error) => Err(error),
        };
        failed.extend(recorded.err().map(|cause| Error::Behind { name, cause: Box::new(cause) }));
    }
    Ok(failed)
}

/// What the sandbox stands on, if everything it did is recorded.
fn settled(directory: &SandboxDirectory, record: &Record) -> Result<Option<(StandsOn, Store)>, Error> {
    if directory.is_unrecorded() {
        return Ok(None);
    }
    match directory.standing(record) {
        Err(Error::NoBase(_)) => Ok(None),
        found => found.map(Some),
    }
}

/// Whatever the layer holds that was not recorded is recorded now. The lock must be held.
pub(super) fn keep_first(directory: &SandboxDirectory, record: &Record) -> Result<Kept, Error> {
    let hearing = Silent::default();
    let taking = Taking::of(Ignored::Changed, operation(directory, record), &hearing);
    keep(directory, record, &taking, Stillness::Stopped)
}

/// What the log calls it: the command whose work it is, if one was not recorded.
fn operation(directory: &SandboxDirectory, record: &Record) -> &'static str {
    if !directory.is_unrecorded() {
        return "snapshot";
    }
    let is_at = |(stands_on, store): (StandsOn, Store)| {
        Ok(head(&store, record)?.is_some_and(|head| head.id != stands_on.snapshot))
    };
    let went_on =
        directory.last_outcome().is_some() || directory.standing(record).and_then(is_at).unwrap_or(false);
    if went_on { "exec" } else { "run" }
}
