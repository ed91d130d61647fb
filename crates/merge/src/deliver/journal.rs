//! What a delivery is about to do, on disk before it does it. After a crash the journal and a look at the files say
//! what was done; nothing else is remembered.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_sandbox::model::versioned::{self, Unreadable};
use serde::{Deserialize, Serialize};

use super::index_lock::IndexLock;
use super::log::LogEntry;
use super::reference::RefStep;
use super::staged::Staged;
use super::word::Word;
use crate::encoded::{hex_path, hex_paths, hex_rel};
use crate::error::Error;
use crate::whereabouts::Whereabouts;
use crate::worktree::{Stamp, same_device};

const SCHEMA: u32 = 2;
/// The oldest one that is understood: it lacks what may be missing here.
const OLDEST: u32 = 1;

/// A delivery under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    schema: u32,
    pub(super) id: String,
    pub(super) phase: Phase,
    /// The directory of the user's files.
    #[serde(with = "hex_path")]
    pub(super) root: PathBuf,
    /// A directory for new files before, and old ones after the exchange. On the same file system as the root.
    #[serde(with = "hex_path")]
    pub(super) holding: PathBuf,
    pub(super) steps: Vec<Step>,
    /// Directories that give way to files, outermost first, with their permissions.
    pub(super) leaving: Vec<Folder>,
    /// Directories that are made, outermost first.
    pub(super) made: Vec<Folder>,
    /// Directories whose names change, with their times, to be put back should it come to nothing.
    pub(super) touched: Vec<Folder>,
    /// Directories that stay, though nothing is in them.
    #[serde(default)]
    pub(super) kept: Vec<Folder>,
    /// Permissions that something has or gets, set once the result stands.
    #[serde(default)]
    pub(super) modes: Vec<ModeStep>,
    pub(super) reference: Option<RefStep>,
    pub(super) index: Option<IndexLock>,
    #[serde(with = "hex_paths")]
    pub(super) packs: Vec<PathBuf>,
    /// Where the index is that the steps speak of.
    #[serde(default)]
    pub(super) staged: Option<Staged>,
    /// What the log of the target will say.
    #[serde(default)]
    pub(super) log: Option<LogEntry>,
    /// Which directory is meant, should another one get its name.
    #[serde(default)]
    pub(super) identity: Option<Whereabouts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// New files are written aside.
    Preparing,
    /// They are complete and known by their stamps; the exchange may have begun.
    Staged,
    /// The result stands. With a reference, the reference says so instead.
    Done,
}

/// One file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Step {
    #[serde(with = "hex_rel")]
    pub(super) path: sandtable_store::RelPath,
    pub(super) kind: StepKind,
    /// What was there, by digest.
    pub(super) before: String,
    /// The new file, once it is written.
    pub(super) new: Option<Stamp>,
    /// What the user's index said of it.
    #[serde(default)]
    pub(super) staged: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StepKind {
    Add,
    Replace,
    Remove,
}

/// A directory and what cannot be told from its name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Folder {
    #[serde(with = "hex_rel")]
    pub(super) path: sandtable_store::RelPath,
    pub(super) mode: u16,
    pub(super) mtime_ns: i64,
}

/// Permissions, of a directory or of a file that is not written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ModeStep {
    #[serde(with = "hex_rel")]
    pub(super) path: sandtable_store::RelPath,
    /// None for a directory that is made.
    pub(super) before: Option<u16>,
    pub(super) after: u16,
}

impl Journal {
    pub(super) fn new(id: String, root: &Path, git_dir: Option<&Path>) -> Self {
        let hidden = git_dir.filter(|dir| same_device(root, dir));
        let holding = match hidden {
            Some(dir) => dir.join(format!("sandtable-{id}")),
            None => root.join(format!(".sandtable-{id}")),
        };
        Self {
            schema: SCHEMA,
            id,
            phase: Phase::Preparing,
            root: root.to_owned(),
            holding,
            steps: Vec::new(),
            leaving: Vec::new(),
            made: Vec::new(),
            touched: Vec::new(),
            kept: Vec::new(),
            modes: Vec::new(),
            reference: None,
            index: None,
            packs: Vec::new(),
            staged: None,
            log: None,
            identity: Whereabouts::of(root, git_dir),
        }
    }

    /// Whether the directory is there, and not another one in its place. `path` is where the journal is kept.
    ///
    /// A disk may get another device number when the machine starts again or when it is plugged in again. So directories with the
    /// same inodes at the same paths are accepted as well if something of this delivery is in them, and the journal gets the new
    /// numbers.
    pub(super) fn find(&mut self, path: &Path) -> Result<bool, Error> {
        let Some(known) = &self.identity else { return Ok(fs::exists(&self.root)?) };
        let Some(found) = known.again(&self.root)? else { return Ok(false) };
        if found == *known {
            return Ok(true);
        }
        if !found.is_like(known) || !self.holds_ours(&found)? {
            return Ok(false);
        }
        self.identity = Some(found);
        self.write(path)?;
        Ok(true)
    }

