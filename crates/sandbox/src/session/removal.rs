//! Removing sandboxes. What one holds that no state has is recorded before it goes; where that cannot be done it stays,
//! unless somebody consents to the loss: who removes by force does not wait for a record of what may be anything.

use std::time::Duration;

use sandtable_store::lock::FileLock;

use super::directory::{SandboxDirectory, Sandboxes};
use super::error::SessionError;
use super::manage::{PATIENCE, existing, stop};
use super::record::Record;
use super::states::{self, LastState};
use crate::model::id::SandboxName;
use crate::model::spec::{Lifetime, WorkspaceMode};

/// How long a sandbox that is removed by force may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// How long a lock without a sandbox that answers is looked at: whoever removes one has removed its record by then.
const MOMENT: Duration = Duration::from_secs(1);

/// How a sandbox is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// One that runs stays, and so does one whose work cannot be recorded.
    Careful,
    /// One that runs is stopped, and work that is not recorded by then is lost.
    Forced,
}

/// What became of a sandbox that was removed.
#[derive(Debug, Default)]
pub struct Removed {
    /// Its last recorded state, which stays in the store until that is cleaned up.
    pub last: Option<LastState>,
    /// Why the work since that state is not recorded; it is lost.
    pub lost: Option<Loss>,
}

/// Why work was lost with a sandbox.
#[derive(Debug, thiserror::Error)]
pub enum Loss {
    #[error("it was removed by force")]
    Forced,
    #[error(transparent)]
    Failed(SessionError),
}

/// Removes a sandbox and everything it kept.
pub fn remove(sandboxes: &Sandboxes, name: &SandboxName, how: Removal) -> Result<Removed, SessionError> {
    let directory = match existing(sandboxes, name) {
        Err(error @ SessionError::Damaged { .. }) => return remove_damaged(sandboxes, name, (how, error)),
        found => found?,
    };
    if let Some(_lock) = directory.try_lock()? {
        return remove_held(&directory, how);
    }
    match how {
        Removal::Careful => match SandboxDirectory::retry(MOMENT, || taken_by(&directory))? {
            Some(Taken::ByNobody(_lock)) => remove_held(&directory, how),
            Some(Taken::ByItself) | None => Err(SessionError::StillRunning(name.clone())),
        },
        Removal::Forced => {
            match stop(sandboxes, name, GRACE) {
                // It ended by itself, or was removed by its supervisor.
                Ok(()) | Err(SessionError::NotRunning(_) | SessionError::Unknown(_)) => {}
                Err(error) => return Err(error),
            }
            match SandboxDirectory::retry(PATIENCE, || directory.try_lock()) {
                Ok(Some(_lock)) => remove_held(&directory, how),
                Err(SessionError::Unknown(_)) => Ok(Removed::default()),
                Ok(None) => Err(SessionError::Busy(name.clone())),
                Err(error) => Err(error),
            }
        }
    }
}

/// The lock must be held.
fn remove_held(directory: &SandboxDirectory, how: Removal) -> Result<Removed, SessionError> {
    let without = |why| Removed { last: states::recorded(directory), lost: Some(why) };
    let removed = match how {
        Removal::Forced if has_unrecorded_work(directory) => without(Loss::Forced),
        Removal::Forced => last_state(directory)
            .map_or_else(|error| without(Loss::Failed(error)), |last| Removed { last, lost: None }),
        Removal::Careful => {
            let newest = last_state(directory).map_err(|error| unkept(directory, error))?;
            Removed { last: newest, lost: None }
        }
    };
    directory.delete_noted()?;
    Ok(removed)
}

/// One without its record: what it did is recorded, or only its files have it.
fn remove_damaged(
    sandboxes: &Sandboxes,
    name: &SandboxName,
    (how, error): (Removal, SessionError),
) -> Result<Removed, SessionError> {
    let directory = sandboxes.at(name);
    let _lock = directory.claim()?.ok_or_else(|| SessionError::StillRunning(name.clone()))?;
    match directory.is_unrecorded().then_some(error) {
        Some(error) if how == Removal::Careful => Err(unkept(&directory, error)),
        lost => directory.delete().map(|()| Removed { last: None, lost: lost.map(Loss::Failed) }),
    }
}

/// Whether something would have to be recorded first. Of one without a record, and of files that are the user's own, nothing is.
fn has_unrecorded_work(directory: &SandboxDirectory) -> bool {
    let is_concerned = |record: Record| {
        let resolved = record.resolved;
        resolved.lifetime.value == Lifetime::Keep && resolved.mode.value != WorkspaceMode::Live
    };
    directory.is_unrecorded() && directory.read_record().is_ok_and(is_concerned)
}

/// The state of a sandbox that is about to go, with all that it holds. None for one that keeps nothing.
fn last_state(directory: &SandboxDirectory) -> Result<Option<LastState>, SessionError> {
    let record = match directory.read_record() {
        Ok(record) => record,
        Err(error) if directory.is_unrecorded() => return Err(error),
        // Its states are in the log, though nobody knows which are its own.
        Err(_) => return Ok(None),
    };
    if record.resolved.lifetime.value == Lifetime::Discard {
        return Ok(None);
    }
    match states::last(directory, &record) {
        // Its files are the user's own, and stay.
        Err(_) if record.resolved.mode.value == WorkspaceMode::Live => Ok(None),
        found => found.map(Some),
    }
}

