//! The state of the directory the work goes to, read without running anything from it.
//!
//! Git is asked for its configuration, as a list of words, and for where `HEAD` is if that is not plain to see. Everything
//! else is looked up in files. Nothing is written, locked or repaired.

mod kinds;
mod settings;

use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_sandbox::model::choice::choice;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::repository::{self, Found, Located};
use sandtable_store::id::HashKind;
use sandtable_store::regular;

pub use settings::Settings;
pub(super) use settings::Value;

use super::error::Error;
use super::git::Git;
use super::refusal::{Reason, Refusal};
use super::request::Means;
pub use sandtable_sandbox::repository::{Head, Place};

/// A directory that work can be brought to.
#[derive(Clone, Debug)]
pub enum Target {
    /// A directory that is in no repository, or none of its own.
    Plain {
        root: HostPath,
    },
    Repository(Box<Repository>),
}

impl Target {
    /// Where the files are.
    pub fn root(&self) -> Option<&HostPath> {
        match self {
            Self::Plain { root } => Some(root),
            Self::Repository(repository) => repository.root.as_ref(),
        }
    }

    pub(super) const fn is_repository(&self) -> bool {
        matches!(self, Self::Repository(_))
    }

    /// Whether line ends are converted where no attribute says so.
    pub(super) fn autocrlf(&self) -> Option<&str> {
        match self {
            Self::Plain { .. } => None,
            Self::Repository(repository) => repository.settings.get("core.autocrlf"),
        }
    }
}

/// A git repository, with what matters for writing to it.
#[derive(Clone, Debug)]
pub struct Repository {
    /// Where the files are; none for a bare repository.
    pub root: Option<HostPath>,
    /// The directory of this worktree: `HEAD`, the index, operations in progress.
    pub git_dir: PathBuf,
    /// The directory that worktrees share: objects, refs, configuration.
    pub common_dir: PathBuf,
    pub place: Place,
    pub head: Head,
    pub operation: Option<Operation>,
    /// Lock files that exist: somebody writes, or died writing.
    pub locks: Vec<PathBuf>,
    pub format: HashKind,
    pub history: History,
    pub settings: Settings,
}

choice! {
    /// How much of the history is there.
    History { Full = "full", Shallow = "shallow", Partial = "partial" }
}

choice! {
    /// What the user is in the middle of.
    Operation {
        Merge = "merge", Rebase = "rebase", CherryPick = "cherry-pick", Revert = "revert", Bisect = "bisect",
        Sequence = "sequence",
    }
}

/// The state of `directory`, or why nothing may be brought there.
pub fn read(means: &Means, directory: &HostPath) -> Result<Result<Target, Refusal>, Error> {
    let found = match repository::find(directory)? {
        Found::Nothing => return Ok(Ok(Target::Plain { root: directory.clone() })),
        Found::Refused(text) => return Ok(Err(Refusal::new(Reason::GitDirectory, text))),
        Found::Repository(found) => found,
    };
    if let Some(odd) = kinds::odd(&found.git_dir, &found.common_dir) {
        return Ok(Err(kinds::refusal(&odd)));
    }
    if let Some(link) = kinds::link(&found.git_dir, &found.common_dir) {
        return Ok(Err(kinds::link_refusal(&link)));
    }
    let settings = Settings::read(means, &found.git_dir)?;
    let refusal = foreign_owner(&found, &settings)?.or_else(|| foreign_worktree(&found, &settings));
    if let Some(refusal) = refusal {
        return Ok(Err(refusal));
    }
    let head = head(&means.git, &found.git_dir, &found.common_dir)?;
    let locks = locks(&found, &head);
    let root = found.root.filter(|_| !settings.is_true("core.bare"));
    Ok(Ok(Target::Repository(Box::new(Repository {
        root,
        operation: operation(&found.git_dir),
        locks,
        format: settings.format(),
        history: history(&found.common_dir, &settings),
        place: found.place,
        git_dir: found.git_dir,
        common_dir: found.common_dir,
        head,
        settings,
    }))))
}

/// Refuses to ask git for a reference where it would wait for ever, or open what is no file.
pub(super) fn may_be_asked(git_dir: &Path, name: &str) -> Result<(), Error> {
    let common_dir = repository::common(git_dir)?;
    let reference = Some(common_dir.join(name)).filter(|file| kinds::is_special(file));
    kinds::odd(git_dir, &common_dir).or(reference).map_or(Ok(()), |odd| Err(Error::NoFile(odd)))
}

/// Where `HEAD` is now.
pub(super) fn head(git: &Git, git_dir: &Path, common_dir: &Path) -> Result<Head, Error> {
    match repository::head(git_dir, common_dir) {
        Some(head) => Ok(head),
        None => head_by_git(git, git_dir),
    }
}

