//! Which directory is meant, whatever its name is by now.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::encoded::hex_path;

/// Device and inode.
type Which = (u64, u64);

/// The directories of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    root: Which,
    git: Option<GitDirectory>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct GitDirectory {
    #[serde(with = "hex_path")]
    path: PathBuf,
    which: Which,
}

impl Whereabouts {
    pub(super) fn of(root: &Path, git_dir: Option<&Path>) -> Option<Self> {
        let git = match git_dir {
            Some(path) => Some(GitDirectory { path: path.to_owned(), which: which(path).ok()? }),
            None => None,
        };
        Some(Self { root: which(root).ok()?, git })
    }

    /// What has the same paths now; none if something is not there.
    pub(super) fn again(&self, root: &Path) -> std::io::Result<Option<Self>> {
        let now = |path: &Path| match which(path) {
            Ok(found) => Ok(Some(found)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        };
        let git = match &self.git {
            Some(GitDirectory { path, .. }) => match now(path)? {
                Some(which) => Some(GitDirectory { path: path.clone(), which }),
                None => return Ok(None),
            },
            None => None,
        };
        Ok(now(root)?.map(|root| Self { root, git }))
    }

    /// Whether the inodes are the same, on whatever device.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let inodes = |one: &Self| (one.root.1, one.git.as_ref().map(|git| git.which.1));
        inodes(self) == inodes(other)
    }

    /// The git directory, where there is one.
    pub(super) fn git_dir(&self) -> Option<&Path> {
        self.git.as_ref().map(|git| git.path.as_path())
    }

    /// Gives the device another number.
    #[cfg(test)]
    pub(super) fn renumber(&mut self) {
        self.root.0 += 1;
        self.git.as_mut().expect("a target with a git directory").which.0 += 1;
    }

    /// Whether a directory, or the git directory in it, is the one that is meant, whatever its name is by now.
    pub fn is(&self, directory: &Path) -> bool {
        let same = |path: &Path, known: Which| which(path).is_ok_and(|found| found == known);
        let git = self.git.as_ref();
        same(directory, self.root) || git.is_some_and(|git| same(&directory.join(".git"), git.which))
    }
}

fn which(path: &Path) -> std::io::Result<Which> {
    let meta = fs::metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}
