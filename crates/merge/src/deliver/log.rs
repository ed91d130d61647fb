//! The entry in the log of the target. It is part of the delivery: the journal has it before anything is touched, and it is
//! written once the result stands, by whoever finishes it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sandtable_store::meta::{Durability, Filter, HeadChange, MetaError, OperationDraft, OperationKind};
use sandtable_store::store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::encoded::hex_path;
use crate::error::Error;
use crate::recorded::{Recorded, delivery_of, marked};
use crate::request::Log;

/// The entry of an interrupted delivery is among the newest, if it is there at all: every command recovers first.
const NEWEST: u32 = 100;

/// What is going to be written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LogEntry {
    #[serde(with = "hex_path")]
    store: PathBuf,
    subject: String,
    pub(super) kind: OperationKind,
    details: String,
    /// Since 1970.
    nanoseconds: u64,
}

impl LogEntry {
    /// Of a merge or an apply, or of one that is taken back or done again.
    pub(super) fn new(log: &Log, done: &Recorded) -> Self {
        let (kind, details) = match &log.over {
            None => (done.kind(), serde_json::to_string(done).expect("plain data")),
            Some(over) => (over.direction.kind(), serde_json::json!({ "over": over.number }).to_string()),
        };
        Self::of(log, kind, details)
    }

    /// Of a merge that is taken back or done again.
    pub(super) fn over(log: &Log) -> Option<Self> {
        let over = log.over.as_ref()?;
        Some(Self::of(log, over.direction.kind(), serde_json::json!({ "over": over.number }).to_string()))
    }

    fn of(log: &Log, kind: OperationKind, details: String) -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self {
            store: log.store.as_path().to_owned(),
            subject: log.subject.clone(),
            kind,
            details,
            nanoseconds: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// Writes it, unless it is there.
    pub(super) fn write(&self, delivery: &str) -> Result<(), Error> {
        let store = match Store::open(&self.store) {
            // There is no log any more.
            Err(StoreError::Missing(_)) => return Ok(()),
            opened => opened.map_err(|error| failed(&self.store, error))?,
        };
        let meta = |error: MetaError| failed(&self.store, error.into());
        let filter =
            Filter { subject: Some(self.subject.clone()), newest: Some(NEWEST), ..Filter::default() };
        let known = store.meta().operations(&filter).map_err(meta)?;
        if known.iter().any(|operation| delivery_of(&operation.details).as_deref() == Some(delivery)) {
            return Ok(());
        }
        let draft = OperationDraft {
            subject: self.subject.clone(),
            kind: self.kind.clone(),
            at: SystemTime::UNIX_EPOCH + Duration::from_nanos(self.nanoseconds),
            head: HeadChange::Keep,
            details: marked(&self.details, delivery),
        };
        // The target itself is no safer from a power cut.
        store.meta().append_as(&draft, Durability::Batched).map_err(meta)?;
        Ok(())
    }
}

fn failed(store: &Path, source: StoreError) -> Error {
    Error::Log { store: store.to_owned(), source: Box::new(source) }
}
