//! A new sandbox from any state.

use sandtable_store::meta::OperationKind;
use sandtable_store::rollback::RollbackOutcome;

use super::super::create::{Created, Wanted, prepare};
use super::super::directory::Sandboxes;
use super::super::error::SessionError;
use super::super::run::Request;
use super::plain::{self, Trust};
use super::{git, settle, state, subject, turn};
use crate::board::{Entry, Found};
use crate::model::id::SandboxName;
use crate::model::layout::RECORD;
use crate::model::resolved::ResolvedSpec;
use crate::model::spec::WorkspaceMode;

/// Makes a sandbox that is in the state of a snapshot; no command runs. It stands on the state of the source that the
/// snapshot was made on, so only what differs is written. It exists when it is complete.
pub fn fork(
    sandboxes: &Sandboxes,
    resolved: ResolvedSpec,
    name: Option<&SandboxName>,
    (from, request): (&Found, Request<'_>),
) -> Result<(SandboxName, RollbackOutcome), SessionError> {
    if resolved.mode.value == WorkspaceMode::Live {
        return Err(SessionError::NoOverlay { reason: resolved.mode.reason });
    }
    let base = from.base()?;
    let Created { directory, lock, mut record } =
        prepare(sandboxes, resolved, Wanted { name, base: Some(base) }, request)?;
    let filled = (|| {
        // Should this be killed, whoever clears it away knows whose states nobody needs.
        directory.draft(RECORD, &record)?;
        if record.resolved.mode.value == WorkspaceMode::Overlay && record.sees_source() {
            let head = git::inherit(sandboxes, base, (&directory, &mut record))?;
            directory.stand_on(&record, base, head)?;
        }
        settle(&directory, &mut record)?;
        let outcome = if plain::root(&directory, &record).is_some() {
            // It was made from the source as it is now, and stood on that.
            let (copied, _) = directory.standing(&record)?;
            let copied = state(&from.store, &copied.snapshot)?;
            directory.stand_on(&record, base, None)?;
            let entry = Entry::set(&subject(&record), OperationKind::Fork, from.snapshot.id);
            let turning = ((&copied, &from.state()?), &entry);
            plain::turn(&directory, &record, (&from.store, Trust::Fresh), turning)?
        } else {
            let base = state(&from.store, &base)?;
            let going = turn::Going { base: &base, to: (from.snapshot.id, &from.state()?), along: &[] };
            let outcome = turn::replace(&directory, &record, &from.store, going)?;
            turn::note(&from.store, &record, OperationKind::Fork, from.snapshot.id)?;
            outcome
        };
        directory.write(RECORD, &record)?;
        Ok(outcome)
    })();
    match filled {
        Ok(outcome) => Ok((record.name, outcome)),
        Err(error) => {
            // Nothing is in it yet; what cannot be removed now goes with the next call.
            let _reaped_later = directory.delete();
            directory.let_go(&record);
            drop(lock);
            Err(error)
        }
    }
}
