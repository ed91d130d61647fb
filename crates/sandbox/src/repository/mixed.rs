//! Commits made inside that contain what somebody else wrote.
//!
//! A command sees its source as it is while it runs, so `git add -A` inside can take along what the user changes outside at the
//! same time. Afterwards it is known which paths moved in the source and which of them the sandbox wrote itself. A commit that changes
//! one of the others has it from the user. Each such content is written down beside the recorded states, by path and blob: so it is
//! found again in a commit that was amended, rebased or forked.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;
use sandtable_store::object::commit::references;
use sandtable_store::object::{ObjectKind, ReadObjects as _};
use sandtable_store::objects::{Loose, Objects};
use sandtable_store::regular::{self, Missing};
use sandtable_store::remove::remove_tree;
use sandtable_store::state::{State, StateError};
use sandtable_store::store::Store;
use serde::{Deserialize, Serialize};

use super::BaseHead;
use super::layer::Layer;
use super::trees::Trees;
use crate::attention::Attention;

/// The file in the directory of a store.
const FILE: &str = "mixed";
/// More than is ever in it.
const LARGEST: u64 = 256 << 20;
/// As much of commits and trees is read.
const BYTES: u64 = 128 << 20;
/// As many commits are looked at.
const COMMITS: usize = 10_000;
/// As long is looked: whoever made the commits can make many of them.
const PATIENCE: Duration = Duration::from_secs(5);
/// As many paths are written down at once.
const FOUND: usize = 10_000;

/// One path of one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mixed {
    /// The state that its sandbox was made on.
    pub base: ObjectId,
    pub commit: ObjectId,
    /// Harmless to print.
    pub path: String,
    /// What the commit has there; nothing if it removes it.
    pub blob: Option<ObjectId>,
}

/// A command that has ended, in a sandbox whose git directory it changed.
pub(crate) struct Ended<'a> {
    pub(crate) store: &'a Store,
    /// What the sandbox was made on.
    pub(crate) base: (ObjectId, &'a State),
    /// What the sandbox changed in its git directory.
    pub(crate) layer: &'a ObjectId,
    pub(crate) head: &'a BaseHead,
    /// The objects of the source.
    pub(crate) theirs: &'a Path,
    /// A directory for what is unpacked, which is removed again.
    pub(crate) place: PathBuf,
    /// Whether a path moved in the source meanwhile, and not in the sandbox.
    pub(crate) is_theirs: &'a dyn Fn(&RelPath) -> bool,
}

impl Ended<'_> {
    /// What commits of the sandbox have that is not its own work; nothing if that cannot be told.
    pub(crate) fn mixed(&self) -> Option<Vec<Mixed>> {
        // After a command; its signals are the supervisor's business, and what is read is bounded.
        let attention = Attention::default();
        let layer = Layer::open(self.store.objects(), Some(self.layer), &attention).ok()?;
        let tips = layer.tips(self.head).ok()?;
        if tips.iter().all(|tip| self.head.commit.as_ref() == Some(tip)) {
            return Some(Vec::new());
        }
        // What a call left that was killed.
        remove_tree(&self.place).ok()?;
        let found = layer.write_objects(&self.place).ok().and_then(|()| self.walk(tips));
        let _cleared_by_the_next = remove_tree(&self.place);
        found
    }

    fn walk(&self, mut waiting: Vec<ObjectId>) -> Option<Vec<Mixed>> {
        let hash = self.store.hash_kind();
        let theirs = Objects::new(self.theirs, hash, Loose::Read);
        let of_store = self.store.git_dir().join("objects");
        let trees = Trees::new(&self.place, hash, &[&self.place, self.theirs, &of_store]).within(BYTES);
        let (mut seen, mut found, end) = (BTreeSet::new(), Vec::new(), Instant::now() + PATIENCE);
        while let Some(commit) = waiting.pop() {
            if theirs.contains(&commit) || !seen.insert(commit) {
                continue;
            }
            let data = trees.read(&commit, ObjectKind::Commit).ok()?;
            let parts = references(&data).ok()?;
            let before = match parts.parents.first() {
                Some(parent) => trees.tree_of(parent).ok()?,
                None => trees.write(ObjectKind::Tree, b"").ok()?,
            };
            for change in trees.changes(&before, &parts.tree).ok()? {
                let blob = change.new.map(|entry| entry.id);
                if (self.is_theirs)(&change.path) && blob != self.was(&change.path).ok()? {
                    let path = change.path.display_escaped();
                    found.push(Mixed { base: self.base.0, commit, path, blob });
                }
            }
            waiting.extend(parts.parents);
            if seen.len() > COMMITS || found.len() > FOUND || Instant::now() > end {
                return None;
            }
        }
        Some(found)
    }

    /// What the base has there.
    fn was(&self, path: &RelPath) -> Result<Option<ObjectId>, StateError> {
        let node = self.base.1.lookup(self.store.objects(), path)?;
        Ok(node.and_then(|node| node.id()))
    }
}

/// Writes down what was found.
pub(crate) fn note_mixed(store: &Store, found: &[Mixed]) -> std::io::Result<()> {
    let mut text = Vec::new();
    for mixed in found {
        serde_json::to_writer(&mut text, mixed)?;
        text.push(b'\n');
    }
    regular::open_private_to_append(&store.dir().join(FILE), Missing::Made)?.write_all(&text)
}

/// What of the commits of sandboxes on `base` is not their own work, by path.
pub fn mixed_since(store: &Store, base: &ObjectId) -> BTreeSet<(String, Option<ObjectId>)> {
    let text = regular::read_to_string(&store.dir().join(FILE), LARGEST).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Mixed>(line).ok());
    lines.filter(|mixed| mixed.base == *base).map(|mixed| (mixed.path, mixed.blob)).collect()
}
