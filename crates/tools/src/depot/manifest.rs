//! What every file of a tool was when it was made.
//!
//! On use each file is looked at; one whose size, times and inode are as they were has not been written since, and is not
//! read again. Any other is hashed. So a tool of thousands of files is checked in the time it takes to list it.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, chmodat, fchmod, readlinkat};
use rustix::io::Errno;
use sandtable_sandbox::os;
use sandtable_store::RelPath;
use sandtable_store::dir::{Kind, Meta, names, open_dir, open_file, open_named, stat_at};
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use crate::execute::COMPILER_CACHE;
use crate::plan::{Sha256, TOOLS};

/// How deep a tool's directories may be.
const DEEPEST: usize = 128;

/// Why a tree is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error("its list of files cannot be read")]
    Manifest(#[source] io::Error),
    #[error("`{path}` cannot be read")]
    Read {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("`{0}` is missing")]
    Missing(String),
    #[error("`{0}` was added")]
    Added(String),
    #[error("`{0}` has another content")]
    Changed(String),
    #[error("`{0}` is a device, a pipe or a socket")]
    Special(String),
    #[error("`{0}` is a symbolic link that leads out")]
    Leaves(String),
    #[error("its directories are nested too deeply")]
    Deep,
}

/// All entries of a tree, sorted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    entries: Vec<Listed>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Listed {
    path: String,
    #[serde(flatten)]
    content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Content {
    Directory,
    Link { to: String },
    File { sha256: Sha256, mode: u16, stamp: Stamp },
}

/// What changes whenever a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    inode: u64,
    mtime_ns: i64,
    ctime_ns: i64,
}

impl Stamp {
    fn of(meta: &Meta) -> Self {
        Self { size: meta.size, inode: meta.ino, mtime_ns: meta.mtime_ns, ctime_ns: meta.ctime_ns }
    }
}

impl Manifest {
    /// Reads and hashes everything.
    pub(super) fn of(tree: &Path) -> Result<Self, TreeError> {
        let mut entries = Vec::new();
        walk(tree, &mut |place| {
            entries.push(place.listed()?);
            Ok(())
        })?;
        Ok(Self { entries })
    }

    /// Files, and bytes in them.
    pub(super) fn size(&self) -> (u64, u64) {
        let files = self.entries.iter().filter_map(|entry| match &entry.content {
            Content::File { stamp, .. } => Some(stamp.size),
            _ => None,
        });
        files.fold((0, 0), |(files, bytes), size| (files + 1, bytes + size))
    }

    /// Whether the tree is still as it was made; reads only what looks written.
    pub(super) fn compare(&self, tree: &Path) -> Result<(), TreeError> {
        let mut expected = self.entries.iter();
        walk(tree, &mut |place| {
            let path = place.shown();
            let Some(known) = expected.next() else { return Err(TreeError::Added(path)) };
            match in_order(&known.path, &path) {
                std::cmp::Ordering::Less => return Err(TreeError::Missing(known.path.clone())),
                std::cmp::Ordering::Greater => return Err(TreeError::Added(path)),
                std::cmp::Ordering::Equal => {}
            }
            if let Content::File { stamp, mode, .. } = &known.content
                && place.meta.kind == Kind::File
                && *stamp == Stamp::of(&place.meta)
                && *mode == place.meta.mode
            {
                return Ok(());
            }
            if same(&known.content, &place.listed()?.content) {
                Ok(())
            } else {
                Err(TreeError::Changed(path))
            }
        })?;
        expected.next().map_or(Ok(()), |missing| Err(TreeError::Missing(missing.path.clone())))
    }

    /// Whether both list the same files with the same bytes.
    pub(super) fn same_content(&self, other: &Self) -> Result<(), TreeError> {
        for (ours, theirs) in self.entries.iter().zip(&other.entries) {
            match in_order(&ours.path, &theirs.path) {
                std::cmp::Ordering::Less => return Err(TreeError::Missing(ours.path.clone())),
                std::cmp::Ordering::Greater => return Err(TreeError::Added(theirs.path.clone())),
                std::cmp::Ordering::Equal if same(&ours.content, &theirs.content) => {}
                std::cmp::Ordering::Equal => return Err(TreeError::Changed(ours.path.clone())),
            }
        }
        match (self.entries.get(other.entries.len()), other.entries.get(self.entries.len())) {
            (Some(missing), _) => Err(TreeError::Missing(missing.path.clone())),
            (_, Some(added)) => Err(TreeError::Added(added.path.clone())),
            (None, None) => Ok(()),
        }
    }
}

/// Takes every right to write, and every bit that makes somebody another, from a tree that steps have left. Refuses
/// what no tool may hold. A compiler's cache stays writable for its owner: it is only ever shown read-only or
/// copy-on-write, and in a copy the compiler has to write.
pub(super) fn make_read_only(tree: &Path) -> Result<(), TreeError> {
    let mut directories = Vec::new();
    walk(tree, &mut |place| {
        let path = place.shown();
        let failed = |errno: Errno| TreeError::Read { path: path.clone(), source: errno.into() };
        match place.meta.kind {
            Kind::File => {
                let mode = os::mode(u32::from(place.meta.mode) & 0o555 | 0o444 | spared(place.path));
                chmodat(place.parent, place.name, mode, AtFlags::empty()).map_err(failed)
            }
            Kind::Directory => {
                directories.push(place.path.clone());
                Ok(())
            }
            Kind::Symlink if place.leaves() => Err(TreeError::Leaves(path)),
            Kind::Symlink => Ok(()),
            _ => Err(TreeError::Special(path)),
        }
    })?;
    let top =
        open_named(tree).map_err(|errno| TreeError::Read { path: ".".to_owned(), source: errno.into() })?;
    for path in directories.iter().rev() {
        let failed = |errno: Errno| TreeError::Read { path: path.display_escaped(), source: errno.into() };
        let directory = sandtable_store::dir::open_below(top.as_fd(), path).map_err(failed)?;
        fchmod(&directory, os::mode(0o555 | spared(path))).map_err(failed)?;
    }
    Ok(())
}

