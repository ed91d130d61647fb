//! Holding a sandbox to the state it stands on while its source goes on.

use std::os::fd::AsFd as _;

use sandtable_store::diff::{self, Renames};
use sandtable_store::layer::write::{Options, pin};
use sandtable_store::path::RelPath;

use super::super::create::make;
use super::super::directory::{Part, SandboxDirectory};
use super::super::error::Error;
use super::super::files::RECORD;
use super::super::record::Record;
use super::{open, state};
use crate::board::{self, Ignored, Silent, Subject, Taking};
use crate::resolve::WORKSPACE;

/// Pins whatever moved in the source since the sandbox was made: its layer of pins shows it as it was. That
/// layer is then among the mounts of the record. Returns how many paths had moved. To be called before a mount, with
/// the lock held.
pub(in crate::session) fn settle(directory: &SandboxDirectory, record: &mut Record) -> Result<usize, Error> {
    if directory.read_base()?.is_none() {
        return Ok(0);
    }
    let (stands_on, store) = directory.standing(record)?;
    let base = state(&store, &stands_on.snapshot)?;
    let source = record.resolved.source.root.as_path().to_owned();
    let hearing = Silent::default();
    let taking = Taking::of(Ignored::None, "onboard", &hearing);
    let batch = store.begin().map_err(board::Error::from)?;
    let now = board::take::look(&batch, &Subject::directory(&source), &source, &taking)?;
    let options = diff::Options { renames: Renames::Ignore, file_bytes: 0, ..diff::Options::default() };
    let moved = diff::diff(&batch, &now.state, &base, &options).map_err(board::Error::from)?;
    if moved.changes.is_empty() {
        return Ok(0);
    }
    let paths: Vec<RelPath> = moved.changes.into_iter().map(|change| change.path).collect();
    let pins = directory.layer(WORKSPACE, Part::Pins);
    if !pins.as_path().exists() {
        make(&pins)?;
    }
    let (layer, lower) = (open(pins.as_path())?, open(&source)?);
    let options = Options { lower: Some(lower.as_fd()), ..Options::default() };
    pin(store.objects(), &base, (layer.as_fd(), &paths), &options)
        .map_err(|source| Error::Layer { name: record.name.clone(), source })?;
    // What is on disk has neither the values of variables nor what only holds for this call.
    let mut stored = directory.read_record()?;
    for record in [&mut stored, record] {
        record.resolved.mounts.cover(WORKSPACE);
    }
    directory.write(RECORD, &stored)?;
    Ok(paths.len())
}
