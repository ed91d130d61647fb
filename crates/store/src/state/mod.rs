//! States: what a tree of files was at one moment, as objects.
//!
//! A state is three trees of the same shape. Git's **tree** has the contents, the **manifest** what git cannot say
//! (permission bits, attributes, empty directories), and **times** when each entry was modified. A directory is read
//! from all three at once ([`Directory::read`]) and written to all three at once ([`Editor`]); one that did not
//! change is shared with the states before it.
//!
//! What is read here may have been made to do harm: a tree can name itself ten times at each of ten levels. So nothing
//! is read ahead, nothing recurses, and a [`Walk`] has limits.

mod directory;
pub mod edit;
mod escape;
mod left_out;
pub mod manifest;
mod skipped;
pub mod times;
mod walk;
mod write;

use sha2::Digest as _;

pub use directory::{Contents, Directory};
pub use edit::{Below, Editor};
pub use left_out::{Ignored, LeftOut};
pub use manifest::{Attribute, Attributes};
pub use skipped::{SkipReason, Skipped};
pub use walk::{Limits, Visit, Walk};
pub(crate) use write::write_directory;

use crate::dir::Meta;
use crate::id::ObjectId;
use crate::object::{EntryMode, ObjectKind, ReadError, ReadObjects, TreeError, WriteError, WriteObjects};
use crate::path::RelPath;

/// A state, by the names of its trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub tree: ObjectId,
    pub manifest: ObjectId,
    pub times: ObjectId,
    /// The layer of the sandbox's own git directory, where it has one.
    pub layer: Option<ObjectId>,
    /// What it does not hold, as [`LeftOut`] has it; nothing where that is not known. It takes no part in its identity.
    pub left_out: Option<ObjectId>,
}

/// One name of a directory and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: Box<[u8]>,
    pub node: Node,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub what: What,
    pub own: Own,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The blob with its bytes.
    File(ObjectId),
    /// The blob with its target.
    Symlink(ObjectId),
    /// Boxed: most entries are files, and there may be a million of them.
    Directory(Box<Directory>),
    /// A commit of another repository, whose files are not part of this state.
    Gitlink(ObjectId),
}

/// What an entry says of itself, whatever it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Permission bits with set-uid, set-gid and sticky, as they were; who writes files decides which to set.
    pub bits: u16,
    pub attributes: Attributes,
    /// Nanoseconds since 1970, where it is known.
    pub mtime_ns: Option<i64>,
}

/// Why a state could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("`{id}` is not a tree that could have been written here")]
    Tree { id: ObjectId, source: TreeError },
    #[error("`{id}` does not hold records of entries")]
    Records { id: ObjectId, source: manifest::ParseError },
    #[error("`{id}` does not fit the tree it belongs to: {what}")]
    Unfit { id: ObjectId, what: &'static str },
    #[error("there are more entries, or they lie deeper, than can be looked at")]
    TooMany,
}

impl State {
    /// The state of an empty directory.
    pub fn empty(sink: &dyn WriteObjects) -> Result<Self, WriteError> {
        let tree = sink.write(ObjectKind::Tree, b"")?;
        Ok(Self { tree, manifest: tree, times: tree, layer: None, left_out: None })
    }

    /// From a root that was written.
    pub(crate) fn from_root(root: &Directory, sink: &dyn WriteObjects) -> Result<Self, WriteError> {
        let empty = Self::empty(sink)?.tree;
        let or_empty = |id: Option<ObjectId>| id.unwrap_or(empty);
        let (tree, manifest, times) = (or_empty(root.tree), or_empty(root.manifest), or_empty(root.times));
        Ok(Self { tree, manifest, times, layer: None, left_out: None })
    }

    /// Equal exactly for states that are equal; times take no part in it. Hexadecimal, 64 digits.
    pub fn hash(&self) -> String {
        let mut hasher = sha2::Sha256::new();
        hasher.update(format!("sandtable-state 1\n{}\n{}\n", self.tree, self.manifest));
        ObjectId::from_bytes(&hasher.finalize()).expect("a SHA-256 has 32 bytes").to_string()
    }

    /// The directory at the top.
    pub const fn root(&self) -> Directory {
        Directory { tree: Some(self.tree), manifest: Some(self.manifest), times: Some(self.times) }
    }

    /// What is at `path`; the root is a directory like any other.
    pub fn lookup(&self, objects: &dyn ReadObjects, path: &RelPath) -> Result<Option<Node>, StateError> {
        let contents = self.root().read_root(objects)?;
        let mut node = Node { what: What::Directory(Box::new(self.root())), own: contents.own };
        let mut entries = contents.entries;
        for (depth, name) in path.components().enumerate() {
            if depth > 0 {
                let What::Directory(directory) = &node.what else { return Ok(None) };
                entries = directory.read(objects)?;
            }
            let Ok(at) = entries.binary_search_by(|entry| (*entry.name).cmp(name)) else { return Ok(None) };
            node = entries.swap_remove(at).node;
        }
        Ok(Some(node))
    }
}

impl Node {
    pub const fn mode(&self) -> EntryMode {
        match self.what {
            What::File(_) if self.own.bits & 0o100 != 0 => EntryMode::Executable,
            What::File(_) => EntryMode::File,
            What::Symlink(_) => EntryMode::Symlink,
            What::Directory(_) => EntryMode::Tree,
            What::Gitlink(_) => EntryMode::Gitlink,
        }
    }

    /// The object it stands for. A directory has none while git sees nothing in it.
    pub fn id(&self) -> Option<ObjectId> {
        match &self.what {
            What::File(id) | What::Symlink(id) | What::Gitlink(id) => Some(*id),
            What::Directory(directory) => directory.tree,
        }
    }

    pub fn as_directory(&self) -> Option<&Directory> {
        match &self.what {
            What::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    /// Whether both are the same as far as a state's identity goes: everything but times.
    pub fn same(&self, other: &Self) -> bool {
        let what = match (&self.what, &other.what) {
            (What::Directory(one), What::Directory(two)) => one.same(two),
            (one, two) => one == two,
        };
        what && (self.own.bits, &self.own.attributes) == (other.own.bits, &other.own.attributes)
    }
}

impl Own {
    /// What git assumes of an entry about which it was told nothing else.
    pub fn usual(mode: EntryMode) -> Self {
        let bits = match mode {
            EntryMode::File => 0o644,
            EntryMode::Executable | EntryMode::Tree | EntryMode::Gitlink => 0o755,
            EntryMode::Symlink => 0o777,
        };
        Self { bits, attributes: Attributes::default(), mtime_ns: None }
    }

    pub fn new(meta: &Meta, attributes: Attributes) -> Self {
        Self { bits: meta.mode, attributes, mtime_ns: Some(meta.mtime_ns) }
    }
}

#[cfg(test)]
mod tests;