/// The right to write that is not taken.
fn spared(path: &RelPath) -> u32 {
    if path.components().next() == Some(COMPILER_CACHE.as_bytes()) { 0o200 } else { 0 }
}

/// One entry of a tree, reached by handle.
struct Place<'a> {
    parent: BorrowedFd<'a>,
    name: &'a [u8],
    path: &'a RelPath,
    meta: Meta,
}

impl Place<'_> {
    fn shown(&self) -> String {
        self.path.display_escaped()
    }

    fn failed(&self, error: impl Into<io::Error>) -> TreeError {
        TreeError::Read { path: self.shown(), source: error.into() }
    }

    fn link(&self) -> Result<Vec<u8>, TreeError> {
        let to = readlinkat(self.parent, self.name, Vec::new()).map_err(|errno| self.failed(errno))?;
        Ok(to.into_bytes())
    }

    /// Whether it is a link out of the tree: only other tools stand where every sandbox finds them.
    fn leaves(&self) -> bool {
        let Ok(to) = self.link() else { return true };
        if to.starts_with(b"/") {
            let tools = [TOOLS.as_bytes(), b"/"].concat();
            return !to.starts_with(&tools) || to.split(|byte| *byte == b'/').any(|part| part == b"..");
        }
        self.path.link_leaves(&to)
    }

    fn listed(&self) -> Result<Listed, TreeError> {
        let content = match self.meta.kind {
            Kind::Directory => Content::Directory,
            Kind::Symlink => Content::Link { to: sandtable_store::path::escape(&self.link()?) },
            Kind::File => {
                Content::File { sha256: self.hash()?, mode: self.meta.mode, stamp: Stamp::of(&self.meta) }
            }
            _ => return Err(TreeError::Special(self.shown())),
        };
        Ok(Listed { path: self.shown(), content })
    }

    fn hash(&self) -> Result<Sha256, TreeError> {
        let file = open_file(self.parent, self.name, &self.meta).map_err(|errno| self.failed(errno))?;
        let (mut file, mut hash) = (File::from(file), sha2::Sha256::new());
        let mut buffer = vec![0; 128 * 1024];
        loop {
            match file.read(&mut buffer).map_err(|error| self.failed(error))? {
                0 => return Ok(Sha256(hash.finalize().into())),
                read => hash.update(&buffer[..read]),
            }
        }
    }
}

/// Visits every entry below `tree` in the order of their paths.
fn walk(tree: &Path, each: &mut dyn FnMut(&Place<'_>) -> Result<(), TreeError>) -> Result<(), TreeError> {
    let top = open_named(tree).map_err(|errno| match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP => TreeError::Missing(".".to_owned()),
        errno => TreeError::Read { path: ".".to_owned(), source: errno.into() },
    })?;
    walk_below(top.as_fd(), &RelPath::root(), each)
}

fn walk_below(
    directory: BorrowedFd<'_>,
    path: &RelPath,
    each: &mut dyn FnMut(&Place<'_>) -> Result<(), TreeError>,
) -> Result<(), TreeError> {
    if path.components().count() > DEEPEST {
        return Err(TreeError::Deep);
    }
    let failed =
        |path: &RelPath, errno: Errno| TreeError::Read { path: path.display_escaped(), source: errno.into() };
    let mut found = Vec::new();
    for name in names(directory).map_err(|errno| failed(path, errno))? {
        let below = path.join(&name.bytes).map_err(|_| TreeError::Special(path.display_escaped()))?;
        let meta = stat_at(directory, &name.bytes).map_err(|errno| failed(&below, errno))?;
        found.push((below, name.bytes, meta));
    }
    found.sort_by_cached_key(|(below, ..)| below.display_escaped());
    for (below, name, meta) in found {
        let kind = meta.kind;
        each(&Place { parent: directory, name: &name, path: &below, meta })?;
        if kind == Kind::Directory {
            let inner = open_dir(directory, &name).map_err(|errno| failed(&below, errno))?;
            walk_below(inner.as_fd(), &below, each)?;
        }
    }
    Ok(())
}

/// The order in which a walk meets them: a directory, what is in it, then its next neighbour.
fn in_order(a: &str, b: &str) -> std::cmp::Ordering {
    a.split('/').cmp(b.split('/'))
}

/// Whether both are the same, whenever they were written.
fn same(ours: &Content, theirs: &Content) -> bool {
    match (ours, theirs) {
        (Content::File { sha256, mode, .. }, Content::File { sha256: other, mode: other_mode, .. }) => {
            sha256 == other && mode == other_mode
        }
        _ => ours == theirs,
    }
}
