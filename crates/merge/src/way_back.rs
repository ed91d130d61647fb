//! A merge that is taken back or done again, while its branch is still where that left it.

use std::collections::BTreeSet;

use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::repository::short;
use sandtable_store::id::ObjectId;
use sandtable_store::object::ObjectKind;
use sandtable_store::object::commit::references;

use super::convert::Conversion;
use super::halt::Halt;
use super::place::Place;
use super::plan::{Concurrency, Plan};
use super::preflight;
use super::refusal::{Reason, Refusal};
use super::request::{Log, Means, Mode, Way};
use super::scratch::Scratch;
use super::target::{self, Head, Repository, Target};
use super::whole::Whole;

/// A merge to be taken back.
#[derive(Clone, Debug)]
pub struct Undo {
    pub target: HostPath,
    /// The commit that the merge made.
    pub commit: ObjectId,
    /// The full name of the branch that it moved, where that is known: no other is moved back or forth.
    pub branch: Option<String>,
    /// Whether that branch had no commit before. Commits made inside may have come below that of the merge.
    pub first: bool,
    /// Where it is written down, as a part of it.
    pub log: Option<Log>,
}

/// The plan, and the commit that the branch goes to.
pub(super) fn turn(means: &Means, place: &Place, request: &Undo, way: Way) -> Result<(Plan, ObjectId), Halt> {
    let target = target::read(means, &request.target)??;
    let Target::Repository(repository) = &target else {
        return Err(moved("there is no repository any more").into());
    };
    on_its_branch(repository, request)?;
    preflight::undoable(repository).map_err(|refusal| again(refusal, way))?;
    let scratch =
        Scratch::new(&means.git, place.scratch("undo"), request.commit.kind(), &[&repository.objects()])?;
    let scratch = scratch.with_settings(repository.settings.passed_on());
    let Ok(commit) = scratch.trees().read(&request.commit, ObjectKind::Commit) else {
        return Err(moved("the repository does not have the commit of the merge any more").into());
    };
    let parents = references(&commit).map(|found| found.parents).unwrap_or_default();
    let Some(before) = parents.first().copied().filter(|_| !request.first) else {
        return Err(first(repository).into());
    };
    let (from, to) = match way {
        Way::Back => (request.commit, before),
        Way::There => (before, request.commit),
    };
    if repository.head.tip() != Some(&from) {
        return Err(gone_on(repository, request, (way, parents.len())).into());
    }
    let (ours, result) = (scratch.tree_of(&from)?, scratch.tree_of(&to)?);
    let delivery = scratch.changes(&ours, &result)?;
    let conversion = Conversion::new(target.autocrlf());
    let mut plan = Plan {
        scratch,
        target,
        base: ours,
        theirs: result,
        ours,
        result,
        concurrency: Concurrency::FastForward,
        delivery,
        files: Vec::new(),
        conversion,
        attributes: ours,
        index: None,
        unshown: BTreeSet::new(),
        history: None,
        whole: Whole::default(),
    };
    let halted = |halt| match halt {
        Halt::Refused(refusal) => Halt::Refused(again(refusal, way)),
        halt => halt,
    };
    preflight::files(&mut plan).map_err(halted)?;
    preflight::writable(&plan, &Mode::Merge).map_err(halted)?;
    Ok((plan, to))
}

fn moved(text: impl Into<String>) -> Refusal {
    Refusal::new(Reason::Moved, text)
}

/// A branch without a commit is nothing that a branch can be moved to.
fn first(repository: &Repository) -> Refusal {
    let text = format!(
        "the merge made the first commit of `{}`, and there is none to go back to",
        repository.head.short()
    );
    moved(text)
        .with("`git update-ref -d HEAD` takes the commit away, and leaves its files, added to the index")
}

/// No branch is moved that the merge did not move, though it may be at the same commit.
fn on_its_branch(repository: &Repository, request: &Undo) -> Result<(), Refusal> {
    let Some(branch) = request.branch.as_deref() else { return Ok(()) };
    if repository.head.branch() == Some(branch) {
        return Ok(());
    }
    let here = match &repository.head {
        Head::Detached { .. } => "no branch is checked out now".to_owned(),
        head => format!("`{}` is checked out now", head.short()),
    };
    let name = short(branch);
    let text = format!("the merge was made on `{name}`, and {here}");
    Err(Refusal::new(Reason::OtherBranch, text).with(format!("`git switch {name}`, then again")))
}

/// Somebody committed since, or moved the branch.
fn gone_on(repository: &Repository, request: &Undo, (way, parents): (Way, usize)) -> Refusal {
    let id = request.commit.short(12);
    let at = repository.head.tip().map(|tip| format!(": it is at {}", tip.short(12))).unwrap_or_default();
    let line = if parents > 1 { "-m 1 " } else { "" };
    let (left, next) = match way {
        Way::Back => {
            ("the merge", format!("`git revert {line}{id}` takes it back on top of what came since"))
        }
        Way::There => {
            ("undo", format!("`git cherry-pick {line}{id}` does it again on top of what came since"))
        }
    };
    moved(format!("branch `{}` is not where {left} left it{at}", repository.head.short())).with(next)
}

/// What is advised for a merge does not help on its way back.
fn again(refusal: Refusal, way: Way) -> Refusal {
    let word = match way {
        Way::Back => "undo",
        Way::There => "redo",
    };
    match refusal.reason {
        // A commit would move the branch, and then there is no way back.
        Reason::Dirty => refusal.with(format!("`git stash`, then `{word} --merge`, then `git stash pop`")),
        Reason::Operation => refusal.with("end it first, then again"),
        Reason::Detached => refusal.with("`git switch` to its branch first"),
        Reason::NotWritable => refusal.with("again, once you may write there"),
        Reason::Signing => {
            refusal.with("`git revert` the commit of the merge yourself, or turn the setting off")
        }
        _ => refusal,
    }
}
