//! The user's index under its lock. The lock is a file with a word of ours in it, linked into place, so that after a
//! crash it can be told from a lock of git's, which is nobody's to remove.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_store::RelPath;
use sandtable_store::dir::Meta;
use sandtable_store::regular;
use serde::{Deserialize, Serialize};

use super::Stop;
use super::word::Word;
use crate::encoded::hex_path;
use crate::error::Error;
use crate::index::{Index, Made, refresh};
use crate::plan::Plan;
use crate::refusal::{Reason, Refusal};
use crate::tree::Mode;

/// The files of a change of the index.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct IndexLock {
    #[serde(with = "hex_path")]
    git_dir: PathBuf,
    /// With the id of the delivery in it.
    word: String,
}

/// Whether an index that somebody unlocked is still the one that was locked.
pub(super) type IsAsBefore<'a> = &'a dyn Fn(&Path) -> std::io::Result<bool>;

impl IndexLock {
    pub(super) fn planned(id: &str, git_dir: &Path) -> Self {
        Self { git_dir: git_dir.to_owned(), word: format!("sandtable {id}\n") }
    }

    fn lock(&self) -> PathBuf {
        self.git_dir.join("index.lock")
    }

    fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    fn draft(&self) -> PathBuf {
        self.git_dir.join(format!("index.{}", self.word.trim().replace(' ', "-")))
    }

    /// Takes the lock, or says that somebody has it.
    pub(super) fn take(&self) -> Result<(), Stop> {
        match self.word().lock(&self.lock()) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let text = format!("`{}` exists: git is at work there", self.lock().display());
                Err(Refusal::new(Reason::Locked, text).into())
            }
            taken => Ok(taken?),
        }
    }

    /// The new index, complete but not yet in its place. `files` are those that were written.
    pub(super) fn prepare(
        &self,
        plan: &Plan,
        index: &Index,
        files: &BTreeMap<RelPath, Meta>,
    ) -> Result<(), Error> {
        let present = plan.delivery.iter().filter(|change| change.new.is_some());
        let (unshown, shown): (Vec<_>, Vec<_>) =
            present.partition(|change| plan.unshown.contains(&change.path));
        let unshown: Vec<&RelPath> = unshown.iter().map(|change| &change.path).collect();
        match index.with(&plan.scratch, &plan.delivery, (&unshown, files))? {
            Made::Bytes(bytes) => fs::File::create_new(self.draft())?.write_all(&bytes)?,
            Made::File(made) => {
                let written =
                    shown.iter().filter(|change| change.new.is_some_and(|new| new.mode != Mode::Gitlink));
                let written: Vec<_> = written.map(|change| &change.path).collect();
                let root = plan.target.root().expect("preflight looked");
                refresh(&plan.scratch, &made, root.as_path(), &written);
                std::io::copy(&mut regular::open(&made)?, &mut fs::File::create_new(self.draft())?)?;
            }
        }
        if let Ok(old) = fs::metadata(self.index()) {
            fs::set_permissions(self.draft(), old.permissions())?;
        }
        Ok(())
    }

    /// Puts the new index into place, if it was made, and gives the lock back. Where somebody took our lock away the index may
    /// be newer than ours; then it stays.
    pub(super) fn finish(&self, is_as_before: IsAsBefore<'_>) -> Result<(), Error> {
        let (draft, word) = (self.draft(), self.word());
        let is_made = fs::exists(&draft)?;
        if is_made && !self.is_held()? && is_as_before(&draft)? {
            // Somebody may take it at this moment: the index is theirs then.
            drop(word.lock(&self.lock()));
        }
        if is_made && self.is_held()? {
            fs::rename(&draft, self.index())?;
        }
        self.undo()
    }

    /// Leaves the index as it was and gives the lock back.
    pub(super) fn undo(&self) -> Result<(), Error> {
        if fs::exists(self.draft())? {
            fs::remove_file(self.draft())?;
        }
        Ok(self.word().give_back(&self.lock())?)
    }

    /// Whether the lock is there and ours: then nobody has used git to change the index.
    pub(super) fn is_held(&self) -> std::io::Result<bool> {
        self.word().is_in(&self.lock())
    }

    fn word(&self) -> Word {
        Word::of(self.word.trim().strip_prefix("sandtable ").unwrap_or_default(), &self.git_dir)
    }
}