    /// Whether a directory of this delivery is there, or a lock with its word.
    fn holds_ours(&self, found: &Whereabouts) -> Result<bool, Error> {
        if fs::symlink_metadata(&self.holding).is_ok_and(|meta| meta.is_dir()) {
            return Ok(true);
        }
        let Some(git_dir) = found.git_dir() else { return Ok(false) };
        let word = self.word(git_dir);
        Ok(word.is_in(&git_dir.join("index.lock"))? || word.is_in(&git_dir.join("HEAD.lock"))?)
    }

    /// The lock of the index, if somebody else has it.
    pub(super) fn foreign_lock(&self) -> Result<Option<PathBuf>, Error> {
        let Some(git_dir) = self.identity.as_ref().and_then(Whereabouts::git_dir) else { return Ok(None) };
        let lock = git_dir.join("index.lock");
        let is_foreign = fs::exists(&lock)? && !self.word(git_dir).is_in(&lock)?;
        Ok(is_foreign.then_some(lock))
    }

    /// The word in the locks of this delivery.
    pub(super) fn word(&self, git_dir: &Path) -> Word {
        Word::of(&self.id, git_dir)
    }

    pub(super) fn done(&mut self) {
        self.phase = Phase::Done;
    }

    /// Whether files, and what is written here, are forced to disk. A merge changes only files that git has, before and
    /// after; git does not force its own either.
    pub(super) const fn forces_files(&self) -> bool {
        self.reference.is_none()
    }

    /// Replaces the file at `path` in one step.
    pub(super) fn write(&self, path: &Path) -> Result<(), Error> {
        let draft = path.with_extension("draft");
        let text = serde_json::to_vec(self).expect("plain data");
        let mut file = fs::File::create(&draft)?;
        file.write_all(&text)?;
        if self.forces_files() {
            file.sync_all()?;
        }
        fs::rename(&draft, path)?;
        if self.forces_files() {
            let folder = path.parent().expect("the journal is in a directory");
            rustix::fs::fsync(fs::File::open(folder)?)?;
        }
        Ok(())
    }

    /// The journal that was left, if any.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, Error> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let path = path.to_owned();
        versioned::read(&text, OLDEST..=SCHEMA).map(Some).map_err(|unreadable| match unreadable {
            Unreadable::Malformed(source) => Error::Journal { path, source },
            Unreadable::Schema(found) => Error::Schema { path, found, known: SCHEMA },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target with a git directory, and the journal of a delivery into it from before the device had another number.
    fn renumbered(place: &Path) -> (Journal, PathBuf) {
        let (root, git) = (place.join("root"), place.join("root/.git"));
        fs::create_dir_all(&git).unwrap();
        let mut journal = Journal::new("0123456789abcdef".to_owned(), &root, Some(&git));
        journal.identity.as_mut().unwrap().renumber();
        (journal, place.join("journal"))
    }

    #[test]
    fn a_device_with_another_number_is_known_by_what_is_in_the_directory() {
        let marks: [fn(&Journal, &Path); 3] = [
            |journal, _| fs::create_dir(&journal.holding).unwrap(),
            |journal, git| journal.word(git).lock(&git.join("index.lock")).unwrap(),
            |journal, git| journal.word(git).lock(&git.join("HEAD.lock")).unwrap(),
        ];
        for mark in marks {
            let place = tempfile::tempdir().unwrap();
            let (mut journal, path) = renumbered(place.path());
            let root = journal.root.clone();
            assert!(!journal.find(&path).unwrap(), "nothing of ours is there");
            Word::of("another", &root.join(".git")).lock(&root.join(".git/index.lock")).unwrap();
            assert!(!journal.find(&path).unwrap(), "a lock of somebody else's");
            fs::remove_file(root.join(".git/index.lock")).unwrap();
            mark(&journal, &root.join(".git"));
            assert!(journal.find(&path).unwrap());
            let written = Journal::read(&path).unwrap().unwrap().identity.unwrap();
            assert!(written.is(&root) && Some(written) == journal.identity);
        }
    }

    #[test]
    fn another_directory_is_not_taken_for_it_whatever_is_in_it() {
        let place = tempfile::tempdir().unwrap();
        let (mut journal, path) = renumbered(place.path());
        fs::rename(&journal.root, place.path().join("elsewhere")).unwrap();
        assert!(!journal.find(&path).unwrap());
        fs::create_dir_all(&journal.holding).unwrap();
        assert!(!journal.find(&path).unwrap());
        assert!(!path.exists());
    }
}
