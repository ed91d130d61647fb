//! What happened to sandboxes, one line of JSON each, in one file for all of them.
//!
//! The file is for people and scripts who want to follow along; nothing of ours depends on it. So a line that
//! cannot be written is let go: a full disk must not keep a sandbox from ending. A full file becomes the
//! older one of two, the one before that goes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err as fs;
use sandtable_protocol::follow::{Follow, older};
use sandtable_store::lock::FileLock;
use sandtable_store::regular::{self, Missing};
use serde::{Deserialize, Serialize};

use super::directory::{SandboxDirectory, Sandboxes};
use super::error::SessionError;
use super::record::{Exit, Record, SCHEMA};
use crate::model::choice::choice;
use crate::model::id::SandboxName;

/// When the file is full.
const CAP: u64 = 1 << 20;

choice! {
    /// What happened.
    EventKind {
        Created = "created", Started = "started", Ended = "ended", Failed = "failed", Removed = "removed",
    }
}

/// One thing that happened to a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub schema: u32,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    pub event: EventKind,
    /// The sandbox's id; a name may be used again.
    pub sandbox: String,
    pub name: SandboxName,
    /// The command that started or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// What failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Event {
    pub(super) fn new(kind: EventKind, record: &Record) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            schema: SCHEMA,
            at_ms: super::task::millis(now),
            event: kind,
            sandbox: record.sandbox.clone(),
            name: record.name.clone(),
            command: None,
            exit: None,
            error: None,
        }
    }
}

/// Reads the events, oldest first, and goes on with those that come.
#[derive(Debug)]
pub struct Events {
    path: PathBuf,
    files: Follow,
    rest: Vec<u8>,
}

impl Events {
    pub fn new(sandboxes: &Sandboxes) -> Self {
        let path = sandboxes.events();
        Self { files: Follow::new(&path), path, rest: Vec::new() }
    }

    /// What happened since the last call. A line that is not understood, from a newer version, is passed over.
    pub fn take(&mut self) -> Result<Vec<Event>, SessionError> {
        let mut events = Vec::new();
        for piece in self.files.pieces().map_err(SessionError::state("read", &self.path))? {
            self.rest.extend(piece);
            while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                events.extend(
                    serde_json::from_slice::<Event>(&line).ok().filter(|event| event.schema == SCHEMA),
                );
            }
        }
        Ok(events)
    }
}

impl SandboxDirectory {
    /// Notes what happened, if that is possible.
    pub(super) fn note(&self, events: &[Event]) {
        if let Some(path) = self.events() {
            append(&path, events).unwrap_or_default();
        }
    }

    /// Removes everything and notes that.
    pub(super) fn delete_noted(&self) -> Result<(), SessionError> {
        let record = self.read_record();
        let has_states = self.read_base().is_ok_and(|base| base.is_some());
        self.delete()?;
        if let Ok(record) = record {
            if has_states {
                self.let_go(&record);
            }
            self.note(&[Event::new(EventKind::Removed, &record)]);
        }
        Ok(())
    }
}

/// All lines in one write, which the kernel keeps together at the end of the file.
fn append(path: &Path, events: &[Event]) -> std::io::Result<()> {
    let mut lines = Vec::new();
    for event in events {
        serde_json::to_writer(&mut lines, event)?;
        lines.push(b'\n');
    }
    let mut file = regular::open_private_to_append(path, Missing::Made)?;
    file.write_all(&lines)?;
    if file.metadata()?.len() >= CAP {
        rotate(path)?;
    }
    Ok(())
}

/// One of those who find the file full moves it.
fn rotate(path: &Path) -> std::io::Result<()> {
    let lock = path.with_extension("lock");
    let Some(_lock) = FileLock::try_exclusive(&lock).map_err(std::io::Error::other)? else { return Ok(()) };
    if fs::metadata(path)?.len() >= CAP { fs::rename(path, older(path)) } else { Ok(()) }
}
