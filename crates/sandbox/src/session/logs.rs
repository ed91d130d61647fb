//! What a detached command wrote.

use sandtable_protocol::log::{Frame, Reader};

use super::directory::{SandboxDirectory, Sandboxes};
use super::error::SessionError;
use super::manage::existing;
use crate::model::id::SandboxName;
use crate::model::layout::LOG;
use crate::model::path::HostPath;

/// The log of a sandbox's detached command, read from its beginning.
#[derive(Debug)]
pub struct Log {
    directory: SandboxDirectory,
    path: HostPath,
    reader: Reader,
}

impl Log {
    /// The log of the sandbox `name`. Only a detached command has one.
    pub fn open(sandboxes: &Sandboxes, name: &SandboxName) -> Result<Self, SessionError> {
        let directory = existing(sandboxes, name)?;
        let path = directory.path().join(LOG);
        if !path.as_path().exists() {
            return Err(SessionError::NoLog(name.clone()));
        }
        let reader = Reader::new(path.as_path());
        Ok(Self { directory, path, reader })
    }

    /// What was written since the last call.
    pub fn take(&mut self) -> Result<Vec<Frame>, SessionError> {
        self.reader.frames().map_err(SessionError::state("read", self.path.as_path()))
    }

    /// Whether nothing more can come: ask before the last [`Self::take`].
    pub fn is_over(&self) -> Result<bool, SessionError> {
        if !self.directory.exists() {
            return Ok(true);
        }
        Ok(self.directory.try_lock()?.is_some())
    }
}
