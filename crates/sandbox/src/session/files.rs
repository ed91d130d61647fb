//! The JSON files of a sandbox, read with their schema checked and replaced in one step.

use std::io::ErrorKind;
use std::time::SystemTime;

use fs_err as fs;
use sandtable_store::regular;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::directory::SandboxDirectory;
use super::error::SessionError;
use super::furnish::{CopiesFile, EnvironmentFile};
use super::record::{Outcome, Record, SCHEMA};
use super::states::{Arrived, PinningFile, StandsOn};
use crate::model::layout::{
    ARRIVED, BASE, CONTROL, COPIES, ENVIRONMENT, OUTCOME, PINNING, RECORD, UNRECORDED,
};
use crate::model::path::HostPath;
use crate::model::versioned::{self, Unreadable};

/// More than is in any of them.
const LARGEST: u64 = 256 << 20;

impl SandboxDirectory {
    pub(super) fn read_record(&self) -> Result<Record, SessionError> {
        let path = self.path().join(RECORD);
        read(&path)?.ok_or_else(|| SessionError::Unknown(self.name()))
    }

    pub(super) fn read_outcome(&self) -> Result<Option<Outcome>, SessionError> {
        read(&self.path().join(OUTCOME))
    }

    pub(super) fn read_base(&self) -> Result<Option<StandsOn>, SessionError> {
        read(&self.path().join(BASE))
    }

    /// What is known of it; what cannot be read is as good as nothing.
    pub(super) fn read_arrived(&self) -> Option<Arrived> {
        read(&self.path().join(ARRIVED)).ok().flatten()
    }

    pub(super) fn drop_arrived(&self) {
        let _none = fs::remove_file(self.path().join(ARRIVED).as_path());
    }

    pub(super) fn read_copies(&self) -> Result<CopiesFile, SessionError> {
        Ok(read(&self.path().join(COPIES))?.unwrap_or_default())
    }

    pub(super) fn read_environment(&self) -> Result<Option<EnvironmentFile>, SessionError> {
        read(&self.path().join(ENVIRONMENT))
    }

    pub(super) fn read_pinning(&self) -> Result<Option<PinningFile>, SessionError> {
        read(&self.path().join(PINNING))
    }

    pub(super) fn drop_pinning(&self) -> Result<(), SessionError> {
        let path = self.path().join(PINNING);
        fs::remove_file(path.as_path()).map_err(SessionError::state("remove", path.as_path()))
    }

    /// Says that the layer is about to be written to.
    pub(super) fn mark_unrecorded(&self) -> Result<(), SessionError> {
        let path = self.path().join(UNRECORDED);
        fs::write(path.as_path(), "").map_err(SessionError::state("write", path.as_path()))
    }

    /// Says that everything in the layer is recorded. A mark that stays costs a look at the layer, nothing else.
    pub(super) fn unmark_unrecorded(&self) {
        let _looked_at_again = fs::remove_file(self.path().join(UNRECORDED).as_path());
    }

    /// Whether the layer may hold what no recorded state has.
    pub(super) fn is_unrecorded(&self) -> bool {
        self.path().join(UNRECORDED).as_path().exists() || self.was_interrupted()
    }

    /// Since when it may: when the last command began that was not recorded.
    pub(super) fn unrecorded_since(&self) -> Option<SystemTime> {
        [UNRECORDED, CONTROL].iter().find_map(|name| {
            let found = fs::symlink_metadata(self.path().join(name).as_path());
            found.and_then(|found| found.modified()).ok()
        })
    }

    /// What a sandbox was to become that nobody completed.
    pub(super) fn read_draft(&self) -> Option<Record> {
        read(&self.draft_of(RECORD)).ok().flatten()
    }

    /// Writes a file under its name when it is complete.
    pub(super) fn write(&self, name: &str, value: &impl Serialize) -> Result<(), SessionError> {
        self.draft(name, value)?;
        let (path, draft) = (self.path().join(name), self.draft_of(name));
        fs::rename(draft.as_path(), path.as_path()).map_err(|error| {
            // Nobody completes it later.
            let _never_read = fs::remove_file(draft.as_path());
            SessionError::state("write", path.as_path())(error)
        })
    }

    /// Writes a file under another name, from which it only has to be moved.
    pub(super) fn draft(&self, name: &str, value: &impl Serialize) -> Result<(), SessionError> {
        let (path, draft) = (self.path().join(name), self.draft_of(name));
        let text = serde_json::to_vec_pretty(value)
            .map_err(|source| SessionError::Record { path: path.as_path().to_owned(), source })?;
        fs::write(draft.as_path(), text).map_err(|error| {
            // Half a file is of no use, and the room may be needed.
            let _never_read = fs::remove_file(draft.as_path());
            SessionError::state("write", path.as_path())(error)
        })
    }

    /// Removes what a command that was killed had written of these files and not yet put in place. The lock must be held. Without a
    /// record the sandbox is no more than its draft, which is then needed to clear it away.
    pub(super) fn drop_drafts(&self) {
        if self.exists() {
            for name in [RECORD, OUTCOME, BASE, ARRIVED, COPIES, PINNING] {
                let _none = fs::remove_file(self.draft_of(name).as_path());
            }
        }
    }

    fn draft_of(&self, name: &str) -> HostPath {
        self.path().join(format!("{name}.draft"))
    }

    /// Takes away what an earlier command did, where that of the last cannot be written.
    pub(super) fn drop_outcome(&self) {
        let _none = fs::remove_file(self.path().join(OUTCOME).as_path());
    }

    /// Whether a command ran in it once.
    pub(super) fn has_run(&self) -> bool {
        [OUTCOME, UNRECORDED].iter().any(|name| self.path().join(name).as_path().exists())
    }
}

fn read<T: DeserializeOwned>(path: &HostPath) -> Result<Option<T>, SessionError> {
    let text = match regular::read(path.as_path(), LARGEST) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SessionError::state("read", path.as_path())(error)),
    };
    let path = path.as_path().to_owned();
    versioned::read(&text, SCHEMA..=SCHEMA).map(Some).map_err(|unreadable| match unreadable {
        Unreadable::Malformed(source) => SessionError::Record { path, source },
        Unreadable::Schema(found) => SessionError::Schema { path, found, known: SCHEMA },
    })
}
