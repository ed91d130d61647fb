//! A new sandbox from any state.

use sandtable_store::layer::write::Outcome;

use super::super::create::{Created, create};
use super::super::directory::Sandboxes;
use super::super::error::Error;
use super::super::run::Request;
use super::{settle, state, turn};
use crate::board::Found;
use crate::model::id::SandboxName;
use crate::model::resolved::ResolvedSpec;
use crate::model::spec::WorkspaceMode;

/// Makes a sandbox that is in the state of a snapshot; no command runs. It stands on the state of the source that the
/// snapshot was made on, so only what differs is written.
pub fn fork(
    sandboxes: &Sandboxes,
    resolved: ResolvedSpec,
    name: Option<&SandboxName>,
    (from, request): (&Found, Request<'_>),
) -> Result<(SandboxName, Outcome), Error> {
    if resolved.mode.value != WorkspaceMode::Overlay {
        return Err(Error::NoOverlay { reason: resolved.mode.reason });
    }
    let Created { directory, lock, mut record } = create(sandboxes, resolved, name, request)?;
    let filled = (|| {
        let base = from.base()?;
        directory.stand_on(&record, base, None)?;
        settle(&directory, &mut record)?;
        let base = state(&from.store, &base)?;
        let outcome = turn::replace(&directory, &record, &from.store, (&base, &from.state()?))?;
        turn::note(&from.store, &record, "fork", from.snapshot.id)?;
        Ok(outcome)
    })();
    match filled {
        Ok(outcome) => Ok((record.name, outcome)),
        Err(error) => {
            // Nothing is in it yet; what cannot be removed now goes with the next call.
            let _reaped_later = directory.delete();
            drop(lock);
            Err(error)
        }
    }
}
