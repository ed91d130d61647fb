//! The states of sandboxes: the one they stand on, and one for every command that changed something.
//!
//! What a sandbox stands on is recorded once, beside its first command, as a state of its source. Its own state is
//! that and its layer, which holds exactly what the sandbox changed: so recording it costs what changed. Before a
//! sandbox is mounted again, whatever moved in the source since is pinned to what it was, so that the sandbox
//! always stands on the state it recorded.

mod arrived;
mod base;
mod catch_up;
mod fork;
mod git;
mod ground;
mod keep;
mod mixed;
mod objects;
mod plain;
mod regain;
mod settle;
mod turn;

use std::path::Path;
use std::time::Duration;

use sandtable_store::id::ObjectId;
use sandtable_store::meta::{MetaError, Snapshot};
use sandtable_store::state::{LeftOut, State};
use sandtable_store::store::Store;

pub(super) use arrived::Arrived;
pub(super) use base::{Beginning, Seen, StandsOn};
pub use catch_up::{Lacking, Unrecorded, done_at, record_all};
pub use fork::fork;
pub(super) use git::{clean, hold};
pub(super) use ground::lay;
pub use keep::Kept;
pub(super) use keep::{Stillness, keep};
pub(super) use mixed::mixed;
pub(super) use objects::without_lost;
pub(super) use plain::{begin, whole};
pub(super) use settle::{PinningFile, Settled, settle};
pub use turn::{Restored, rollback, step};

use super::directory::{SandboxDirectory, Sandboxes};
use super::error::SessionError;
use super::manage::existing;
use super::record::{DriftEntry, Record};
use crate::board::{Board, Found, Subject, Taking};
use crate::model::id::SandboxName;
use crate::repository::BaseHead;

/// How long a snapshot waits for a sandbox that is starting, ending or being recorded.
const PATIENCE: Duration = Duration::from_mins(2);

/// The two ends of a sandbox: what it stands on, and its newest recorded state. The store keeps both from being collected.
#[derive(Debug)]
pub struct Ends {
    pub store: Store,
    pub base: Snapshot,
    pub newest: Snapshot,
    /// Where the source's `HEAD` was, if that is known.
    pub head: Option<BaseHead>,
    /// What the newest state leaves out.
    pub lacking: Lacking,
    /// Paths of the source that changed before the base was recorded, where that could only be done afterwards: what
    /// they were when the sandbox was made is not known.
    pub moved: Vec<DriftEntry>,
    /// What no state holds of it, where that is something else than what its newest state says.
    pub left_out: Option<LeftOut>,
}

/// What a sandbox stands on and where it is. Work that no state has yet, because its supervisor was killed or there was
/// no room for it, is recorded first.
pub fn ends(sandboxes: &Sandboxes, name: &SandboxName) -> Result<Ends, SessionError> {
    let directory = existing(sandboxes, name)?;
    let record = directory.read_record()?;
    let (lacking, (stands_on, store)) = catch_up::standing(&directory, &record)?;
    let base = store.hold(&stands_on.snapshot).map_err(crate::board::BoardError::from)?;
    let newest = match head(&store, &record)? {
        Some(newest) => store.hold(&newest.id).map_err(crate::board::BoardError::from)?,
        None => base.clone(),
    };
    let left_out = directory.read_arrived().and_then(|arrived| arrived.left_out(&newest.id));
    let StandsOn { head, moved, .. } = stands_on;
    Ok(Ends { store, base, newest, head, lacking, moved, left_out })
}

/// The last state of a sandbox that goes.
#[derive(Debug)]
pub struct LastState {
    pub id: ObjectId,
    /// Whether it is more than what the sandbox was made on.
    pub has_work: bool,
    /// What the state does not hold, in words.
    pub missing: Option<String>,
}

/// The state of a sandbox, after what no state of it has was recorded. The lock must be held.
pub(super) fn last(directory: &SandboxDirectory, record: &Record) -> Result<LastState, SessionError> {
    last_in(record, &catch_up::caught_up(directory, record)?)
}

/// The newest state that is recorded already, if it can be told.
pub(super) fn recorded(directory: &SandboxDirectory) -> Option<LastState> {
    let record = directory.read_record().ok()?;
    last_in(&record, &directory.standing(&record).ok()?).ok()
}

