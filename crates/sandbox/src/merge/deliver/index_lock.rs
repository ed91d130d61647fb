//! The user's index under its lock. The lock is a file with a word of ours in it, linked into place, so that after a
//! crash it can be told from a lock of git's, which is nobody's to remove.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_store::RelPath;
use sandtable_store::dir::Meta;
use serde::{Deserialize, Serialize};

use super::Stop;
use super::journal::hex_path;
use crate::merge::error::Error;
use crate::merge::index::{Index, Made, refresh};
use crate::merge::outcome::{Reason, Refusal};
use crate::merge::plan::Plan;
use crate::merge::tree::Mode;

/// The files of a change of the index.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct IndexLock {
    #[serde(with = "hex_path")]
    git_dir: PathBuf,
    word: String,
}

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
        let draft = self.draft();
        fs::write(&draft, &self.word)?;
        let linked = fs::hard_link(&draft, self.lock());
        fs::remove_file(&draft)?;
        match linked {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let text = format!("`{}` exists: git is at work there", self.lock().display());
                Err(Refusal::new(Reason::Locked, text).into())
            }
            Err(error) => Err(error.into()),
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
            Made::Bytes(bytes) => fs::write(self.draft(), bytes)?,
            Made::File(made) => {
                let written =
                    shown.iter().filter(|change| change.new.is_some_and(|new| new.mode != Mode::Gitlink));
                let written: Vec<_> = written.map(|change| &change.path).collect();
                let root = plan.target.root().expect("preflight looked");
                refresh(&plan.scratch, &made, root.as_path(), &written);
                fs::copy(&made, self.draft())?;
            }
        }
        if let Ok(old) = fs::metadata(self.index()) {
            fs::set_permissions(self.draft(), old.permissions())?;
        }
        Ok(())
    }

    /// Puts the new index into place, if it was made, and gives the lock back.
    pub(super) fn finish(&self) -> Result<(), Error> {
        if self.is_ours() && self.draft().exists() {
            fs::rename(self.draft(), self.index())?;
        }
        // Where somebody took our lock away, the index may be newer than ours.
        self.undo()
    }

    /// Leaves the index as it was and gives the lock back.
    pub(super) fn undo(&self) -> Result<(), Error> {
        if self.draft().exists() {
            fs::remove_file(self.draft())?;
        }
        self.give_back()
    }

    fn give_back(&self) -> Result<(), Error> {
        if self.is_ours() {
            fs::remove_file(self.lock())?;
        }
        Ok(())
    }

    fn is_ours(&self) -> bool {
        fs::read(self.lock()).is_ok_and(|text| text == self.word.as_bytes())
    }
}
