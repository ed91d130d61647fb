//! States of a repository in which nothing may be brought there, whatever the changes are.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use fs_err as fs;
use sandtable_store::{RelPath, regular};

use crate::halt::Halt;
use crate::named::Named;
use crate::outcome::Note;
use crate::plan::Plan;
use crate::refusal::{Reason, Refusal};
use crate::report::Report;
use crate::request::{MergeRequest, Mode};
use crate::target::{Head, Repository, Target};
use crate::tree::foreign;

/// The largest lock with a word of ours.
const WORD: u64 = 1 << 10;

/// Looks at everything that does not depend on the changes.
pub(crate) fn state(target: &Target, request: &MergeRequest) -> Result<(), Refusal> {
    let repository = match target {
        Target::Plain { .. } if matches!(request.mode, Mode::Apply | Mode::Patch(_)) => return Ok(()),
        Target::Plain { root } => {
            let text = format!("`{root}` is not the top of a git repository");
            return Err(Refusal::new(Reason::NotARepository, text));
        }
        Target::Repository(repository) => repository,
    };
    if repository.format != request.base.kind() {
        let (theirs, ours) = (request.base.kind().name(), repository.format.name());
        let text = format!("the snapshot has {theirs} names, the repository {ours}");
        return Err(Refusal::new(Reason::ObjectFormat, text));
    }
    if request.mode.writes_files() {
        for_files(repository)?;
    }
    if request.mode == Mode::Merge {
        for_commit(repository)?;
    }
    Ok(())
}

/// The same for taking a commit back.
pub(crate) fn undoable(repository: &Repository) -> Result<(), Refusal> {
    for_files(repository)?;
    for_commit(repository)
}

/// What its user calls it.
fn place(repository: &Repository) -> std::path::Display<'_> {
    repository.root.as_ref().map_or(repository.git_dir.as_path(), |root| root.as_path()).display()
}

fn for_files(repository: &Repository) -> Result<(), Refusal> {
    if repository.root.is_none() {
        let text = format!("`{}` is a bare repository: it has no files to change", place(repository));
        return Err(Refusal::new(Reason::Bare, text).with("name a directory with files: `--into DIR`"));
    }
    if let Some(operation) = repository.operation {
        let text = format!("a {operation} is in progress in `{}`", place(repository));
        return Err(Refusal::new(Reason::Operation, text));
    }
    if let Some(lock) = repository.locks.first() {
        let text = match regular::read_to_string(lock, WORD) {
            Ok(word) if word.starts_with("sandtable ") => {
                format!(
                    "`{}` was left by an interrupted merge of ours, whose journal is gone",
                    lock.display()
                )
            }
            _ => format!("`{}` exists: git is at work there, or died at it", lock.display()),
        };
        return Err(Refusal::new(Reason::Locked, text));
    }
    Ok(())
}

fn for_commit(repository: &Repository) -> Result<(), Refusal> {
    let branch = match &repository.head {
        Head::Detached { .. } => {
            let text = format!("`HEAD` of `{}` is on no branch that a commit could go to", place(repository));
            return Err(Refusal::new(Reason::Detached, text));
        }
        Head::Branch { name, .. } | Head::Unborn { name } => name,
    };
    if let Some(refusal) = repository.odd_branch(branch) {
        return Err(refusal);
    }
    if let Some(place) = repository.also_checked_out_at(branch) {
        let text = format!("the branch is also checked out by the worktree of `{}`", place.display());
        return Err(Refusal::new(Reason::CheckedOutTwice, text));
    }
    if repository.settings.is_true("commit.gpgsign") {
        let text =
            "commits are to be signed here (`commit.gpgSign`), and no signing program is started for you";
        return Err(Refusal::new(Reason::Signing, text));
    }
    Ok(())
}

/// Names that are one to the target's file system.
pub(crate) fn case(plan: &Plan) -> Result<(), Halt> {
    let Target::Repository(repository) = &plan.target else { return Ok(()) };
    if !repository.settings.is_true("core.ignorecase") {
        return Ok(());
    }
    let call = plan.scratch.call().args(["ls-tree", "-r", "-z", "--name-only", "--full-tree"]);
    let answer = call.id(&plan.result).output()?;
    let mut names: BTreeMap<String, RelPath> = BTreeMap::new();
    let mut pairs = Vec::new();
    for name in answer.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let path = foreign(name)?;
        let folded = String::from_utf8_lossy(name).to_lowercase();
        if let Some(other) = names.insert(folded, path.clone()) {
            let text = format!("the file system takes it for `{}`", other.display_escaped());
            pairs.push(Named::new(&path, text));
        }
    }
    if pairs.is_empty() {
        return Ok(());
    }
    Err(Refusal::of(Reason::CaseCollision, "two names differ only in case", pairs).into())
}

/// What the user should know although it stops nothing.
pub(crate) fn notes(plan: &Plan, request: &MergeRequest, report: &mut Report) {
    let Target::Repository(repository) = &plan.target else { return };
    if request.mode == Mode::Merge && has_hooks(repository) {
        let text = "hooks of the repository are not run for this commit".to_owned();
        report.notes.push(Note { code: "hooks-not-run", text });
    }
    if !plan.unshown.is_empty() {
        let text = format!("{} paths are outside of the sparse checkout", plan.unshown.len());
        report.notes.push(Note { code: "sparse", text });
    }
}

fn has_hooks(repository: &Repository) -> bool {
    const NAMES: [&str; 5] = ["pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-merge"];
    let folder = repository.common_dir.join("hooks");
    let runs = |name: &str| {
        let meta = fs::metadata(folder.join(name));
        meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o100 != 0)
    };
    repository.settings.get("core.hookspath").is_some() || NAMES.iter().any(|name| runs(name))
}
