//! Going through everything in a state, one entry at a time.

use super::{Directory, Entry, Node, State, StateError};
use crate::object::ReadObjects;
use crate::path::RelPath;

/// How much of a state is looked at before it is taken for one that was made to do harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub entries: u64,
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 20_000_000, depth: 20_000 }
    }
}

/// A walk through a state, in the order of names, each directory before what is in it.
///
/// It holds the entries of the directories on the way down, and no others.
pub struct Walk<'a> {
    objects: &'a dyn ReadObjects,
    levels: Vec<std::vec::IntoIter<Entry>>,
    path: RelPath,
    limits: Limits,
    /// The directory that was handed out last, to be entered next.
    next: Option<Directory>,
    current: Option<Node>,
}

impl std::fmt::Debug for Walk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walk").field("path", &self.path).finish_non_exhaustive()
    }
}

/// One entry of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'a> {
    pub path: &'a RelPath,
    pub node: &'a Node,
}

impl<'a> Walk<'a> {
    /// Through all of a state; the root itself is not visited.
    pub fn new(objects: &'a dyn ReadObjects, state: &State, limits: Limits) -> Result<Self, StateError> {
        let entries = state.root().read_root(objects)?.entries;
        let levels = vec![entries.into_iter()];
        Ok(Self { objects, levels, path: RelPath::root(), limits, next: None, current: None })
    }

    /// The next entry, or `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "what it yields borrows from it")]
    pub fn next(&mut self) -> Result<Option<Visit<'_>>, StateError> {
        match self.next.take() {
            Some(directory) => {
                if self.levels.len() >= self.limits.depth {
                    return Err(StateError::TooMany);
                }
                self.levels.push(directory.read(self.objects)?.into_iter());
            }
            None if self.current.is_some() => {
                self.path.pop();
            }
            None => {}
        }
        let Some(entry) = self.step() else {
            self.current = None;
            return Ok(None);
        };
        self.limits.entries = self.limits.entries.checked_sub(1).ok_or(StateError::TooMany)?;
        self.path.push(&entry.name).expect("names are checked when a directory is read");
        self.next = entry.node.as_directory().copied();
        self.current = Some(entry.node);
        Ok(self.current.as_ref().map(|node| Visit { path: &self.path, node }))
    }

    /// Does not go into the directory that was visited last.
    pub fn skip_below(&mut self) {
        self.next = None;
    }

    fn step(&mut self) -> Option<Entry> {
        loop {
            if let Some(entry) = self.levels.last_mut()?.next() {
                return Some(entry);
            }
            self.levels.pop();
            self.path.pop();
        }
    }
}