fn head_by_git(git: &Git, git_dir: &Path) -> Result<Head, Error> {
    let name = git.call(git_dir).shortly().args(["symbolic-ref", "-q", "HEAD"]).finished(None, &[0, 1])?;
    let name = String::from_utf8_lossy(&name.stdout).trim().to_owned();
    let tip = git.call(git_dir).shortly().args(["rev-parse", "-q", "--verify", "HEAD^{commit}"]);
    let tip = tip.finished(None, &[0, 1, 128])?;
    let tip = tip.status.success().then(|| super::git::object(&tip.stdout)).transpose()?;
    Ok(match (name.is_empty(), tip) {
        (true, Some(tip)) => Head::Detached { tip },
        (false, Some(tip)) => Head::Branch { name, tip },
        (_, None) => Head::Unborn { name },
    })
}

impl Repository {
    /// Where the user's objects are.
    pub(super) fn objects(&self) -> PathBuf {
        self.common_dir.join("objects")
    }

    /// Another worktree that has this branch checked out.
    pub(super) fn also_checked_out_at(&self, branch: &str) -> Option<PathBuf> {
        let wanted = format!("ref: {branch}");
        let others = fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten();
        let mut dirs: Vec<PathBuf> = others.map(|entry| entry.path()).collect();
        dirs.push(self.common_dir.clone());
        let names_it = |dir: &PathBuf| {
            regular::read(&dir.join("HEAD"), 1 << 16)
                .is_ok_and(|text| text.trim_ascii_end() == wanted.as_bytes())
        };
        dirs.into_iter().filter(|dir| *dir != self.git_dir).find(names_it)
    }
}

fn operation(git_dir: &Path) -> Option<Operation> {
    const SIGNS: [(&str, Operation); 8] = [
        ("rebase-merge", Operation::Rebase),
        ("rebase-apply", Operation::Rebase),
        ("REBASE_HEAD", Operation::Rebase),
        ("MERGE_HEAD", Operation::Merge),
        ("CHERRY_PICK_HEAD", Operation::CherryPick),
        ("REVERT_HEAD", Operation::Revert),
        ("BISECT_LOG", Operation::Bisect),
        ("sequencer", Operation::Sequence),
    ];
    SIGNS.iter().find(|(name, _)| git_dir.join(name).exists()).map(|(_, operation)| *operation)
}

fn locks(found: &Located, head: &Head) -> Vec<PathBuf> {
    let mut paths = vec![
        found.git_dir.join("index.lock"),
        found.git_dir.join("HEAD.lock"),
        found.common_dir.join("packed-refs.lock"),
    ];
    paths.extend(head.branch().map(|name| found.common_dir.join(format!("{name}.lock"))));
    paths.retain(|path| path.symlink_metadata().is_ok());
    paths
}

fn history(common_dir: &Path, settings: &Settings) -> History {
    if settings.get("extensions.partialclone").is_some() || settings.has_promisor() {
        History::Partial
    } else if common_dir.join("shallow").exists() {
        History::Shallow
    } else {
        History::Full
    }
}

/// A file `.git` can come with an archive and name any repository of the user's. So that repository has to name the directory
/// too: a linked worktree was asked when it was found, and every other one says so in its own configuration, as git writes it
/// for submodules.
fn foreign_worktree(found: &Located, settings: &Settings) -> Option<Refusal> {
    let root = found.root.as_ref()?;
    let dot_git = root.as_path().join(".git");
    if found.place == Place::Linked || found.git_dir == dot_git {
        return None;
    }
    let own = [&found.git_dir, &found.common_dir].map(|dir| fs::canonicalize(dir.join("config")).ok());
    let named = settings.last("core.worktree").filter(|value| {
        let file = value.file.as_ref().and_then(|file| fs::canonicalize(found.git_dir.join(file)).ok());
        file.is_some() && own.contains(&file)
    });
    let named = named.and_then(|value| fs::canonicalize(found.git_dir.join(&value.text)).ok());
    if named.is_some() && named == fs::canonicalize(root.as_path()).ok() {
        return None;
    }
    let (root, git_dir) = (root.as_path().display(), found.git_dir.display());
    let text = format!(
        "`{}` names the git directory `{git_dir}`, which does not name `{root}` as its worktree: it may belong to another project",
        dot_git.display()
    );
    let next = format!(
        "if it belongs to `{root}`, run `git config core.worktree \"$PWD\"` there; otherwise remove `{}`, or name \
         another directory: `--into DIR`",
        dot_git.display()
    );
    Some(Refusal::new(Reason::GitDirectory, text).with(next))
}

/// Git itself does not trust the configuration of a repository that is somebody else's; nor do we.
fn foreign_owner(found: &Located, settings: &Settings) -> Result<Option<Refusal>, Error> {
    use std::os::unix::fs::MetadataExt as _;
    let owner = fs::metadata(&found.git_dir)?.uid();
    let us = rustix::process::geteuid().as_raw();
    let root = found.root.as_ref().map_or(found.git_dir.as_path(), |root| root.as_path());
    if owner == us || settings.trusts(root) {
        return Ok(None);
    }
    let text = format!("the repository `{}` belongs to another user ({owner})", root.display());
    Ok(Some(Refusal::new(Reason::Owner, text)))
}
