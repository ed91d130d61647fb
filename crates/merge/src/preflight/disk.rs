//! The user's files against the result: what is as it should be, and what somebody has changed.

use std::collections::{BTreeMap, BTreeSet};

use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;
use sandtable_store::object::{ObjectKind, hash};

use crate::error::Error;
use crate::file_step::FileStep;
use crate::halt::Halt;
use crate::index::{Index, Indexed, outside_sparse};
use crate::lookup::lookup;
use crate::named::Named;
use crate::plan::Plan;
use crate::refusal::{Reason, Refusal};
use crate::request::{MergeRequest, Mode as Wanted};
use crate::target::{Repository, Target};
use crate::tree::{Change, Entry, Mode};
use crate::worktree::{Seen, Worktree};

/// A file that was there before the sandbox but never committed: the branch has no version of it to merge with.
pub(crate) fn untracked(plan: &Plan, request: &MergeRequest) -> Result<(), Halt> {
    let Some(root) = plan.target.root() else { return Ok(()) };
    let had: Vec<&Change> = plan.delivery.iter().filter(|change| change.old.is_some()).collect();
    let tracked = lookup(&plan.scratch, &plan.ours, had.iter().map(|change| &change.path))?;
    let worktree = Worktree::open(root.as_path())?;
    let mut found = Vec::new();
    for change in had.iter().filter(|change| !tracked.contains_key(&change.path)) {
        if matches!(worktree.see(&change.path)?, Seen::File { .. } | Seen::Symlink(_)) {
            found.push(Named::new(&change.path, "it is not tracked by git"));
        }
    }
    if found.is_empty() || matches!(request.mode, Wanted::Patch(_)) {
        return Ok(());
    }
    Err(Refusal::of(Reason::Dirty, "the work is on files that are not committed", found).into())
}

/// Holds every path of the result against index and files, and says what is to be done with the files.
pub(crate) fn files(plan: &mut Plan) -> Result<(), Halt> {
    let Target::Repository(repository) = plan.target.clone() else { return Ok(()) };
    let root = repository.root.clone().expect("a bare repository was refused");
    let worktree = Worktree::open(root.as_path())?;
    let index = Index::copy(&repository.git_dir)?;
    let paths: BTreeSet<&RelPath> = plan.delivery.iter().map(|change| &change.path).collect();
    let indexed = index.entries(&plan.scratch, &paths)?;
    let unshown = unshown(plan, &repository, &indexed)?;
    learn(plan)?;
    let removed: BTreeSet<RelPath> = plan
        .delivery
        .iter()
        .filter(|change| change.new.is_none())
        .map(|change| change.path.clone())
        .collect();
    let (mut steps, mut wrong) = (Vec::new(), Vec::new());
    for change in &plan.delivery {
        let known = indexed.get(&change.path).cloned().unwrap_or_default();
        let seen = worktree.see(&change.path)?;
        let checked = staged_as(change, &known).and_then(|()| {
            if unshown.contains(&change.path) && seen == Seen::Absent {
                return Ok(Todo::Nothing);
            }
            on_disk(plan, &worktree, (change, &seen), &removed)
        });
        match checked {
            Ok(Todo::Nothing) => {}
            Ok(Todo::Write) => steps.push(FileStep { path: change.path.clone(), seen, new: change.new }),
            Err(Trouble::Told(why)) => wrong.push(Named::new(&change.path, why)),
            Err(Trouble::Failed(error)) => return Err(error.into()),
        }
    }
    if !wrong.is_empty() {
        return Err(Refusal::of(Reason::Dirty, "local changes are in the way", wrong).into());
    }
    (plan.files, plan.index, plan.unshown) = (steps, Some(index), unshown);
    Ok(())
}

enum Todo {
    Nothing,
    Write,
}

