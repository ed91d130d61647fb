//! The user's index, read from a copy and made anew in a copy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_store::RelPath;
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::object::Hasher;

use super::error::Error;
use super::git::GitError;
use super::scratch::{Scratch, index_info};
use super::tree::{Change, Entry, staged};

/// A copy of the index at one moment.
#[derive(Debug)]
pub(super) struct Index {
    copy: PathBuf,
    /// What the file was; none where there was none.
    pub(super) digest: Option<ObjectId>,
}

/// What the index says about a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexed {
    pub(super) entry: Option<Entry>,
    /// It has several versions: a merge of the user's is not finished.
    pub(super) unmerged: bool,
    /// It is not meant to be in the worktree.
    pub(super) skipped: bool,
}

impl Index {
    /// Copies the index of a worktree, with what it consists of.
    pub(super) fn copy(scratch: &Scratch, git_dir: &Path) -> Result<Self, Error> {
        let copy = scratch.path().join("index");
        for entry in fs::read_dir(git_dir)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default();
            if name.as_encoded_bytes().starts_with(b"sharedindex.") {
                fs::copy(&path, scratch.path().join(name))?;
            }
        }
        let digest = match fs::read(git_dir.join("index")) {
            Ok(bytes) => {
                fs::write(&copy, &bytes)?;
                Some(digest(&bytes))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { copy, digest })
    }

    /// What it says about these paths.
    pub(super) fn entries(
        &self,
        scratch: &Scratch,
        paths: &BTreeSet<&RelPath>,
    ) -> Result<BTreeMap<RelPath, Indexed>, Error> {
        let mut found: BTreeMap<RelPath, Indexed> = BTreeMap::new();
        if self.digest.is_none() {
            return Ok(found);
        }
        let names: BTreeSet<&[u8]> = paths.iter().map(|path| path.as_bytes()).collect();
        let call = scratch.call().index(&self.copy).args(["ls-files", "-z", "-v", "--stage", "--full-name"]);
        for field in call.output()?.split(|byte| *byte == 0).filter(|field| field.len() > 2) {
            let name = field.iter().position(|byte| *byte == b'\t').map_or(&b""[..], |at| &field[at + 1..]);
            if !names.contains(name) {
                continue;
            }
            let (entry, stage, path) = staged(&field[2..])?;
            let known = found.entry(path).or_default();
            known.unmerged |= stage != 0;
            known.skipped |= field[0].eq_ignore_ascii_case(&b'S');
            known.entry = entry;
        }
        Ok(found)
    }

    /// The index after the result, as a file in the scratch repository.
    pub(super) fn with(
        &self,
        scratch: &Scratch,
        changes: &[Change],
        skipped: &[&RelPath],
    ) -> Result<PathBuf, Error> {
        let made = scratch.path().join("new.index");
        if self.digest.is_some() {
            fs::copy(&self.copy, &made)?;
        }
        let edits = changes.iter().map(|change| (&change.path, change.new));
        let input = index_info(edits, scratch.format());
        let call = scratch.call().index(&made);
        call.clone().args(["update-index", "-z", "--index-info"]).output_with(&input)?;
        if !skipped.is_empty() {
            let names: Vec<u8> = skipped.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
            let mark = call.args(["update-index", "--skip-worktree", "-z", "--stdin"]);
            mark.output_with(&names)?;
        }
        Ok(made)
    }
}

/// Puts the times of the files into an index, so that git need not read them again. Without them it would.
pub(super) fn refresh(scratch: &Scratch, index: &Path, root: &Path, paths: &[&RelPath]) {
    if paths.is_empty() {
        return;
    }
    let names: Vec<u8> = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
    let call = scratch.call().work_tree(root).index(index).args(["add", "--refresh", "--ignore-errors"]);
    let call = call.args(["--pathspec-from-file=-", "--pathspec-file-nul"]);
    let _told: Result<_, GitError> = call.finished(Some(&names), &[0, 1]);
}

pub(super) fn digest(bytes: &[u8]) -> ObjectId {
    let mut hasher = Hasher::bare(HashKind::Sha256);
    hasher.update(bytes);
    hasher.finish().expect("SHA-256 has no known collisions")
}

/// The paths that the user's sparse checkout does not show.
pub(super) fn outside_sparse(
    scratch: &Scratch,
    rules: &Path,
    paths: &[&RelPath],
) -> Result<BTreeSet<RelPath>, Error> {
    let input: Vec<u8> = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
    let call = scratch.call().args(["sparse-checkout", "check-rules", "-z", "--rules-file"]).arg(rules);
    let inside = call.output_with(&input)?;
    let inside: BTreeSet<RelPath> = inside
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(super::tree::foreign)
        .collect::<Result<_, Error>>()?;
    Ok(paths.iter().filter(|path| !inside.contains(**path)).map(|path| (*path).clone()).collect())
}
