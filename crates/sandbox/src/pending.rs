//! Which places have something unfinished. One directory for all of them, so that whoever opens a source sees at one look
//! that there is nothing to recover. A mark is made and removed under the lock of its place; one that stays says that its
//! maker was killed, or is at work.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_store::regular::{self, Missing};

const NAME: &str = "pending";
/// More than any path has.
const LONGEST_PATH: u64 = 64 << 10;

/// The directory of marks.
#[derive(Debug)]
pub struct Pending(PathBuf);

/// A mark that was made.
#[derive(Debug)]
pub struct Mark(PathBuf);

impl Pending {
    /// The marks of our data directory, by one of the directories in it.
    pub fn beside(directory: &Path) -> Self {
        Self(directory.parent().unwrap_or(directory).join(NAME))
    }

    /// Says that something is under way in a place. It may have been said before.
    pub fn mark(&self, name: &str) -> io::Result<Mark> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let path = self.0.join(name);
        regular::open_private_to_append(&path, Missing::Made)?;
        Ok(Mark(path))
    }

    /// The same, with the directory that it is about.
    pub fn mark_of(&self, name: &str, target: &Path) -> io::Result<Mark> {
        let mark = self.mark(name)?;
        fs::write(&mark.0, target.as_os_str().as_bytes())?;
        Ok(mark)
    }

    /// The directory that a mark is about, if it says so.
    pub fn target(&self, name: &str) -> Option<PathBuf> {
        let bytes = regular::read(&self.0.join(name), LONGEST_PATH).ok().filter(|bytes| !bytes.is_empty())?;
        Some(PathBuf::from(OsString::from_vec(bytes)))
    }

    /// The names of all marks.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        Ok(names)
    }
}

impl Mark {
    /// Nothing is left to do there. A mark that cannot be removed costs the next call a look.
    pub fn clear(&self) {
        drop(fs::remove_file(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_seen_until_it_is_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let pending = Pending::beside(&folder.path().join("merges"));
        assert!(pending.names().unwrap().is_empty(), "no directory is needed");
        let mark = pending.mark("merge-1").unwrap();
        let _again = pending.mark("merge-1").unwrap();
        assert_eq!(pending.names().unwrap(), ["merge-1"]);
        assert_eq!(pending.target("merge-1"), None);
        let _named = pending.mark_of("merge-1", folder.path()).unwrap();
        let _again = pending.mark("merge-1").unwrap();
        assert_eq!(pending.target("merge-1").as_deref(), Some(folder.path()));
        mark.clear();
        assert!(pending.names().unwrap().is_empty());
    }
}
