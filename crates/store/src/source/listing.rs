//! What a scan saw, packed: a source of a hundred thousand files takes a few megabytes.
//!
//! Entries stand in blocks, one per directory, sorted by name; an entry knows its block and a directory the
//! block of its entries, so paths are put together only when asked for.

use std::cmp::Ordering;

use super::SourceError;
use super::git::GitState;
use crate::dir::{Kind, Meta};
use crate::path::RelPath;

/// The entries of a source at the time of the scan.
#[derive(Debug)]
pub struct Listing {
    pub(super) root: Meta,
    pub(super) blocks: Vec<Block>,
    pub(super) entries: Vec<Entry>,
    names: Vec<u8>,
    /// The state of the top-level `.git`, if that is a directory.
    pub(super) git: Option<GitState>,
    pub(super) unreadable: Vec<RelPath>,
    pub(super) submounts: Vec<RelPath>,
}

/// What one entry looked like.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub size: u64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
    pub ino: u64,
    pub uid: u32,
    pub gid: u32,
    name: u32,
    block: u32,
    /// The block of a directory's entries, or `NONE`.
    child: u32,
    /// Permission bits with set-uid, set-gid and sticky.
    pub mode: u16,
    length: u8,
    pub kind: Kind,
    pub(super) notes: Notes,
}

/// What was noted about an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Notes(u8);

impl Notes {
    pub(super) const SECRET: Self = Self(1);
    pub(super) const OUTSIDER: Self = Self(2);
    pub(super) const MOUNT: Self = Self(4);

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

const NONE: u32 = u32::MAX;

/// The block of the source itself.
pub(super) const ROOT: u32 = 0;

/// A directory's entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// The entry whose block this is; `NONE` for the root.
    owner: u32,
    first: u32,
    count: u32,
    /// Whether the directory stayed the same while its names were read.
    pub(super) settled: Settled,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Settled {
    #[default]
    Yes,
    No,
}

/// An entry on its way into a listing.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: Vec<u8>,
    pub(super) meta: Meta,
    pub(super) notes: Notes,
    /// Whether its entries are to be read too.
    pub(super) descend: bool,
}

impl Listing {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every entry with its path, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = (RelPath, &Entry)> {
        self.entries.iter().map(|entry| (self.path(entry), entry))
    }

    /// What `path` looked like.
    pub fn get(&self, path: &RelPath) -> Option<&Entry> {
        let mut block = Some(ROOT);
        let mut found = None;
        for name in path.components() {
            let entries = self.block_entries(block?);
            let index = entries.binary_search_by(|entry| self.name(entry).cmp(name)).ok()?;
            block = entries[index].child();
            found = Some(&entries[index]);
        }
        found
    }

    /// Entries other than directories whose name says *secret*, sorted.
    pub fn secrets(&self) -> Vec<RelPath> {
        self.noted(Notes::SECRET)
    }

    /// Entries whose owner or group does not exist for the sandbox, sorted.
    pub fn outsiders(&self) -> Vec<RelPath> {
        self.noted(Notes::OUTSIDER)
    }

    /// Directories that could not be read, sorted.
    pub fn unreadable(&self) -> &[RelPath] {
        &self.unreadable
    }

    /// Places where something else is mounted, sorted. They were not entered.
    pub fn submounts(&self) -> &[RelPath] {
        &self.submounts
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>()
            + self.entries.capacity() * size_of::<Entry>()
            + self.names.capacity()
    }

    pub(super) fn new(root: Meta) -> Self {
        let top = Block { owner: NONE, first: 0, count: 0, settled: Settled::Yes };
        Self {
            root,
            blocks: vec![top],
            entries: Vec::new(),
            names: Vec::new(),
            git: None,
            unreadable: Vec::new(),
            submounts: Vec::new(),
        }
    }

