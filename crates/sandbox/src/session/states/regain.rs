//! A base for a sandbox whose own was never recorded, or is lost with its store.
//!
//! An overlay shows its source wherever neither it nor its pins cover it: so the source as it is now, with the pins,
//! is its base now. The base of a copy is the source copied once more, without what was hidden from it. What changed in the
//! source since the sandbox was made is written down with the base: the old content of a path that both changed is
//! unknown, and a merge treats it as a conflict.

use std::os::fd::AsFd as _;
use std::time::{Duration, UNIX_EPOCH};

use fs_err as fs;
use sandtable_store::id::ObjectId;
use sandtable_store::meta::OperationKind;
use sandtable_store::source::{self, SourceOptions, Stamp};

use super::super::capture::drift_entry;
use super::super::directory::SandboxDirectory;
use super::super::error::{SessionError, Work};
use super::super::record::{DriftEntry, Record};
use super::base::StandsOn;
use super::git::held_head;
use super::ground::is_there;
use super::keep::{Stillness, read_layer};
use super::settle::take_back_half;
use super::{open, plain};
use crate::board::take::{Words, commit, hash_kind, look, look_alone};
use crate::board::{self, Consistency, Ignored, Subject, Taking};
use crate::model::layer::LayerName;
use crate::model::layout::LayerPart;
use crate::model::spec::WorkspaceMode;
use crate::repository::base_head;

/// Records a base for the sandbox as it is now. The lock must be held.
pub(super) fn regain(directory: &SandboxDirectory, record: &Record) -> Result<(), SessionError> {
    let mode = record.resolved.mode.value;
    let is_known = matches!(mode, WorkspaceMode::Overlay | WorkspaceMode::Copy);
    if !is_known || (record.sees_source() && !is_there(record)) {
        let work = match plain::root(directory, record) {
            Some(files) => Work::Files(files),
            None => {
                Work::Layer(directory.layer(&LayerName::Workspace, LayerPart::Upper).as_path().to_owned())
            }
        };
        return Err(SessionError::Groundless { name: record.name.clone(), work });
    }
    let head = held_head(directory, record).or_else(|| base_head(&record.resolved.source.root));
    let head = head.filter(|_| record.sees_source());
    let moved = if record.sees_source() { moved(directory, record)? } else { Vec::new() };
    let snapshot = match mode {
        WorkspaceMode::Copy => plain::record_again(directory, record)?,
        _ => record_ground(directory, record)?,
    };
    directory.stand_on_this(record, &StandsOn { moved, ..StandsOn::new(snapshot, head) })
}

/// Records the ground and the pins as a state of the source.
fn record_ground(directory: &SandboxDirectory, record: &Record) -> Result<ObjectId, SessionError> {
    let source = record.resolved.source.root.as_path();
    let kind = if record.sees_source() { hash_kind(source)? } else { hash_kind(record.ground().as_path())? };
    let store = directory.board().open(source, kind)?;
    let subject = Subject::directory(source);
    let batch = store.begin().map_err(board::BoardError::from)?;
    let (message, rules) = (Some("the source"), directory.board().users_rules(source));
    let taking = Taking { message, rules: &rules, ..Taking::of(Ignored::None, &OperationKind::Onboard, &()) };
    let (ignored, mut seen) = if record.sees_source() {
        (Ignored::None, look(&batch, &subject, source, &taking)?)
    } else {
        (Ignored::All, look_alone(&batch, &super::subject(record), record.ground().as_path(), &taking)?)
    };
    let pins = directory.layer(&LayerName::Workspace, LayerPart::Pins);
    if pins.as_path().is_dir() {
        take_back_half(directory, record)?;
        let pins = open(pins.as_path())?;
        seen.state =
            read_layer(record, pins.as_fd(), (&batch, &seen.state), (Stillness::Stopped, &()))?.state;
        // What they hold of git is no part of a state of the source.
        seen.state.layer = None;
    }
    let parent = store.meta().head(&subject.to_string()).map_err(board::BoardError::from)?;
    let parent = parent.map(|head| head.snapshot);
    let consistency = Consistency::Stable;
    let words = Words { subject: &subject, parent, consistency, ignored, taking: &taking };
    Ok(commit(&store, batch, &seen, &words)?.id)
}

/// What changed in the source since the sandbox was made.
fn moved(directory: &SandboxDirectory, record: &Record) -> Result<Vec<DriftEntry>, SessionError> {
    let source = record.resolved.source.root.as_path();
    let found = source::drift(None, source, made_at(directory, record), &SourceOptions::new(&|| false));
    let found = found.map_err(|source| SessionError::Capture {
        name: record.name.clone(),
        source: sandtable_store::layer::LayerError::Open(std::io::Error::other(source)),
    })?;
    Ok(found.iter().map(drift_entry).collect())
}

/// A moment before which nothing of the sandbox was mounted: its lock is made first of all, and the record says the second.
fn made_at(directory: &SandboxDirectory, record: &Record) -> Stamp {
    let latest = UNIX_EPOCH + Duration::from_secs(record.created_at.saturating_add(1));
    let locked = fs::metadata(directory.lock_path().as_path()).and_then(|found| found.modified());
    let at = locked.map_or(latest, |locked| locked.min(latest));
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Stamp::from_nanoseconds(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