fn unkept(directory: &SandboxDirectory, cause: SessionError) -> SessionError {
    SessionError::Unkept { name: directory.name(), cause: Box::new(cause) }
}

/// Who holds the lock of a sandbox.
enum Taken {
    /// The sandbox: it runs.
    ByItself,
    ByNobody(FileLock),
}

/// Who holds the lock. Somebody who removes the sandbox holds it too: then it is not there any more.
fn taken_by(directory: &SandboxDirectory) -> Result<Option<Taken>, SessionError> {
    if let Some(lock) = directory.try_lock()? {
        return Ok(Some(Taken::ByNobody(lock)));
    }
    if !directory.exists() {
        return Err(SessionError::Unknown(directory.name()));
    }
    Ok(directory.is_supervised().then_some(Taken::ByItself))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::path::HostPath;

    #[test]
    fn a_lock_of_somebody_who_removes_is_no_sandbox_that_runs() {
        let data = tempfile::tempdir().unwrap();
        let sandboxes = Sandboxes::new(&HostPath::new(data.path()).unwrap());
        let name: SandboxName = "box".parse().unwrap();
        let directory = sandboxes.at(&name);
        fs_err::create_dir_all(directory.path().as_path()).unwrap();
        fs_err::write(directory.path().join("sandbox.json").as_path(), "{}").unwrap();
        let lock = FileLock::try_exclusive(directory.path().join("lock").as_path()).unwrap();
        assert!(matches!(taken_by(&directory), Ok(None)), "it starts, or ends, or is removed: not known yet");
        fs_err::remove_file(directory.path().join("sandbox.json").as_path()).unwrap();
        assert!(matches!(taken_by(&directory), Err(SessionError::Unknown(_))), "it is being removed");
        drop(lock);
        assert!(matches!(taken_by(&directory), Ok(Some(Taken::ByNobody(_)))));
    }

    #[test]
    fn who_gets_the_lock_clears_away_the_drafts_of_a_killed_holder() {
        let data = tempfile::tempdir().unwrap();
        let sandboxes = Sandboxes::new(&HostPath::new(data.path()).unwrap());
        let directory = sandboxes.at(&"box".parse().unwrap());
        let at = |name: &str| directory.path().join(name).as_path().to_owned();
        fs_err::create_dir_all(directory.path().as_path()).unwrap();
        for name in ["lock", "sandbox.json.draft", "outcome.json.draft", "base.json.draft"] {
            fs_err::write(at(name), "").unwrap();
        }
        drop(directory.try_lock().unwrap().unwrap());
        assert!(
            at("sandbox.json.draft").exists(),
            "it says whose states are let go when the rest is removed"
        );
        fs_err::write(at("sandbox.json"), "{}").unwrap();
        let lock = FileLock::try_exclusive(&at("lock")).unwrap();
        assert!(directory.try_lock().unwrap().is_none());
        assert!(at("outcome.json.draft").exists(), "its holder is about to put it in place");
        drop(lock);
        drop(directory.try_lock().unwrap().unwrap());
        for name in ["sandbox.json.draft", "outcome.json.draft", "base.json.draft"] {
            assert!(!at(name).exists(), "{name}");
        }
        assert!(at("sandbox.json").exists());
    }

    /// A killed creation that comes of age between two looks at its age is not taken for a sandbox that is there.
    #[test]
    fn a_name_that_a_killed_creation_left_is_free_at_whatever_age() {
        let data = tempfile::tempdir().unwrap();
        let sandboxes = Sandboxes::new(&HostPath::new(data.path()).unwrap());
        let name: SandboxName = "box".parse().unwrap();
        let directory = sandboxes.at(&name);
        for round in 0..600 {
            fs_err::create_dir_all(directory.path().as_path()).unwrap();
            let almost = Duration::from_nanos(999_975_000 - round % 100 * 1000);
            let made = std::time::SystemTime::now() - almost;
            fs_err::File::open(directory.path().as_path()).unwrap().set_modified(made).unwrap();
            assert!(sandboxes.clear_wanted(&name).unwrap(), "round {round}");
        }
    }

    #[test]
    fn a_creation_that_died_is_cleared_away_at_once_and_one_under_way_is_not() {
        let data = tempfile::tempdir().unwrap();
        let sandboxes = Sandboxes::new(&HostPath::new(data.path()).unwrap());
        let name: SandboxName = "box".parse().unwrap();
        let (directory, lock) = sandboxes.make(&name).unwrap().unwrap();
        fs_err::write(directory.path().join("sandbox.json.draft").as_path(), "").unwrap();
        assert!(!sandboxes.clear(&name).unwrap(), "it is still being made");
        drop(lock);
        assert!(sandboxes.clear(&name).unwrap());
        assert!(!directory.path().as_path().exists());
        // Between the directory and its lock nobody can tell.
        fs_err::create_dir(directory.path().as_path()).unwrap();
        assert!(!sandboxes.clear(&name).unwrap());
    }
}
