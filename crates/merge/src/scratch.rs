//! A repository of our own for the time of one operation.
//!
//! It borrows objects from the user's repository and from the store, writes what it makes into itself, and has a
//! configuration of three lines. So trees are merged without a byte of the user's repository being written and
//! without its configuration being read.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_sandbox::attention::Attention;
use sandtable_sandbox::repository::{Failed, Trees};
use sandtable_store::RelPath;
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::object::ObjectKind;

use super::error::Error;
use super::git::{Call, Git};
use super::or_git::or_git;
use super::tree::{Change, Entry, changes};

/// An empty directory that stands for the work tree where there is none, so that git looks at no other.
const NONE: &str = "none";

/// The repository. Gone when dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    git: Git,
    path: PathBuf,
    format: HashKind,
    /// Settings that are data: how lines end, what the file system can do.
    settings: Vec<(String, String)>,
    trees: Trees,
}

impl Scratch {
    /// Makes one at `path`, which must not exist, with the objects of these directories.
    pub(super) fn new(git: &Git, path: PathBuf, format: HashKind, borrowed: &[&Path]) -> Result<Self, Error> {
        fs::create_dir_all(path.join("objects/info"))?;
        fs::create_dir_all(path.join("objects/pack"))?;
        fs::create_dir_all(path.join("refs"))?;
        fs::create_dir_all(path.join(NONE))?;
        fs::write(path.join("HEAD"), "ref: refs/heads/none\n")?;
        fs::write(path.join("config"), configuration(format))?;
        let mut list = Vec::new();
        for folder in borrowed {
            list.extend(quoted(folder.as_os_str().as_bytes()).bytes());
            list.push(b'\n');
        }
        fs::write(path.join("objects/info/alternates"), list)?;
        let trees = Trees::new(&path.join("objects"), format, borrowed).heeding(git.attention());
        Ok(Self { git: git.clone(), path, format, settings: Vec::new(), trees })
    }

    pub(super) fn with_settings(mut self, settings: Vec<(String, String)>) -> Self {
        self.settings = settings;
        self
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn git(&self) -> &Git {
        &self.git
    }

    /// To be asked wherever the work depends on what a sandbox wrote.
    pub(super) const fn attention(&self) -> &Attention {
        self.git.attention()
    }

    pub(super) const fn format(&self) -> HashKind {
        self.format
    }

    /// A call that sees everything that was made here before.
    pub(super) fn call(&self) -> Call {
        self.trees.show_git();
        self.git.call(&self.path).settings(&self.settings).work_tree(&self.path.join(NONE))
    }

    /// Objects of this repository and all it borrows, read without git.
    pub(super) const fn trees(&self) -> &Trees {
        &self.trees
    }

    /// The tree of a commit.
    pub(super) fn tree_of(&self, commit: &ObjectId) -> Result<ObjectId, Error> {
        or_git(self.trees.tree_of(commit).map_err(Failed::from), || {
            let name = format!("{commit}^{{tree}}");
            Ok(self.call().args(["rev-parse", "--verify", "--end-of-options", &name]).object()?)
        })
    }

    pub(super) fn empty_tree(&self) -> Result<ObjectId, Error> {
        Ok(self.trees.write(ObjectKind::Tree, b"")?)
    }

    /// What differs between two trees, without renames.
    pub(super) fn changes(&self, from: &ObjectId, to: &ObjectId) -> Result<Vec<Change>, Error> {
        if from == to {
            return Ok(Vec::new());
        }
        or_git(self.trees.changes(from, to), || {
            let call = self.call().args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"]);
            changes(&call.args(["--no-ext-diff", "--no-textconv"]).id(from).id(to).output()?)
        })
    }

    /// `tree` with some entries exchanged, added or removed.
    pub(super) fn edited<'a>(
        &self,
        tree: &ObjectId,
        edits: impl IntoIterator<Item = (&'a RelPath, Option<Entry>)>,
    ) -> Result<ObjectId, Error> {
        let edits: Vec<(&RelPath, Option<Entry>)> = edits.into_iter().collect();
        if edits.is_empty() {
            return Ok(*tree);
        }
        or_git(self.trees.edited(tree, &edits), || self.edited_by_git(tree, &edits))
    }

    fn edited_by_git(&self, tree: &ObjectId, edits: &[(&RelPath, Option<Entry>)]) -> Result<ObjectId, Error> {
        let input = index_info(edits.iter().copied(), self.format);
        let index = self.path.join("edit.index");
        self.call().index(&index).arg("read-tree").id(tree).output()?;
        self.call().index(&index).args(["update-index", "-z", "--index-info"]).output_with(&input)?;
        let made = self.call().index(&index).args(["write-tree"]).object()?;
        fs::remove_file(index)?;
        Ok(made)
    }

    /// Gives an object a name in this repository.
    pub(super) fn name(&self, name: &str, id: &ObjectId) -> Result<(), Error> {
        fs::create_dir_all(self.path.join("refs/tags"))?;
        Ok(fs::write(self.path.join("refs/tags").join(name), format!("{id}\n"))?)
    }

    pub(super) fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, Error> {
        or_git(self.trees.read(id, ObjectKind::Blob).map_err(Failed::from), || {
            Ok(self.call().args(["cat-file", "blob"]).id(id).output()?)
        })
    }

    pub(super) fn write_blob(&self, content: &[u8]) -> Result<ObjectId, Error> {
        Ok(self.trees.write(ObjectKind::Blob, content)?)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays behind is removed by the next call.
        drop(fs::remove_dir_all(&self.path));
    }
}

/// Lines for `update-index --index-info`; removals first, so that a file can make room for a directory.
pub(super) fn index_info<'a>(
    edits: impl IntoIterator<Item = (&'a RelPath, Option<Entry>)>,
    format: HashKind,
) -> Vec<u8> {
    let (mut gone, mut made) = (Vec::new(), Vec::new());
    for (path, entry) in edits {
        let (lines, head) = match entry {
            None => (&mut gone, format!("0 {}\t", "0".repeat(format.bytes() * 2))),
            Some(entry) => (&mut made, format!("{} {}\t", entry.mode.octal(), entry.id)),
        };
        lines.extend_from_slice(head.as_bytes());
        lines.extend_from_slice(path.as_bytes());
        lines.push(0);
    }
    gone.append(&mut made);
    gone
}

fn configuration(format: HashKind) -> String {
    let mut text = String::from("[core]\n\trepositoryformatversion = 1\n\tbare = false\n");
    if format == HashKind::Sha256 {
        text.push_str("[extensions]\n\tobjectformat = sha256\n");
    }
    text
}

/// As git quotes a path in a list of paths.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(*byte));
            }
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => write!(text, "\\{byte:03o}").expect("a string takes everything"),
        }
    }
    text.push('"');
    text
}
