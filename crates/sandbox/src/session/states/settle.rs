//! Holding a sandbox to the state it stands on while its source goes on.

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use sandtable_store::diff::{self, Renames};
use sandtable_store::layer::write::{LayerWriteOptions, pin, unpin, unpinned};
use sandtable_store::meta::OperationKind;
use sandtable_store::path::RelPath;
use sandtable_store::state::LeftOut;
use serde::{Deserialize, Serialize};

use super::super::create::make;
use super::super::directory::SandboxDirectory;
use super::super::error::SessionError;
use super::super::record::{Record, SCHEMA};
use super::ground::{is_there, replace_source};
use super::keep::left_out;
use super::{open, plain, state};
use crate::board::{self, Ignored, Subject, Taking};
use crate::model::layer::LayerName;
use crate::model::layout::{LayerPart, PINNING, RECORD};
use crate::model::spec::WorkspaceMode;

/// What is made in the layer of pins, on disk while that is done.
#[derive(Debug, Deserialize, Serialize)]
pub(in crate::session) struct PinningFile {
    schema: u32,
    made: Vec<OsString>,
}

impl PinningFile {
    fn new(made: &[RelPath]) -> Self {
        let made = made.iter().map(|path| OsString::from_vec(path.as_bytes().to_vec())).collect();
        Self { schema: SCHEMA, made }
    }

    /// What we wrote is a list of paths; any other word is none of ours, and nothing is removed for it.
    fn made(&self) -> Vec<RelPath> {
        self.made.iter().filter_map(|path| RelPath::new(path.as_bytes()).ok()).collect()
    }
}

/// What had to be done so that a sandbox stands on what it recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Settled {
    /// So many paths of the source had moved, and are shown as they were.
    Pinned(usize),
    /// The source is gone, or another directory by now: its recorded state stands in its place.
    Replaced,
}

/// Pins whatever moved in the source since the sandbox was made: its layer of pins shows it as it was. That
/// layer is then among the mounts of the record. A source that is no more is replaced as a whole. To be called before a
/// mount, with the lock held.
pub(in crate::session) fn settle(
    directory: &SandboxDirectory,
    record: &mut Record,
) -> Result<Settled, SessionError> {
    if let Some(root) = plain::root(directory, record)
        && directory.read_base()?.is_some()
    {
        // A way back that was killed is gone to its end before anything runs on half of it.
        board::mend(&directory.standing(record)?.1, &root)?;
        return Ok(Settled::Pinned(0));
    }
    let overlay = record.resolved.mode.value == WorkspaceMode::Overlay;
    if !overlay || directory.read_base()?.is_none() || !record.sees_source() {
        return Ok(Settled::Pinned(0));
    }
    take_back_half(directory, record)?;
    let (stands_on, store) = directory.standing(record)?;
    if !is_there(record) {
        replace_source(directory, record, stands_on.snapshot)?;
        if let Some(mut stored) = stored(directory)? {
            stored.resolved.mounts.clone_from(&record.resolved.mounts);
            directory.write(RECORD, &stored)?;
        }
        return Ok(Settled::Replaced);
    }
    let base = state(&store, &stands_on.snapshot)?;
    let source = record.resolved.source.root.as_path().to_owned();
    // By the rules of then: whatever they ignored is no part of the state it stands on, and has not come since.
    let LeftOut { exclude, .. } = left_out(&store, &base).unwrap_or_default();
    let taking = Taking { rules: &exclude, ..Taking::of(Ignored::None, &OperationKind::Onboard, &()) };
    let batch = store.begin().map_err(board::BoardError::from)?;
    let now = board::take::look(&batch, &Subject::directory(&source), &source, &taking)?;
    // All of it, or the sandbox would see part of another state.
    let (file_bytes, path_bytes) = (0, usize::MAX);
    let options =
        diff::DiffOptions { renames: Renames::Ignore, file_bytes, path_bytes, ..Default::default() };
    let moved = diff::diff(&batch, &now.state, &base, &options).map_err(board::BoardError::from)?;
    if moved.changes.is_empty() {
        return Ok(Settled::Pinned(0));
    }
    let paths: Vec<RelPath> = moved.changes.into_iter().map(|change| change.path).collect();
    let pins = directory.layer(&LayerName::Workspace, LayerPart::Pins);
    if !pins.as_path().exists() {
        make(&pins)?;
    }
    let (layer, lower) = (open(pins.as_path())?, open(&source)?);
    let options = LayerWriteOptions { lower: Some(lower.as_fd()), ..LayerWriteOptions::default() };
    directory.write(PINNING, &PinningFile::new(&unpinned(layer.as_fd(), &paths)))?;
    let pinned = pin(store.objects(), &base, (layer.as_fd(), &paths), &options);
    if let Err(source) = pinned {
        take_back_half(directory, record)?;
        return Err(SessionError::Layer { name: record.name.clone(), source });
    }
    directory.drop_pinning()?;
    // What is on disk has neither the values of variables nor what only holds for this call.
    record.resolved.mounts.cover(&LayerName::Workspace);
    if let Some(mut stored) = stored(directory)? {
        stored.resolved.mounts.cover(&LayerName::Workspace);
        directory.write(RECORD, &stored)?;
    }
    Ok(Settled::Pinned(paths.len()))
}

/// Takes out of the layer of pins what was being written when somebody was killed. A file would stay half for good, because
/// what is there counts as pinned. With the lock held.
pub(super) fn take_back_half(directory: &SandboxDirectory, record: &Record) -> Result<(), SessionError> {
    let Some(pinning) = directory.read_pinning()? else { return Ok(()) };
    let layer = open(directory.layer(&LayerName::Workspace, LayerPart::Pins).as_path())?;
    unpin(layer.as_fd(), &pinning.made())
        .map_err(|source| SessionError::Layer { name: record.name.clone(), source })?;
    directory.drop_pinning()
}

/// The record on disk; a sandbox that is being made has none yet.
fn stored(directory: &SandboxDirectory) -> Result<Option<Record>, SessionError> {
    match directory.read_record() {
        Err(SessionError::Unknown(_)) => Ok(None),
        found => found.map(Some),
    }
}