fn last_in(record: &Record, (stands_on, store): &(StandsOn, Store)) -> Result<LastState, SessionError> {
    let id = head(store, record)?.map_or(stands_on.snapshot, |newest| newest.id);
    let left = crate::board::left_out_of(store, &id)?;
    let missing = crate::board::told_left_out(left.count, &left.skipped);
    Ok(LastState { id, has_work: id != stands_on.snapshot, missing })
}

impl Ends {
    /// The newest state as something that can be compared, checked out or forked.
    pub fn into_newest(self) -> Found {
        Found { store: self.store, snapshot: self.newest, left_out: self.left_out }
    }
}

/// Records the state of a sandbox now. One that runs is held still meanwhile; one that starts or ends, or that somebody
/// else records, is waited for.
pub fn snapshot(
    sandboxes: &Sandboxes,
    name: &SandboxName,
    taking: &Taking<'_>,
) -> Result<Kept, SessionError> {
    let directory = existing(sandboxes, name)?;
    let record = directory.read_record()?;
    let kept = SandboxDirectory::retry(PATIENCE, || {
        if let Some(_lock) = directory.try_lock()? {
            return keep_stopped(&directory, &record, taking).map(Some);
        }
        // Beside its first command, what it stands on may still be being recorded.
        if directory.read_base()?.is_none() {
            return Ok(None);
        }
        let Some(frozen) = directory.try_freeze(&record)? else { return Ok(None) };
        let stillness = if frozen.is_complete() { Stillness::Frozen } else { Stillness::Running };
        let kept = keep(&directory, &record, taking, stillness);
        drop(frozen);
        kept.map(Some)
    });
    kept?.ok_or_else(|| SessionError::Busy(name.clone()))
}

/// What a command did that was not recorded is a state of its own: to take back the snapshot is not to take back that.
fn keep_stopped(
    directory: &SandboxDirectory,
    record: &Record,
    taking: &Taking<'_>,
) -> Result<Kept, SessionError> {
    if !directory.is_unrecorded() {
        return keep(directory, record, taking, Stillness::Stopped);
    }
    let work = catch_up::keep_first(directory, record)?;
    // Where the command did something, the snapshot is told apart from it although it is the same state.
    let words = taking.message.or((!work.unchanged).then_some(taking.operation.as_str()));
    keep(directory, record, &Taking { message: words, ..*taking }, Stillness::Stopped)
}

impl SandboxDirectory {
    /// All stores.
    pub(super) fn board(&self) -> Board {
        Board::new(&self.data()).obeying(self.ignore.clone())
    }

    /// What the sandbox stands on, and the store that has it.
    pub(super) fn standing(&self, record: &Record) -> Result<(StandsOn, Store), SessionError> {
        let nothing = || SessionError::NoBase(record.name.clone());
        let stands_on = self.read_base()?.ok_or_else(nothing)?;
        let source = record.resolved.source.root.as_path();
        let store = self.board().of_source(source)?.ok_or_else(nothing)?;
        match store.meta().snapshot(&stands_on.snapshot) {
            Ok(_) => Ok((stands_on, store)),
            Err(MetaError::Unknown(_)) => Err(nothing()),
            Err(error) => Err(crate::board::BoardError::from(error).into()),
        }
    }
}

pub(super) fn subject(record: &Record) -> Subject {
    Subject::sandbox(&record.sandbox)
}

/// The newest recorded state of a sandbox.
fn head(store: &Store, record: &Record) -> Result<Option<Snapshot>, SessionError> {
    let meta = store.meta();
    let head = meta.head(&subject(record).to_string()).map_err(crate::board::BoardError::from)?;
    head.map(|head| meta.snapshot(&head.snapshot))
        .transpose()
        .map_err(|error| crate::board::BoardError::from(error).into())
}

fn state(store: &Store, id: &ObjectId) -> Result<State, SessionError> {
    Ok(store.state(id).map_err(crate::board::BoardError::from)?)
}

fn open(path: &Path) -> Result<std::os::fd::OwnedFd, SessionError> {
    sandtable_store::dir::open_named(path).map_err(|errno| SessionError::state("open", path)(errno.into()))
}