    /// Takes over what a directory holds; gives the blocks that are to be filled next.
    pub(super) fn fill(&mut self, block: u32, found: &[Found]) -> Result<Vec<u32>, SourceError> {
        let mut next = Vec::new();
        let first = index(self.entries.len())?;
        for Found { name, meta, notes, descend } in found {
            let child = if *descend {
                let child = index(self.blocks.len())?;
                let owner = index(self.entries.len())?;
                self.blocks.push(Block { owner, first: 0, count: 0, settled: Settled::Yes });
                next.push(child);
                child
            } else {
                NONE
            };
            self.entries.push(Entry {
                size: meta.size,
                mtime_ns: meta.mtime_ns,
                ctime_ns: meta.ctime_ns,
                ino: meta.ino,
                uid: meta.uid,
                gid: meta.gid,
                name: index(self.names.len())?,
                block,
                child,
                mode: meta.mode,
                length: u8::try_from(name.len()).map_err(|_| SourceError::TooMany)?,
                kind: meta.kind,
                notes: *notes,
            });
            self.names.extend_from_slice(name);
        }
        let count = index(found.len())?;
        let slot = &mut self.blocks[block as usize];
        (slot.first, slot.count) = (first, count);
        Ok(next)
    }

    /// Marks a directory's entries as not known after all.
    pub(super) fn forget(&mut self, block: u32) {
        let owner = self.blocks[block as usize].owner;
        if let Some(entry) = self.entries.get_mut(owner as usize) {
            entry.child = NONE;
        }
    }

    /// Gives back what was reserved too much.
    pub(super) fn finish(&mut self) {
        self.blocks.shrink_to_fit();
        self.entries.shrink_to_fit();
        self.names.shrink_to_fit();
        self.unreadable.sort_unstable();
        self.submounts.sort_unstable();
    }

    pub(super) fn name(&self, entry: &Entry) -> &[u8] {
        &self.names[entry.name as usize..][..entry.length.into()]
    }

    pub(super) fn block_entries(&self, block: u32) -> &[Entry] {
        let Block { first, count, .. } = self.blocks[block as usize];
        &self.entries[first as usize..][..count as usize]
    }

    pub(super) fn path(&self, entry: &Entry) -> RelPath {
        let mut path = self.block_path(entry.block);
        path.push(self.name(entry)).expect("a directory lists single names");
        path
    }

    /// The path of the directory whose entries the block holds.
    pub(super) fn block_path(&self, block: u32) -> RelPath {
        let mut names = Vec::new();
        let mut at = block;
        while let Some((parent, name)) = self.step(at) {
            names.push(name);
            at = parent;
        }
        let mut path = RelPath::root();
        for name in names.iter().rev() {
            path.push(name).expect("a directory lists single names");
        }
        path
    }

    /// The block one level up, and the name there; the root has none.
    pub(super) fn step(&self, block: u32) -> Option<(u32, &[u8])> {
        let entry = self.entries.get(self.blocks[block as usize].owner as usize)?;
        Some((entry.block, self.name(entry)))
    }

    fn noted(&self, note: Notes) -> Vec<RelPath> {
        let noted = self.entries.iter().filter(|entry| entry.notes.has(note));
        let mut paths: Vec<_> = noted.map(|entry| self.path(entry)).collect();
        paths.sort_unstable();
        paths
    }
}

impl Entry {
    /// The block of a directory's entries, if they were read.
    pub(super) fn child(&self) -> Option<u32> {
        (self.child != NONE).then_some(self.child)
    }

    /// Whether kind, mode and owner are the same: all there is to say about a directory itself.
    pub(super) fn same_access(&self, other: &Self) -> bool {
        (self.kind, self.mode, self.uid, self.gid) == (other.kind, other.mode, other.uid, other.gid)
    }

    /// Whether nothing can be seen to differ.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.same_access(other)
            && (self.size, self.mtime_ns, self.ctime_ns, self.ino)
                == (other.size, other.mtime_ns, other.ctime_ns, other.ino)
    }
}

/// Two sorted blocks side by side: what only one of them has, and what both have.
pub(super) fn pair<'a>(
    (left, ours): (&'a Listing, &'a [Entry]),
    (right, theirs): (&'a Listing, &'a [Entry]),
) -> Vec<(Option<&'a Entry>, Option<&'a Entry>)> {
    let mut pairs = Vec::with_capacity(ours.len().max(theirs.len()));
    let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
    loop {
        let order = match (ours.peek(), theirs.peek()) {
            (None, None) => return pairs,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => left.name(a).cmp(right.name(b)),
        };
        pairs.push(match order {
            Ordering::Less => (ours.next(), None),
            Ordering::Greater => (None, theirs.next()),
            Ordering::Equal => (ours.next(), theirs.next()),
        });
    }
}

fn index(length: usize) -> Result<u32, SourceError> {
    u32::try_from(length).ok().filter(|index| *index != NONE).ok_or(SourceError::TooMany)
}
