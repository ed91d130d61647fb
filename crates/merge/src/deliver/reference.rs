//! The branch that moves. Where references are plain files we move it ourselves: the new value is renamed into place
//! under locks that have our word in them, so that a kill at any moment leaves the old value or the new one, and locks that
//! are known to be ours. Git does it where references are kept in another way.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_sandbox::repository::{Reference, reference_at};
use sandtable_store::id::ObjectId;
use sandtable_store::regular::{self, Missing};
use serde::{Deserialize, Serialize};

use super::Stop;
use super::word::Word;
use crate::encoded::hex_path;
use crate::error::Error;
use crate::refusal::{Reason, Refusal};
use crate::request::Identity;
use crate::target::{self, Repository};

/// From where to where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RefStep {
    #[serde(with = "hex_path")]
    pub(super) git_dir: PathBuf,
    pub(super) name: String,
    pub(super) old: Option<ObjectId>,
    pub(super) new: ObjectId,
    /// How we move it; nothing where git does.
    #[serde(default)]
    pub(super) plain: Option<Plain>,
}

/// A reference that is a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plain {
    #[serde(with = "hex_path")]
    common_dir: PathBuf,
    /// Whether `HEAD` names it, and moves with it.
    is_head: bool,
    /// The line for the reflogs.
    line: String,
    /// Whether a reflog is begun where there is none.
    begins_logs: bool,
}

impl RefStep {
    pub(super) fn new(repository: &Repository, name: &str, new: ObjectId, message: &str) -> Self {
        let is_head = repository.head.branch() == Some(name);
        let old = if is_head { repository.head.tip().copied() } else { None };
        let plain = is_plain(&repository.common_dir, name).then(|| Plain {
            common_dir: repository.common_dir.clone(),
            is_head,
            line: line(repository, (old.as_ref(), &new), message),
            begins_logs: !repository.settings.is_false("core.logallrefupdates"),
        });
        Self { git_dir: repository.git_dir.clone(), name: name.to_owned(), old, new, plain }
    }

    /// Where it is now, if that is plain to see.
    pub(super) fn at(&self) -> Option<Reference> {
        reference_at(&self.plain.as_ref()?.common_dir, &self.name)
    }

    /// Whether it has not moved, and the repository has no other worktree that could.
    pub(super) fn is_alone(&self) -> bool {
        let worktrees = self.plain.as_ref().map(|plain| plain.common_dir.join("worktrees"));
        self.at() == Some(self.old.into()) && worktrees.is_some_and(|folder| !folder.exists())
    }

    /// Whether git can tell where it is: it would wait for ever for what is no file.
    pub(super) fn may_be_asked(&self) -> Result<(), Error> {
        target::may_be_asked(&self.git_dir, &self.name)
    }

    /// Takes the locks, or says that somebody has one.
    pub(super) fn lock(&self, word: &Word) -> Result<(), Stop> {
        for lock in self.locks() {
            match word.lock(&lock) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let text = format!("`{}` exists: git is at work there", lock.display());
                    return Err(Refusal::new(Reason::Locked, text).into());
                }
                taken => taken?,
            }
        }
        Ok(())
    }

    /// The moment from which the result stands. The locks are held.
    pub(super) fn rename(&self, id: &str) -> Result<(), Stop> {
        let Some(plain) = &self.plain else { return Ok(()) };
        if self.at() != Some(self.old.into()) {
            return Err(Stop::RolledBack(format!("the branch `{}` moved meanwhile", self.name)));
        }
        let (draft, file) = (plain.draft(id), plain.common_dir.join(&self.name));
        let mut made = fs::File::create_new(&draft)?;
        writeln!(made, "{}", self.new)?;
        made.sync_all()?;
        if let Ok(old) = fs::metadata(&file) {
            fs::set_permissions(&draft, old.permissions())?;
        }
        Ok(fs::rename(&draft, &file)?)
    }

    /// The result stands: the reflogs get their line, and the locks are given back. Where somebody took our locks away, the
    /// reflogs may have gone on already.
    pub(super) fn finish(&self, id: &str) -> Result<(), Error> {
        let word = Word::of(id, &self.git_dir);
        let mut is_held = true;
        for lock in self.locks() {
            is_held &= word.is_in(&lock)?;
        }
        if let Some(plain) = &self.plain
            && is_held
        {
            append(&plain.common_dir.join("logs").join(&self.name), plain)?;
            if plain.is_head {
                append(&self.git_dir.join("logs/HEAD"), plain)?;
            }
        }
        self.give_back(id)
    }

    /// Gives back whatever of the locks is ours.
    pub(super) fn give_back(&self, id: &str) -> Result<(), Error> {
        let word = Word::of(id, &self.git_dir);
        for lock in self.locks().iter().rev() {
            word.give_back(lock)?;
        }
        match self.plain.as_ref().map(|plain| fs::remove_file(plain.draft(id))) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn locks(&self) -> Vec<PathBuf> {
        let Some(plain) = &self.plain else { return Vec::new() };
        let head = plain.is_head.then(|| self.git_dir.join("HEAD.lock"));
        head.into_iter().chain([plain.common_dir.join(format!("{}.lock", self.name))]).collect()
    }
}

impl Plain {
    /// Beside the references, where git takes no file for one.
    fn draft(&self, id: &str) -> PathBuf {
        self.common_dir.join(format!("sandtable-{id}.ref"))
    }
}

/// Whether the reference is, or can be, a file of its own.
fn is_plain(common_dir: &Path, name: &str) -> bool {
    let file = common_dir.join(name);
    let free = match fs::symlink_metadata(&file) {
        Ok(meta) => meta.is_file(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    // A directory that is missing is made by git, who knows what else may be in the way.
    free && file.parent().is_some_and(Path::is_dir) && reference_at(common_dir, name).is_some()
}

/// As git writes it.
fn line(repository: &Repository, (old, new): (Option<&ObjectId>, &ObjectId), message: &str) -> String {
    let none = || "0".repeat(new.kind().bytes() * 2);
    let Identity { name, email } = repository.settings.identity().unwrap_or_else(Identity::ours);
    let plain = |text: &str| text.replace(['\n', '\0', '<', '>', '\t'], " ");
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
    let old = old.map_or_else(none, ToString::to_string);
    format!("{old} {new} {} <{}> {now} +0000\t{}\n", plain(&name), plain(&email), plain(message))
}

/// Adds the line to a reflog, unless it is there.
fn append(log: &Path, plain: &Plain) -> Result<(), Error> {
    let line = plain.line.as_bytes();
    let mut file = match regular::open_to_append(log, Missing::Left) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if !plain.begins_logs {
                return Ok(());
            }
            if let Some(folder) = log.parent() {
                fs::create_dir_all(folder)?;
            }
            regular::open_to_append(log, Missing::Made)?
        }
        opened => opened?,
    };
    if regular::ends_with(&file, line)? { Ok(()) } else { Ok(file.write_all(line)?) }
}
