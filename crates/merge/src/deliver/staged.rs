//! The user's index as a witness. Whatever a user does to a file with git (adds, commits, resets, switches) leaves another
//! entry there than before, so the index tells which paths of an interrupted delivery were taken up by somebody since.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use sandtable_store::RelPath;
use sandtable_store::id::HashKind;
use sandtable_store::source::index::{Index, IndexEntry};
use serde::{Deserialize, Serialize};

use super::journal::{Journal, Step};
use crate::encoded::hex_path;
use crate::index::read_index;

/// Where the index is that the journal's steps speak of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Staged {
    #[serde(with = "hex_path")]
    git_dir: PathBuf,
    sha256: bool,
}

/// What somebody did since.
pub(super) struct Since(Known);

enum Known {
    /// Nothing can be told: there is no index, or it could not be read before.
    Nothing,
    Entries(Option<Index>),
    /// It could be read before and cannot now: somebody changed it.
    Unreadable,
}

/// It is of a form that only git reads.
struct Unreadable;

impl Staged {
    /// Takes down what the index says of every step; nothing if it is of a form that only git reads.
    pub(super) fn take_down(git_dir: &Path, hash: HashKind, steps: &mut [Step]) -> Option<Self> {
        let staged = Self { git_dir: git_dir.to_owned(), sha256: hash == HashKind::Sha256 };
        let index = staged.read(&staged.git_dir.join("index")).ok()?.ok()?;
        for step in steps {
            step.staged = entry(index.as_ref(), &step.path);
        }
        Some(staged)
    }

    /// An index that is not there has no entries.
    fn read(&self, file: &Path) -> io::Result<Result<Option<Index>, Unreadable>> {
        let hash = if self.sha256 { HashKind::Sha256 } else { HashKind::Sha1 };
        let Some(data) = read_index(file)? else { return Ok(Ok(None)) };
        Ok(Index::parse(&data, hash, 0).map(Some).map_err(|_| Unreadable))
    }

    /// Whether the index says what it said before, and a new one only speaks otherwise of the files that were written.
    pub(super) fn is_as_before(&self, journal: &Journal, new: &Path) -> io::Result<bool> {
        let (now, new) = (self.read(&self.git_dir.join("index"))?, self.read(new)?);
        let (Ok(Some(now)), Ok(Some(new))) = (now, new) else { return Ok(false) };
        let ours: HashSet<&[u8]> = journal.steps.iter().map(|step| step.path.as_bytes()).collect();
        let others = |index: &Index| -> Vec<(Vec<u8>, String)> {
            let kept = index.entries().filter(|entry| !ours.contains(entry.path));
            kept.map(|entry| (entry.path.to_owned(), text(&entry))).collect()
        };
        let untouched = |step: &Step| entry(Some(&now), &step.path) == step.staged;
        Ok(journal.steps.iter().all(untouched) && others(&now) == others(&new))
    }
}

impl Since {
    pub(super) fn of(journal: &Journal) -> io::Result<Self> {
        let Some(staged) = &journal.staged else { return Ok(Self(Known::Nothing)) };
        Ok(match staged.read(&staged.git_dir.join("index"))? {
            Ok(index) => Self(Known::Entries(index)),
            Err(Unreadable) => Self(Known::Unreadable),
        })
    }

    /// Whether somebody has told git something else of this path.
    pub(super) fn took_up(&self, step: &Step) -> bool {
        match &self.0 {
            Known::Nothing => false,
            Known::Entries(index) => entry(index.as_ref(), &step.path) != step.staged,
            Known::Unreadable => true,
        }
    }
}

fn entry(index: Option<&Index>, path: &RelPath) -> Option<String> {
    index?.find(path.as_bytes()).map(|entry| text(&entry))
}

fn text(entry: &IndexEntry<'_>) -> String {
    let unmerged = if entry.is_unmerged() { " unmerged" } else { "" };
    format!("{:o} {}{unmerged}", entry.mode, entry.id)
}
