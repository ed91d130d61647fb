//! After a crash: the journal says what was to happen, the branch says whether it did.

use std::path::Path;

use fs_err as fs;

use super::files;
use super::journal::{Journal, Phase, RefStep};
use crate::merge::error::Error;
use crate::merge::git::{Git, object};
use crate::merge::outcome::Recovered;
use crate::merge::place::Place;

/// Finishes or undoes what an earlier call left, if it left anything.
pub(in crate::merge) fn recover(git: &Git, place: &Place) -> Result<Option<Recovered>, Error> {
    let path = place.journal();
    let Some(journal) = Journal::read(&path)? else { return Ok(None) };
    let stands = match &journal.reference {
        None => journal.phase == Phase::Done,
        Some(step) => has_moved(git, step)?,
    };
    if stands {
        finish(&path, &journal)?;
        return Ok(Some(Recovered::Finished));
    }
    undo(&path, &journal)?;
    Ok(Some(Recovered::Undone))
}

/// The result stands: whatever is left to do is done.
pub(super) fn finish(path: &Path, journal: &Journal) -> Result<(), Error> {
    if let Some(index) = &journal.index {
        index.finish()?;
    }
    files::finish(journal)?;
    Ok(fs::remove_file(path)?)
}

/// It does not: whatever was done is undone.
pub(super) fn undo(path: &Path, journal: &Journal) -> Result<(), Error> {
    files::put_back(journal)?;
    if let Some(index) = &journal.index {
        index.undo()?;
    }
    // In the other order than they came, so that no index is without its pack.
    for pack in journal.packs.iter().rev().filter(|pack| pack.exists()) {
        fs::remove_file(pack)?;
    }
    Ok(fs::remove_file(path)?)
}

/// Whether the branch is at the new commit, or has gone on from there.
fn has_moved(git: &Git, step: &RefStep) -> Result<bool, Error> {
    let call = git.call(&step.git_dir).args(["rev-parse", "-q", "--verify", "--end-of-options", &step.name]);
    let finished = call.finished(None, &[0, 1, 128])?;
    if !finished.status.success() {
        return Ok(false);
    }
    let tip = object(&finished.stdout)?;
    if tip == step.new || Some(tip) == step.old {
        return Ok(tip == step.new);
    }
    let call = git.call(&step.git_dir).args(["merge-base", "--is-ancestor"]).id(&step.new).id(&tip);
    Ok(call.finished(None, &[0, 1, 128])?.status.success())
}
