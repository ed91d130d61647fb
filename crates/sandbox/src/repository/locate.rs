//! Finds the git directory of a target. `.git` may be a directory, or a file that names one elsewhere; a file
//! that a sandbox could have put there, naming a directory that a sandbox could have made, is refused.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_store::regular;

use crate::model::choice::choice;
use crate::model::path::HostPath;

/// The largest file that names a directory.
const LINE: u64 = 1 << 16;

choice! {
    /// Which worktree of the repository it is.
    Place { Main = "main", Linked = "linked" }
}

/// What was found.
#[derive(Debug)]
pub enum Found {
    Nothing,
    /// Why it is no git directory to work with.
    Refused(String),
    Repository(Located),
}

/// A repository's directories.
#[derive(Debug)]
pub struct Located {
    pub root: Option<HostPath>,
    pub git_dir: PathBuf,
    pub common_dir: PathBuf,
    pub place: Place,
}

/// The git directory of `root`, if it has one.
pub fn find(root: &HostPath) -> io::Result<Found> {
    let dot_git = root.as_path().join(".git");
    let Ok(meta) = dot_git.symlink_metadata() else {
        return Ok(match is_git_dir(root.as_path()) {
            true if has_other(root.as_path()) => refused(root.as_path(), OTHER),
            true => bare(root),
            false => Found::Nothing,
        });
    };
    if meta.is_dir() {
        if !is_git_dir(&dot_git) {
            return Ok(refused(&dot_git, "is not a git directory"));
        }
        if has_other(&dot_git) {
            return Ok(refused(&dot_git, OTHER));
        }
        return Ok(Found::Repository(Located {
            root: Some(root.clone()),
            common_dir: dot_git.clone(),
            git_dir: dot_git,
            place: Place::Main,
        }));
    }
    if !meta.is_file() {
        return Ok(refused(&dot_git, "is neither a directory nor a file"));
    }
    named_by_file(root, &dot_git)
}

/// `.git` is a file: a linked worktree, a submodule, or a git directory kept elsewhere.
fn named_by_file(root: &HostPath, dot_git: &Path) -> io::Result<Found> {
    let text = regular::read(dot_git, LINE)?;
    let Some(name) = text.strip_prefix(b"gitdir: ") else {
        return Ok(refused(dot_git, "does not name a git directory"));
    };
    let git_dir = root.as_path().join(OsStr::from_bytes(name.trim_ascii_end()));
    let Ok(git_dir) = fs::canonicalize(git_dir) else {
        return Ok(refused(dot_git, "names a git directory that is not there"));
    };
    let inside = fs::canonicalize(root.as_path())?;
    if git_dir.starts_with(&inside) {
        return Ok(refused(dot_git, "names a git directory inside the worktree"));
    }
    let linked = git_dir.join("commondir").exists();
    if !is_git_dir(&git_dir) && !linked {
        return Ok(refused(dot_git, "names something that is not a git directory"));
    }
    if linked && !points_back(&git_dir, dot_git) {
        return Ok(refused(dot_git, "names a git directory that belongs to another worktree"));
    }
    let common_dir = common(&git_dir)?;
    if common_dir.starts_with(&inside) {
        return Ok(refused(dot_git, "leads to a git directory inside the worktree"));
    }
    // A directory beside an unpacked archive can point back as well, and name any repository as its own.
    if linked && git_dir.parent() != Some(common_dir.join("worktrees").as_path()) {
        return Ok(refused(
            dot_git,
            "names a git directory that is not among the worktrees of its repository",
        ));
    }
    let place = if linked { Place::Linked } else { Place::Main };
    Ok(Found::Repository(Located { root: Some(root.clone()), git_dir, common_dir, place }))
}

/// Only git directories of linked worktrees lead to another one, and they are in that one.
const OTHER: &str = "leads to another git directory in its file `commondir`";

/// A pipe or a device in its place leads nowhere. It is refused with the other files that nothing may open.
fn has_other(git_dir: &Path) -> bool {
    let kind = git_dir.join("commondir").symlink_metadata().map(|meta| meta.file_type());
    kind.is_ok_and(|kind| kind.is_file() || kind.is_symlink() || kind.is_dir())
}

fn points_back(git_dir: &Path, dot_git: &Path) -> bool {
    let Ok(text) = regular::read(&git_dir.join("gitdir"), LINE) else { return false };
    let named = git_dir.join(OsStr::from_bytes(text.trim_ascii_end()));
    let (named, ours) = (fs::canonicalize(named), fs::canonicalize(dot_git));
    matches!((named, ours), (Ok(named), Ok(ours)) if named == ours)
}

/// The directory that a worktree shares with others.
pub fn common(git_dir: &Path) -> io::Result<PathBuf> {
    match regular::read(&git_dir.join("commondir"), LINE) {
        Ok(text) => Ok(fs::canonicalize(git_dir.join(OsStr::from_bytes(text.trim_ascii_end())))?),
        Err(_) => Ok(git_dir.to_owned()),
    }
}

fn bare(root: &HostPath) -> Found {
    let git_dir = root.as_path().to_owned();
    Found::Repository(Located { root: None, common_dir: git_dir.clone(), git_dir, place: Place::Main })
}

fn is_git_dir(path: &Path) -> bool {
    path.join("HEAD").symlink_metadata().is_ok()
        && path.join("objects").is_dir()
        && path.join("refs").is_dir()
}

fn refused(path: &Path, what: &str) -> Found {
    Found::Refused(format!("`{}` {what}", path.display()))
}
