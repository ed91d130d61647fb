//! Holding a running sandbox still while something reads what it changed.

use std::time::Duration;

pub use sandtable_launch::outside::attach::Frozen;

use super::directory::{SandboxDirectory, Sandboxes};
use super::error::SessionError;
use super::manage::existing;
use super::record::Record;
use crate::engine::engine;
use crate::model::id::SandboxName;

/// How long a sandbox may take to answer while it is starting.
const PATIENCE: Duration = Duration::from_secs(10);

/// Stops everything in the sandbox `name` while the guard lives. It must be running.
pub fn freeze(sandboxes: &Sandboxes, name: &SandboxName) -> Result<Frozen, SessionError> {
    existing(sandboxes, name)?.freeze()
}

impl SandboxDirectory {
    /// Stops everything inside while the guard lives. The sandbox must be running.
    pub(super) fn freeze(&self) -> Result<Frozen, SessionError> {
        let engine = engine(self.read_record()?.resolved.engine);
        let connection = Self::retry(PATIENCE, || match self.connect() {
            None if self.try_lock()?.is_some() => Err(SessionError::NotRunning(self.name())),
            found => Ok(found),
        })?;
        let connection = connection.ok_or_else(|| SessionError::Busy(self.name()))?;
        engine
            .freeze(connection, self.path())
            .map_err(|source| SessionError::Freeze { name: self.name(), source })
    }

    /// The same for a sandbox that may be starting or ending: `None` if it does not answer, or ended before it was held.
    pub(super) fn try_freeze(&self, record: &Record) -> Result<Option<Frozen>, SessionError> {
        let Some(connection) = self.connect() else { return Ok(None) };
        match engine(record.resolved.engine).freeze(connection, self.path()) {
            Ok(frozen) => Ok(Some(frozen)),
            Err(error) if error.has_ended() => Ok(None),
            Err(source) => Err(SessionError::Freeze { name: self.name(), source }),
        }
    }
}
