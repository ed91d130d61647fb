//! Whether a directory is the top of a git repository, found out without running git and without believing
//! what a file in the source says: a `.git` file may point anywhere, so the place it points to has to point
//! back.

use std::path::{Path, PathBuf};

use super::case::Case;
use crate::facts::Kind;
use crate::model::path::HostPath;

/// Longest text of a pointer file: one path and a few letters.
const POINTER: u64 = 8192;

/// What was found at a directory.
pub(super) enum Repository {
    /// The git directory is part of the directory.
    Own,
    /// A linked worktree of a repository whose common git directory is elsewhere, proven from both ends.
    Linked { common: HostPath },
    /// The git directory is elsewhere and not brought in.
    Elsewhere { why: &'static str },
}

/// Looks for a repository at `top`.
pub(super) fn at(case: &Case<'_>, top: &HostPath) -> Option<Repository> {
    let dot_git = top.join(".git");
    match case.facts.kind(&dot_git).ok()?.kind {
        Kind::Directory => has(case, dot_git.as_path(), "HEAD").then_some(Repository::Own),
        Kind::File => Some(pointed_to(case, top, &dot_git)),
        Kind::Symlink => {
            let real = case.facts.real_path(&dot_git).ok()?;
            Some(if real.starts_with(top.as_path()) && has(case, &real, "HEAD") {
                Repository::Own
            } else {
                Repository::Elsewhere { why: "is reached through a symbolic link" }
            })
        }
        Kind::Socket | Kind::Special => None,
    }
}

/// The git directory of a repository that is [`Repository::Own`], as a real path.
pub(super) fn own(case: &Case<'_>, top: &HostPath) -> Option<HostPath> {
    let dot_git = top.join(".git");
    let real = match case.facts.kind(&dot_git).ok()?.kind {
        Kind::Directory => return Some(dot_git),
        Kind::File => target_of(case, dot_git.as_path(), top.as_path(), "gitdir: ")?,
        _ => case.facts.real_path(&dot_git).ok()?,
    };
    HostPath::new(real).ok().filter(|real| real.is_within(top))
}

fn pointed_to(case: &Case<'_>, top: &HostPath, dot_git: &HostPath) -> Repository {
    let Some(git) = target_of(case, dot_git.as_path(), top.as_path(), "gitdir: ") else {
        return Repository::Elsewhere { why: "the `.git` file does not lead to it" };
    };
    if git.starts_with(top.as_path()) {
        return Repository::Own;
    }
    if target_of(case, &git.join("gitdir"), &git, "").as_deref() != Some(dot_git.as_path()) {
        return Repository::Elsewhere { why: "does not point back to this worktree" };
    }
    let common = target_of(case, &git.join("commondir"), &git, "").and_then(|path| HostPath::new(path).ok());
    match common.filter(|common| is_common(case, common, &git)) {
        Some(common) => Repository::Linked { common },
        None => Repository::Elsewhere { why: "belongs to no repository that has it as a worktree" },
    }
}

/// Whether `common` is a git directory that keeps `git` among its worktrees, and not a wider place.
fn is_common(case: &Case<'_>, common: &HostPath, git: &Path) -> bool {
    let keeps = git.parent() == Some(common.join("worktrees").as_path());
    let narrow = case.home.as_ref().is_none_or(|home| !home.real.is_within(common));
    keeps && narrow && ["HEAD", "objects", "refs"].iter().all(|name| has(case, common.as_path(), name))
}

/// The real path that the pointer file `file` names, relative to `base`.
fn target_of(case: &Case<'_>, file: &Path, base: &Path, prefix: &str) -> Option<PathBuf> {
    let text = case.facts.read_small(file, POINTER).ok()?;
    let path = text.strip_prefix(prefix)?.trim_end_matches(['\n', '\r']);
    if path.is_empty() || path.contains(['\n', '\0']) {
        return None;
    }
    case.facts.real_path(base.join(path)).ok()
}

fn has(case: &Case<'_>, directory: &Path, name: &str) -> bool {
    case.facts.kind(directory.join(name)).is_ok()
}
