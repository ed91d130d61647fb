//! Single entries of a tree, and the review's view of a snapshot.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use sandtable_sandbox::repository::{Failed, entry};
use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;

use super::blobs;
use super::error::Error;
use super::git::GitError;
use super::or_git::or_git;
use super::review::{Contents, Parts};
use super::scratch::Scratch;
use super::tree::{Entry, Mode, foreign};

/// How many bytes of paths one call is given.
const CHUNK: usize = 64 * 1024;

/// The entries of `tree` at these paths that are no directories.
pub(super) fn lookup<'a>(
    scratch: &Scratch,
    tree: &ObjectId,
    paths: impl IntoIterator<Item = &'a RelPath>,
) -> Result<BTreeMap<RelPath, Entry>, Error> {
    let paths: Vec<&RelPath> = paths.into_iter().collect();
    let trees = scratch.trees();
    let at = |path: &&RelPath| {
        scratch.attention().heed()?;
        Ok(((*path).clone(), trees.at(tree, path)?))
    };
    let ours: Result<Vec<_>, Failed> = paths.iter().map(at).collect();
    let known = |(path, found): (RelPath, Option<_>)| Some((path, found.as_ref().and_then(entry)?));
    let ours = ours.map(|found| found.into_iter().filter_map(known).collect());
    or_git(ours, || by_git(scratch, tree, &paths))
}

fn by_git(scratch: &Scratch, tree: &ObjectId, paths: &[&RelPath]) -> Result<BTreeMap<RelPath, Entry>, Error> {
    let mut found = BTreeMap::new();
    let (mut chunk, mut size): (Vec<&RelPath>, usize) = (Vec::new(), 0);
    for path in paths {
        size += path.as_bytes().len() + 1;
        chunk.push(path);
        if size > CHUNK {
            ask(scratch, tree, &chunk, &mut found)?;
            (chunk, size) = (Vec::new(), 0);
        }
    }
    ask(scratch, tree, &chunk, &mut found)?;
    Ok(found)
}

fn ask(
    scratch: &Scratch,
    tree: &ObjectId,
    paths: &[&RelPath],
    found: &mut BTreeMap<RelPath, Entry>,
) -> Result<(), Error> {
    if paths.is_empty() {
        return Ok(());
    }
    let names = paths.iter().map(|path| OsStr::from_bytes(path.as_bytes()));
    let call = scratch.call().args(["ls-tree", "-z", "--full-tree"]).id(tree).arg("--").args(names);
    for field in call.output()?.split(|byte| *byte == 0).filter(|field| !field.is_empty()) {
        if let Some((path, entry)) = line(field)? {
            found.insert(path, entry);
        }
    }
    Ok(())
}

/// `MODE TYPE ID<tab>PATH`; nothing for a directory.
pub(super) fn line(field: &[u8]) -> Result<Option<(RelPath, Entry)>, Error> {
    let wrong = || GitError::Answer(String::from_utf8_lossy(field).into_owned());
    let tab = field.iter().position(|byte| *byte == b'\t').ok_or_else(wrong)?;
    let text = str::from_utf8(&field[..tab]).map_err(|_| wrong())?;
    let mut words = text.split(' ');
    let (mode, _, id) = (words.next(), words.next(), words.next().ok_or_else(wrong)?);
    let mode = match mode {
        Some("040000") => return Ok(None),
        Some("100755") => Mode::Executable,
        Some("120000") => Mode::Symlink,
        Some("160000") => Mode::Gitlink,
        _ => Mode::File,
    };
    Ok(Some((foreign(&field[tab + 1..])?, Entry { mode, id: id.parse().map_err(GitError::from)? })))
}

/// The contents of one tree.
pub(super) struct TreeContents<'a> {
    scratch: &'a Scratch,
    tree: ObjectId,
    loaded: BTreeMap<ObjectId, Vec<u8>>,
}

impl<'a> TreeContents<'a> {
    /// Reads these blobs ahead, as far as they are not too large.
    pub(super) fn new(scratch: &'a Scratch, tree: ObjectId, ids: &[ObjectId]) -> Result<Self, Error> {
        let sizes = blobs::sizes(scratch, ids)?;
        let small: Vec<ObjectId> =
            sizes.iter().filter(|(_, size)| **size < AHEAD_EACH).map(|(id, _)| *id).collect();
        let all: u64 = small.iter().map(|id| sizes[id]).sum();
        let loaded = if all < AHEAD_ALL { blobs::contents(scratch, &small)? } else { BTreeMap::new() };
        Ok(Self { scratch, tree, loaded })
    }
}

/// How large a blob may be, and all together, to be read ahead.
const AHEAD_EACH: u64 = 1 << 20;
const AHEAD_ALL: u64 = 64 << 20;

impl Contents for TreeContents<'_> {
    fn read(&self, entry: &Entry, limit: usize) -> Result<(Vec<u8>, u64), Error> {
        if let Some(bytes) = self.loaded.get(&entry.id) {
            return Ok((bytes[..bytes.len().min(limit)].to_vec(), bytes.len() as u64));
        }
        let size = blobs::sizes(self.scratch, &[entry.id])?.remove(&entry.id).unwrap_or_default();
        if size > limit as u64 {
            // Its size is finding enough, and nobody reads the rest.
            return Ok((Vec::new(), size));
        }
        Ok((self.scratch.blob(&entry.id)?, size))
    }

    fn is_file(&self, path: &RelPath) -> Result<bool, Error> {
        let found = lookup(self.scratch, &self.tree, [path])?;
        Ok(found.get(path).is_some_and(|entry| entry.mode.is_regular()))
    }

    fn levels(&self, path: &RelPath) -> Result<Vec<Parts>, Error> {
        // A tree that is not in order may have anything in it.
        let unknown = || vec![Parts { head: None, common: true }; path.components().count()];
        Ok(self.scratch.trees().levels(&self.tree, path).unwrap_or_else(|_| unknown()))
    }
}
