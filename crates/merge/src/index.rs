//! The user's index, read from a copy and made anew in a copy.

mod rewrite;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_store::RelPath;
use sandtable_store::dir::Meta;
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::object::Hasher;
use sandtable_store::regular;
use sandtable_store::source::index::Index as Plain;

use super::error::Error;
use super::git::GitError;
use super::scratch::{Scratch, index_info};
use super::tree::{Change, Entry, Mode, staged};

/// A copy of the index at one moment.
#[derive(Debug)]
pub(super) struct Index {
    git_dir: PathBuf,
    data: Option<Vec<u8>>,
    /// What the file was; none where there was none.
    pub(super) digest: Option<ObjectId>,
}

/// An index that is not yet in its place.
pub(super) enum Made {
    Bytes(Vec<u8>),
    /// By git, with the times of the files it found.
    File(PathBuf),
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

/// The largest index that is taken.
const LARGEST: u64 = 1 << 30;
/// The longest rules of a sparse checkout.
const RULES: u64 = 64 << 20;

/// An index of the user's; nothing where there is none.
pub(super) fn read_index(file: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match regular::read(file, LARGEST) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

impl Index {
    /// Copies the index of a worktree.
    pub(super) fn copy(git_dir: &Path) -> Result<Self, Error> {
        let data = read_index(&git_dir.join("index"))?;
        let digest = data.as_deref().map(digest);
        Ok(Self { git_dir: git_dir.to_owned(), data, digest })
    }

    /// The copy as a file in the scratch repository, with what it consists of.
    fn file(&self, scratch: &Scratch) -> Result<PathBuf, Error> {
        let copy = scratch.path().join("index");
        let (Some(data), false) = (&self.data, copy.exists()) else { return Ok(copy) };
        for entry in fs::read_dir(&self.git_dir)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default();
            if name.as_encoded_bytes().starts_with(b"sharedindex.") {
                regular::copy(&path, &mut fs::File::create(scratch.path().join(name))?, LARGEST)?;
            }
        }
        fs::write(&copy, data)?;
        Ok(copy)
    }

    /// What it says about these paths.
    pub(super) fn entries(
        &self,
        scratch: &Scratch,
        paths: &BTreeSet<&RelPath>,
    ) -> Result<BTreeMap<RelPath, Indexed>, Error> {
        let Some(data) = &self.data else { return Ok(BTreeMap::new()) };
        let Ok(read) = Plain::parse(data, scratch.format(), 0) else {
            return self.entries_by_git(scratch, paths);
        };
        let known = |path: &&RelPath| {
            let entry = read.find(path.as_bytes())?;
            let (unmerged, skipped) = (entry.is_unmerged(), entry.is_skipped());
            let mode = Mode::of_bits(entry.mode);
            let entry = mode.map(|mode| Entry { mode, id: entry.id });
            Some(((*path).clone(), Indexed { entry, unmerged, skipped }))
        };
        Ok(paths.iter().filter_map(known).collect())
    }

    fn entries_by_git(
        &self,
        scratch: &Scratch,
        paths: &BTreeSet<&RelPath>,
    ) -> Result<BTreeMap<RelPath, Indexed>, Error> {
        let mut found: BTreeMap<RelPath, Indexed> = BTreeMap::new();
        let copy = self.file(scratch)?;
        let names: BTreeSet<&[u8]> = paths.iter().map(|path| path.as_bytes()).collect();
        let call = scratch.call().index(&copy).args(["ls-files", "-z", "-v", "--stage", "--full-name"]);
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

    /// The index after the result. `files` are those that are known to be what the result says.
    pub(super) fn with(
        &self,
        scratch: &Scratch,
        changes: &[Change],
        (skipped, files): (&[&RelPath], &BTreeMap<RelPath, Meta>),
    ) -> Result<Made, Error> {
        let new = |change: &Change| change.new.map(|new| (new, files.get(&change.path).copied()));
        let edits = changes.iter().map(|change| (change.path.as_bytes(), new(change))).collect();
        let plain = self.data.as_deref().filter(|_| skipped.is_empty());
        if let Some(made) = plain.and_then(|data| rewrite::rewritten(data, scratch.format(), &edits)) {
            return Ok(Made::Bytes(made));
        }
        let made = scratch.path().join("new.index");
        if self.data.is_some() {
            fs::copy(self.file(scratch)?, &made)?;
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
        Ok(Made::File(made))
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

/// A short name for a policy, the same for the same one.
pub fn policy_name(record: &[u8]) -> String {
    digest(record).short(16)
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
    // Git reads a file that it is told of as what `set --stdin` takes: in cone mode that is directories, and the file of a
    // repository has patterns. So the rules are put where git looks for its own, and read in the mode of the user's settings.
    fs::create_dir_all(scratch.path().join("info"))?;
    regular::copy(rules, &mut fs::File::create(scratch.path().join("info/sparse-checkout"))?, RULES)?;
    let input: Vec<u8> = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
    let inside = scratch.call().args(["sparse-checkout", "check-rules", "-z"]).output_with(&input)?;
    let inside: BTreeSet<RelPath> = inside
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(super::tree::foreign)
        .collect::<Result<_, Error>>()?;
    Ok(paths.iter().filter(|path| !inside.contains(**path)).map(|path| (*path).clone()).collect())
}
