//! What a sandbox stands on, recorded beside its first command.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::SystemTime;

use sandtable_store::id::ObjectId;
use sandtable_store::meta::OperationKind;
use sandtable_store::meta::{HeadChange, OperationDraft};
use sandtable_store::source::{Sightings, Stamp};
use serde::{Deserialize, Serialize};

use super::super::capture::Look;
use super::super::directory::SandboxDirectory;
use super::super::error::SessionError;
use super::super::record::{DriftEntry, Record, SCHEMA};
use super::git::held_head;
use super::subject;
use crate::board::take::Began;
use crate::board::{self, Board, Ignored, Taking};
use crate::model::layout;
use crate::model::observe::{Event, Observer};
use crate::model::spec::{Lifetime, WorkspaceMode};
use crate::repository::{BaseHead, base_head};

/// The state of the source that a sandbox was made on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::session) struct StandsOn {
    pub(in crate::session) schema: u32,
    pub(in crate::session) snapshot: ObjectId,
    /// Where the source's `HEAD` was, if it is a repository.
    #[serde(default)]
    pub(in crate::session) head: Option<BaseHead>,
    /// What had changed in the source since the sandbox was made, where its state could only be recorded later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::session) moved: Vec<DriftEntry>,
}

impl StandsOn {
    pub(super) fn new(snapshot: ObjectId, head: Option<BaseHead>) -> Self {
        Self { schema: SCHEMA, snapshot, head, moved: Vec::new() }
    }
}

/// The recording of that state, under way beside the command.
#[derive(Debug)]
pub(in crate::session) struct Beginning {
    progress: Arc<Progress>,
    /// An error if there can be no other thread.
    thread: std::io::Result<JoinHandle<Result<(), SessionError>>>,
}

/// What is seen of the source beside a command, for whom.
#[derive(Debug)]
pub(in crate::session) struct Seen {
    /// When the command began.
    pub(in crate::session) moment: Stamp,
    /// What the source looked like then.
    pub(in crate::session) look: Look,
    /// Takes what the recording sees of it after the command.
    pub(in crate::session) sightings: Arc<Sightings>,
}

/// How far it is.
#[derive(Debug, Default)]
struct Progress {
    cancelled: AtomicBool,
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl Observer for Progress {
    fn event(&self, event: &Event<'_>) {
        if let Event::Recording { entries, bytes } = *event {
            self.entries.store(entries, Ordering::Relaxed);
            self.bytes.store(bytes, Ordering::Relaxed);
        }
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Beginning {
    /// Starts to record the state of the source, if the sandbox keeps anything and has no recorded one yet. To be called when the command runs.
    pub(in crate::session) fn start(
        directory: &SandboxDirectory,
        record: &Record,
        seen: Seen,
    ) -> Option<Self> {
        let keeps = record.resolved.lifetime.value == Lifetime::Keep
            && record.resolved.mode.value == WorkspaceMode::Overlay;
        if !keeps || directory.read_base().is_ok_and(|base| base.is_some()) {
            return None;
        }
        let progress = Arc::new(Progress::default());
        let observer = Arc::clone(&progress);
        let (directory, record) = (directory.clone(), record.clone());
        let thread = std::thread::Builder::new().spawn(move || {
            let source = &record.resolved.source.root;
            let head = held_head(&directory, &record).or_else(|| base_head(source));
            // What another tree looks like says nothing of what the command stood on.
            let seen = if record.sees_source() { seen } else { Seen { sightings: Arc::default(), ..seen } };
            let snapshot = record_source(&directory.board(), source.as_path(), observer.as_ref(), &seen)?;
            // From here on others can record the state of the sandbox too, while its command runs.
            directory.stand_on(&record, snapshot, head)
        });
        Some(Self { progress, thread })
    }

    /// Waits until the base is recorded. The observer can cancel the recording.
    pub(in crate::session) fn finish(
        self,
        record: &Record,
        observer: &dyn Observer,
    ) -> Result<(), SessionError> {
        let failed = SessionError::state("start a thread to record", record.resolved.source.root.as_path());
        let thread = self.thread.map_err(failed)?;
        while !thread.is_finished() {
            let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
            let (entries, bytes) = (load(&self.progress.entries), load(&self.progress.bytes));
            observer.event(&Event::Recording { entries, bytes });
            if observer.cancelled() {
                self.progress.cancelled.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        observer.event(&Event::Recorded);
        thread.join().map_err(|_| SessionError::NoBase(record.name.clone()))?
    }
}

/// The state of the source now: the one that was recorded last, if it is the same.
fn record_source(
    board: &Board,
    source: &std::path::Path,
    observer: &dyn Observer,
    seen: &Seen,
) -> Result<ObjectId, board::BoardError> {
    let taking = Taking {
        message: Some("the source"),
        sightings: Some(&seen.sightings),
        ..Taking::of(Ignored::None, &OperationKind::Onboard, observer)
    };
    let began = Began { moment: seen.moment, listing: &|| seen.look.wait() };
    Ok(board.onboard_since(source, &taking, Some(began))?.id)
}

impl SandboxDirectory {
    /// The sandbox is gone: what only it had can be collected. A store that does not answer keeps it, no more.
    pub(in crate::session) fn let_go(&self, record: &Record) {
        let removed = OperationDraft {
            subject: subject(record).to_string(),
            kind: OperationKind::Remove,
            at: SystemTime::now(),
            head: HeadChange::Remove,
            details: serde_json::json!({ "name": record.name }).to_string(),
        };
        let store = self.board().of_source(record.resolved.source.root.as_path());
        if let Ok(Some(store)) = store {
            drop(store.meta().append(&removed));
        }
    }

    /// Writes down what the sandbox stands on: from here on it has states.
    pub(in crate::session) fn stand_on(
        &self,
        record: &Record,
        snapshot: ObjectId,
        head: Option<BaseHead>,
    ) -> Result<(), SessionError> {
        self.stand_on_this(record, &StandsOn::new(snapshot, head))
    }

    /// The same with all that is known of it.
    pub(super) fn stand_on_this(&self, record: &Record, stands_on: &StandsOn) -> Result<(), SessionError> {
        let source = record.resolved.source.root.as_path();
        let store =
            self.board().of_source(source)?.ok_or_else(|| SessionError::NoBase(record.name.clone()))?;
        // It may have been let go of and collected since somebody chose it.
        store.hold(&stands_on.snapshot).map_err(board::BoardError::from)?;
        let created = OperationDraft {
            subject: subject(record).to_string(),
            kind: OperationKind::Create,
            at: SystemTime::now(),
            head: HeadChange::Set(stands_on.snapshot),
            details: serde_json::json!({ "name": record.name }).to_string(),
        };
        store.meta().append(&created).map_err(board::BoardError::from)?;
        self.write(layout::BASE, stands_on)
    }
}