enum Trouble {
    Told(&'static str),
    Failed(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The index must have the old version or the new one.
fn staged_as(change: &Change, known: &Indexed) -> Result<(), Trouble> {
    const EMPTY: [&str; 2] = [
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
    ];
    let announced = |entry: Entry| change.old.is_none() && EMPTY.contains(&entry.id.to_string().as_str());
    match known.entry {
        _ if known.unmerged => Err(Trouble::Told("it has unmerged versions")),
        entry if entry == change.old || entry == change.new => Ok(()),
        Some(entry) if announced(entry) => Ok(()),
        _ => Err(Trouble::Told("another version of it is staged")),
    }
}

/// The file must be the old version, or the new one already.
fn on_disk(
    plan: &Plan,
    worktree: &Worktree,
    (change, seen): (&Change, &Seen),
    removed: &BTreeSet<RelPath>,
) -> Result<Todo, Trouble> {
    let gitlink = |entry: Option<Entry>| entry.is_some_and(|entry| entry.mode == Mode::Gitlink);
    match (gitlink(change.old), gitlink(change.new)) {
        (false, false) => {}
        (true, true) => return Ok(Todo::Nothing),
        _ if matches!(seen, Seen::Absent) => return Ok(Todo::Nothing),
        _ => return Err(Trouble::Told("a submodule is there, or should be")),
    }
    let entry = as_entry(plan, &change.path, seen, change.old.or(change.new))?;
    match seen {
        Seen::Absent | Seen::Directory | Seen::Behind if change.new.is_none() => Ok(Todo::Nothing),
        Seen::Absent if change.old.is_none() => Ok(Todo::Write),
        Seen::Absent => Err(Trouble::Told("it was removed in the worktree")),
        Seen::File { .. } | Seen::Symlink(_) if entry == change.new => Ok(Todo::Nothing),
        Seen::File { .. } | Seen::Symlink(_) if entry == change.old => Ok(Todo::Write),
        Seen::File { .. } | Seen::Symlink(_) if change.old.is_none() => {
            Err(Trouble::Told("an untracked file is in the way"))
        }
        Seen::File { .. } | Seen::Symlink(_) => Err(Trouble::Told("it was changed in the worktree")),
        Seen::Directory => {
            let (_, others) = worktree.below(&change.path)?;
            let gone = others.iter().all(|path| removed.contains(path));
            if gone {
                Ok(Todo::Write)
            } else {
                Err(Trouble::Told("a directory with other files is in the way"))
            }
        }
        Seen::Behind if has_removed_ancestor(&change.path, removed) => Ok(Todo::Write),
        Seen::Behind => Err(Trouble::Told("something on the way to it is not a directory")),
        Seen::Other => Err(Trouble::Told("something that is no file is in the way")),
    }
}

fn has_removed_ancestor(path: &RelPath, removed: &BTreeSet<RelPath>) -> bool {
    std::iter::successors(path.parent(), RelPath::parent).any(|above| removed.contains(&above))
}

/// What is on disk as an entry of a tree.
fn as_entry(plan: &Plan, path: &RelPath, seen: &Seen, like: Option<Entry>) -> Result<Option<Entry>, Error> {
    plan.scratch.attention().heed()?;
    let Some((mut mode, bytes)) = seen.content() else { return Ok(None) };
    let keeps_modes = match &plan.target {
        Target::Repository(repository) => repository.settings.get("core.filemode") != Some("false"),
        Target::Plain { .. } => true,
    };
    if let Some(like) = like.filter(|like| !keeps_modes && like.mode.is_regular() && mode.is_regular()) {
        mode = like.mode;
    }
    let id = match mode {
        Mode::Symlink => {
            hash(plan.scratch.format(), ObjectKind::Blob, bytes).map_err(std::io::Error::other)?
        }
        _ => plan.conversion.name(&plan.scratch, &plan.attributes, (path, bytes))?,
    };
    Ok(Some(Entry { mode, id }))
}

/// Paths of the result that the user's sparse checkout leaves out.
fn unshown(
    plan: &Plan,
    repository: &Repository,
    indexed: &BTreeMap<RelPath, Indexed>,
) -> Result<BTreeSet<RelPath>, Error> {
    let mut found: BTreeSet<RelPath> =
        indexed.iter().filter(|(_, known)| known.skipped).map(|(path, _)| path.clone()).collect();
    let rules = repository.git_dir.join("info/sparse-checkout");
    if repository.settings.is_true("core.sparsecheckout") && rules.exists() {
        let added = plan.delivery.iter().filter(|change| change.old.is_none()).map(|change| &change.path);
        let added: Vec<&RelPath> = added.collect();
        found.extend(outside_sparse(&plan.scratch, &rules, &added)?);
    }
    Ok(found)
}

fn learn(plan: &mut Plan) -> Result<(), Error> {
    let paths: Vec<&RelPath> = plan.delivery.iter().map(|change| &change.path).collect();
    if matches!(plan.target, Target::Repository(_)) {
        plan.conversion.ask(&plan.scratch, &plan.attributes, &paths)?;
    }
    Ok(())
}

/// The tree `ours` with these paths as they are on disk.
pub(crate) fn as_on_disk(plan: &mut Plan, worktree: &Worktree, paths: &[RelPath]) -> Result<ObjectId, Halt> {
    let names: BTreeSet<&RelPath> = paths.iter().collect();
    let indexed = match plan.target.clone() {
        Target::Plain { .. } => BTreeMap::new(),
        Target::Repository(repository) => {
            let list: Vec<&RelPath> = paths.iter().collect();
            plan.conversion.ask(&plan.scratch, &plan.attributes, &list)?;
            if plan.index.is_none() {
                plan.index = Some(Index::copy(&repository.git_dir)?);
            }
            plan.index.as_ref().expect("set above").entries(&plan.scratch, &names)?
        }
    };
    let before = lookup(&plan.scratch, &plan.ours, paths.iter())?;
    let (mut edits, mut wrong) = (Vec::new(), Vec::new());
    for path in paths {
        let (seen, known) = (worktree.see(path)?, indexed.get(path).cloned().unwrap_or_default());
        let old = before.get(path).copied();
        if known.unmerged {
            wrong.push(Named::new(path, "it has unmerged versions"));
        } else if seen == Seen::Other {
            wrong.push(Named::new(path, "something that is no file is in the way"));
        }
        let unshown = seen == Seen::Absent && known.skipped;
        let gitlink = old.is_some_and(|old| old.mode == Mode::Gitlink);
        if !unshown && !gitlink {
            let entry = as_entry(plan, path, &seen, old)?;
            if entry != old {
                keep(plan, path, &seen)?;
                edits.push((path, entry));
            }
        }
    }
    if !wrong.is_empty() {
        return Err(Refusal::of(Reason::Dirty, "local changes are in the way", wrong).into());
    }
    Ok(plan.scratch.edited(&plan.ours, edits)?)
}

/// Brings the content of a file into the scratch repository.
fn keep(plan: &Plan, path: &RelPath, seen: &Seen) -> Result<(), Error> {
    match seen.content() {
        Some((Mode::Symlink, target)) => plan.scratch.write_blob(target).map(drop),
        Some((_, bytes)) => plan.conversion.clean(&plan.scratch, &plan.attributes, (path, bytes)).map(drop),
        None => Ok(()),
    }
}

/// What to do with files when the result was made from what is on disk.
pub(crate) fn disk_steps(plan: &mut Plan, worktree: &Worktree) -> Result<(), Halt> {
    let removed: BTreeSet<RelPath> = plan
        .delivery
        .iter()
        .filter(|change| change.new.is_none())
        .map(|change| change.path.clone())
        .collect();
    let (mut steps, mut wrong) = (Vec::new(), Vec::new());
    for change in &plan.delivery {
        let gitlinks =
            [change.old, change.new].into_iter().flatten().any(|entry| entry.mode == Mode::Gitlink);
        let seen = worktree.see(&change.path)?;
        let why = match &seen {
            _ if gitlinks => Some("the commit of a submodule is not a file"),
            Seen::Directory if change.new.is_some() => {
                let (_, others) = worktree.below(&change.path)?;
                let gone = others.iter().all(|path| removed.contains(path));
                (!gone).then_some("a directory with other files is in the way")
            }
            Seen::Behind if change.new.is_some() && !has_removed_ancestor(&change.path, &removed) => {
                Some("something on the way to it is not a directory")
            }
            Seen::Other => Some("something that is no file is in the way"),
            Seen::File { .. } | Seen::Symlink(_)
                if as_entry(plan, &change.path, &seen, change.old)? != change.old =>
            {
                Some("it is being changed at this moment")
            }
            _ => None,
        };
        match why {
            Some(why) => wrong.push(Named::new(&change.path, why)),
            None => steps.push(FileStep { path: change.path.clone(), seen, new: change.new }),
        }
    }
    if !wrong.is_empty() {
        return Err(Refusal::of(Reason::Dirty, "local changes are in the way", wrong).into());
    }
    plan.files = steps;
    Ok(())
}
