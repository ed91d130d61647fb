//! After a crash: the journal says what was to happen, the branch says whether it did.

use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_sandbox::repository::Reference;
use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;

use super::Rest;
use super::files;
use super::journal::{Journal, Phase};
use super::reference::RefStep;
use crate::error::{Error, GitLock};
use crate::git::{Git, object};
use crate::outcome::Recovered;
use crate::place::Place;

/// What became of a delivery that was interrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    pub target: PathBuf,
    pub outcome: Recovered,
    /// Paths that somebody changed, removed or committed since: they are as that left them. Also what somebody wrote to files
    /// that had been replaced already, under new names.
    pub left_alone: Vec<RelPath>,
}

/// When it is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// By whoever did it.
    AtOnce,
    /// After anything may have happened.
    Later,
}

/// Finishes or undoes what an earlier call left, if it left anything.
pub(crate) fn recover(git: &Git, place: &Place) -> Result<Option<Recovery>, Error> {
    let path = place.journal();
    let Some(mut journal) = Journal::read(&path)? else { return Ok(None) };
    let target = journal.root.clone();
    if !journal.find(&path)? {
        // It may be on a disk that is not there now, or have another name.
        return Err(Error::Missing { target, journal: path, identity: journal.identity.map(Box::new) });
    }
    if let Some(lock) = journal.foreign_lock()? {
        // The index is about to be replaced, and what is being committed must not change beneath.
        let lock = GitLock::found(lock);
        return Err(Error::GitAtWork { target, lock, identity: journal.identity.map(Box::new) });
    }
    if stands(git, &journal)? {
        let Rest { beside, failed } = finish(&path, &journal);
        return match failed {
            None => Ok(Some(Recovery { target, outcome: Recovered::Finished, left_alone: beside })),
            Some(error) => Err(error),
        };
    }
    let left_alone = undo(&path, &journal, When::Later)?;
    Ok(Some(Recovery { target, outcome: Recovered::Undone, left_alone }))
}

/// Whether the point of no return was passed.
pub(super) fn stands(git: &Git, journal: &Journal) -> Result<bool, Error> {
    match &journal.reference {
        None => Ok(journal.phase == Phase::Done),
        Some(step) => has_moved(git, step),
    }
}

/// The result stands: whatever is left to do is done. The journal goes last.
pub(super) fn finish(path: &Path, journal: &Journal) -> Rest {
    let mut beside = Vec::new();
    let failed = last_steps(path, journal, &mut beside).err();
    Rest { beside, failed }
}

fn last_steps(path: &Path, journal: &Journal, beside: &mut Vec<RelPath>) -> Result<(), Error> {
    if let Some(index) = &journal.index {
        let staged = journal.staged.as_ref();
        index.finish(&|new| staged.map_or(Ok(false), |staged| staged.is_as_before(journal, new)))?;
    }
    beside.extend(files::finish(journal)?);
    if let Some(reference) = &journal.reference {
        reference.finish(&journal.id)?;
    }
    if let Some(entry) = &journal.log {
        entry.write(&journal.id)?;
    }
    Ok(fs::remove_file(path)?)
}

/// It does not: whatever was done is undone, but for what others did since.
pub(super) fn undo(path: &Path, journal: &Journal, when: When) -> Result<Vec<RelPath>, Error> {
    let left_alone = files::put_back(journal)?;
    // In the other order than they came, so that no index is without its pack.
    for pack in journal.packs.iter().rev() {
        if fs::exists(pack)? && is_unused(journal, when)? {
            fs::remove_file(pack)?;
        }
    }
    if let Some(reference) = &journal.reference {
        reference.give_back(&journal.id)?;
    }
    if let Some(index) = &journal.index {
        index.undo()?;
    }
    fs::remove_file(path)?;
    Ok(left_alone)
}

/// Whether nobody can have made use of objects that came: only while the index stayed locked, and there is no second one.
fn is_unused(journal: &Journal, when: When) -> Result<bool, Error> {
    let locked = journal.index.as_ref().map_or(Ok(false), super::index_lock::IndexLock::is_held)?;
    Ok(when == When::AtOnce || (locked && journal.reference.as_ref().is_some_and(RefStep::is_alone)))
}

/// Whether the branch is at the new commit, or has gone on from there.
fn has_moved(git: &Git, step: &RefStep) -> Result<bool, Error> {
    if let Some(at) = step.at()
        && (at == step.old.into() || at == Reference::At(step.new))
    {
        return Ok(at == Reference::At(step.new));
    }
    // Every command waits for the answer, wherever it is called.
    step.may_be_asked()?;
    let call = git.call(&step.git_dir).shortly();
    let call = call.args(["rev-parse", "-q", "--verify", "--end-of-options", &step.name]);
    let finished = call.finished(None, &[0, 1, 128])?;
    if !finished.status.success() {
        return Ok(false);
    }
    let tip = object(&finished.stdout)?;
    if tip == step.new || Some(tip) == step.old {
        return Ok(tip == step.new);
    }
    let leads = |from: &ObjectId, to: &ObjectId| -> Result<bool, Error> {
        let call = git.call(&step.git_dir).shortly().args(["merge-base", "--is-ancestor"]).id(from).id(to);
        Ok(call.finished(None, &[0, 1, 128])?.status.success())
    };
    if !leads(&step.new, &tip)? {
        return Ok(false);
    }
    // On the way back the old commit has the new one behind it: whoever went on from there did not see it move.
    match &step.old {
        Some(old) => Ok(leads(old, &step.new)? || !leads(old, &tip)?),
        None => Ok(true),
    }
}
