//! Going through git's index along with the names of a directory.

use super::index::{Index, IndexEntry};
use crate::dir::Meta;
use crate::id::ObjectId;

/// A place in an index. Paths may be asked for in any order; one that comes soon after the one before is found at once,
/// and that is how a directory lists them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    index: &'a Index,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(index: &'a Index) -> Self {
        Self { index, at: 0 }
    }

    /// The entry at a path; of one with conflicts, the first.
    pub(crate) fn find(&mut self, path: &[u8]) -> Option<IndexEntry<'a>> {
        self.at = self.index.first_from(path, self.at);
        self.index.get(self.at).filter(|entry| entry.path == path)
    }

    /// What [`Index::id_of`] says.
    pub(crate) fn id_of(&mut self, path: &[u8], meta: &Meta) -> Option<ObjectId> {
        let entry = self.find(path)?;
        self.index.vouches(&entry, meta).then_some(entry.id)
    }

    /// Whether git knows anything below the directory at `path`.
    pub(crate) fn has_below(&self, path: &[u8]) -> bool {
        self.index.has_below(path)
    }
}
