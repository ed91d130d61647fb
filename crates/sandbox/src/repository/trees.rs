//! Trees read, compared and made without starting git.
//!
//! A process costs more than the work of most questions about trees. What is here answers those that have one answer
//! whoever computes it; a tree that is not exactly as git would write it is not understood, and git is asked instead.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sandtable_store::RelPath;
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::object::commit::references;
use sandtable_store::object::{EntryMode, Object, ObjectKind, ReadObjects as _, Tree, TreeEntry, hash};
use sandtable_store::objects::{Loose, Objects};
use sandtable_store::pack::loose;

use super::error::RepositoryError;
use super::tree::{Change, Entry, Mode, foreign};
use crate::attention::{Attention, Interrupted};

/// More paths than this are not taken at once. A tree can name another one ten times and that one ten more, so that a
/// few objects make as many paths as anybody likes.
const MOST: usize = 250_000;
/// How many bytes these paths may have: with the depth of a tree they grow by its square.
const PATH_BYTES: usize = 32 << 20;
/// More entries than this no tree of the target's has.
const WHOLE: usize = 5_000_000;
/// After as many entries of a tree a signal is looked for.
const OFTEN: usize = 1024;
/// How much of the end of a path an error shows.
const SHOWN: usize = 200;

/// What of a git directory a directory has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    pub head: Option<Entry>,
    /// Both `objects` and `refs`.
    pub common: bool,
}

/// The objects of a scratch repository and of all it borrows from.
#[derive(Debug)]
pub struct Trees {
    dir: PathBuf,
    hash: HashKind,
    borrowed: Vec<Objects>,
    /// Made here, and not yet where git would see it.
    fresh: RefCell<BTreeMap<ObjectId, Object>>,
    known: RefCell<BTreeMap<ObjectId, Rc<Tree>>>,
    /// How much more may be read.
    room: Cell<u64>,
    attention: Attention,
}

/// Something could not be read or is not as it should be: git has the last word.
#[derive(Debug)]
pub struct NotUnderstood;

impl Trees {
    /// Those of the directory `dir`, and of others whose objects it may use.
    pub fn new(dir: &Path, hash: HashKind, borrowed: &[&Path]) -> Self {
        let borrowed = borrowed.iter().map(|dir| Objects::new(dir, hash, Loose::Read)).collect();
        Self {
            dir: dir.to_owned(),
            hash,
            borrowed,
            fresh: RefCell::default(),
            known: RefCell::default(),
            room: Cell::new(u64::MAX),
            attention: Attention::default(),
        }
    }

    /// The same, of which no more than so many bytes are read in all.
    pub(super) fn within(self, bytes: u64) -> Self {
        self.room.set(bytes);
        self
    }

    /// The same, which stops when a signal comes.
    #[must_use]
    pub fn heeding(mut self, attention: &Attention) -> Self {
        self.attention = attention.clone();
        self
    }

    /// The last of the directories that were borrowed from.
    pub fn last(&self) -> Option<&Objects> {
        self.borrowed.last()
    }

    /// Where an object is. To ask each for what another has would make it look for the reason why it has not.
    fn place(&self, id: &ObjectId) -> Option<&Objects> {
        self.borrowed.iter().find(|objects| objects.contains(id))
    }

    pub fn object(&self, id: &ObjectId) -> Result<Object, NotUnderstood> {
        if let Some(objects) = self.place(id) {
            self.take_room(objects, id)?;
            return objects.read(id).map_err(|_| NotUnderstood);
        }
        if let Some(object) = self.fresh.borrow().get(id) {
            return Ok(object.clone());
        }
        let object = loose::read(&self.dir, id).ok().flatten().ok_or(NotUnderstood)?;
        let named = hash(self.hash, object.kind, &object.data).is_ok_and(|found| found == *id);
        if named { Ok(object) } else { Err(NotUnderstood) }
    }

    fn take_room(&self, objects: &Objects, id: &ObjectId) -> Result<(), NotUnderstood> {
        if self.room.get() == u64::MAX {
            return Ok(());
        }
        let (_, size) = objects.header(id).map_err(|_| NotUnderstood)?;
        self.room.set(self.room.get().checked_sub(size).ok_or(NotUnderstood)?);
        Ok(())
    }

    pub fn read(&self, id: &ObjectId, kind: ObjectKind) -> Result<Vec<u8>, NotUnderstood> {
        let object = self.object(id)?;
        if object.kind == kind { Ok(object.data) } else { Err(NotUnderstood) }
    }

    pub fn blob_size(&self, id: &ObjectId) -> Result<u64, NotUnderstood> {
        let fresh = self.fresh.borrow();
        let found = match self.place(id) {
            _ if fresh.contains_key(id) => {
                fresh.get(id).map(|object| (object.kind, object.data.len() as u64))
            }
            Some(objects) => objects.header(id).ok(),
            None => loose::header(&self.dir, id).ok().flatten(),
        };
        match found {
            Some((ObjectKind::Blob, size)) => Ok(size),
            _ => Err(NotUnderstood),
        }
    }

    pub fn write(&self, kind: ObjectKind, data: &[u8]) -> Result<ObjectId, RepositoryError> {
        let id = hash(self.hash, kind, data).map_err(std::io::Error::other)?;
        self.fresh.borrow_mut().insert(id, Object { kind, data: data.to_vec() });
        Ok(id)
    }

    /// Puts what was made where git sees it. What cannot be written git will miss, and say so.
    pub fn show_git(&self) {
        for (_, object) in std::mem::take(&mut *self.fresh.borrow_mut()) {
            drop(loose::write(&self.dir, self.hash, (object.kind, &object.data)));
        }
    }

    pub fn tree_of(&self, commit: &ObjectId) -> Result<ObjectId, NotUnderstood> {
        let data = self.read(commit, ObjectKind::Commit)?;
        references(&data).map(|found| found.tree).map_err(|_| NotUnderstood)
    }

    fn tree(&self, id: &ObjectId) -> Result<Rc<Tree>, NotUnderstood> {
        if let Some(tree) = self.known.borrow().get(id) {
            return Ok(Rc::clone(tree));
        }
        let tree = Tree::parse(self.hash, &self.read(id, ObjectKind::Tree)?).map_err(|_| NotUnderstood)?;
        let tree = Rc::new(tree);
        self.known.borrow_mut().insert(*id, Rc::clone(&tree));
        Ok(tree)
    }

    fn entries(&self, id: Option<&ObjectId>) -> Result<BTreeMap<Vec<u8>, TreeEntry>, NotUnderstood> {
        let Some(id) = id else { return Ok(BTreeMap::new()) };
        let tree = self.tree(id)?;
        Ok(tree.entries().iter().map(|entry| (entry.name.clone(), entry.clone())).collect())
    }

    /// Goes through everything that differs between two trees: first whole directories, then what is in them.
    fn compare(&self, (from, to): (&ObjectId, &ObjectId), each: &mut Each<'_>) -> Result<(), Failed> {
        let mut waiting = vec![(Vec::new(), Some(*from), Some(*to))];
        let (mut count, mut bytes) = (MOST, PATH_BYTES);
        while let Some((above, from, to)) = waiting.pop() {
            self.attention.heed()?;
            let (old, new) = (self.entries(from.as_ref())?, self.entries(to.as_ref())?);
            let names: BTreeSet<&Vec<u8>> = old.keys().chain(new.keys()).collect();
            for name in names {
                let (old, new) = (old.get(name), new.get(name));
                if old == new {
                    continue;
                }
                let mut path = above.clone();
                path.extend_from_slice(name);
                (count, bytes) = room_behind((count, bytes), &path)?;
                each(&path, old, new)?;
                let below = |entry: Option<&TreeEntry>| {
                    entry.filter(|entry| entry.mode == EntryMode::Tree).map(|entry| entry.id)
                };
                if below(old).is_some() || below(new).is_some() {
                    path.push(b'/');
                    waiting.push((path, below(old), below(new)));
                }
            }
        }
        Ok(())
    }

    /// What differs between two trees, without renames, by path.
    pub fn changes(&self, from: &ObjectId, to: &ObjectId) -> Result<Vec<Change>, Failed> {
        let mut found = Vec::new();
        self.compare((from, to), &mut |path, old, new| {
            let (old, new) = (old.and_then(entry), new.and_then(entry));
            if old.is_some() || new.is_some() {
                found.push(Change { path: foreign(path)?, old, new });
            }
            Ok(())
        })?;
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// The trees and blobs that one tree has and another has not, as far as they are where the other has others.
    pub fn arrivals(&self, from: &ObjectId, to: &ObjectId) -> Result<Vec<ObjectId>, Failed> {
        let mut found = vec![*to];
        self.compare((from, to), &mut |_, _, new| {
            found.extend(new.filter(|new| new.mode != EntryMode::Gitlink).map(|new| new.id));
            Ok(())
        })?;
        Ok(found)
    }

    /// The links of a tree, by path.
    pub fn symlinks(&self, tree: &ObjectId) -> Result<Vec<(RelPath, ObjectId)>, Failed> {
        let (mut found, mut seen, mut room) = (Vec::new(), 0, (MOST, PATH_BYTES));
        // One path for all: as deep as a tree may be, only those of links are kept.
        let mut path: Vec<u8> = Vec::new();
        let mut waiting = vec![(self.tree(tree)?, 0, 0)];
        while let Some((tree, at, above)) = waiting.pop() {
            let Some(entry) = tree.entries().get(at) else { continue };
            path.truncate(above);
            path.extend_from_slice(&entry.name);
            waiting.push((Rc::clone(&tree), at + 1, above));
            seen += 1;
            if seen % OFTEN == 0 {
                self.attention.heed()?;
            }
            match entry.mode {
                EntryMode::Tree => {
                    path.push(b'/');
                    waiting.push((self.tree(&entry.id)?, 0, path.len()));
                }
                EntryMode::Symlink => {
                    room = room_behind(room, &path)?;
                    found.push((foreign(&path)?, entry.id));
                }
                _ => {}
            }
            if seen > WHOLE {
                let limit = format!("{WHOLE} entries of one tree");
                return Err(RepositoryError::TooMuch { limit, path: shown(&path) }.into());
            }
        }
        Ok(found)
    }

    /// Whether a directory above one of these paths has an entry of this name. Of a path, only as much is looked at as
    /// the tree has.
    pub fn has_beside(
        &self,
        tree: &ObjectId,
        paths: &[&RelPath],
        name: &[u8],
    ) -> Result<bool, NotUnderstood> {
        let mut seen = BTreeSet::new();
        for path in paths {
            let mut folder = *tree;
            for step in path.components() {
                let tree = self.tree(&folder)?;
                if seen.insert(folder) && tree.get(name).is_some() {
                    return Ok(true);
                }
                match tree.get(step) {
                    Some(found) if found.mode == EntryMode::Tree => folder = found.id,
                    _ => break,
                }
            }
        }
        Ok(false)
    }

    /// What of a git directory each directory above a path has, from the top, as far as the tree has them.
    pub fn levels(&self, tree: &ObjectId, path: &RelPath) -> Result<Vec<Parts>, NotUnderstood> {
        let (mut found, mut folder) = (Vec::new(), *tree);
        for step in path.components() {
            let tree = self.tree(&folder)?;
            let common = tree.get(b"objects").is_some() && tree.get(b"refs").is_some();
            found.push(Parts { head: tree.get(b"HEAD").and_then(entry), common });
            match tree.get(step) {
                Some(next) if next.mode == EntryMode::Tree => folder = next.id,
                _ => break,
            }
        }
        Ok(found)
    }

    /// What a tree has at a path.
    pub fn at(&self, tree: &ObjectId, path: &RelPath) -> Result<Option<TreeEntry>, NotUnderstood> {
        let mut folder = *tree;
        let mut names = path.as_bytes().split(|byte| *byte == b'/').peekable();
        while let Some(name) = names.next() {
            let Some(found) = self.tree(&folder)?.get(name).cloned() else { return Ok(None) };
            match (names.peek(), found.mode) {
                (None, _) => return Ok(Some(found)),
                (Some(_), EntryMode::Tree) => folder = found.id,
                (Some(_), _) => return Ok(None),
            }
        }
        Ok(None)
    }

    /// `tree` with some entries exchanged, added or removed.
    pub fn edited(&self, tree: &ObjectId, edits: &[(&RelPath, Option<Entry>)]) -> Result<ObjectId, Failed> {
        let mut list: Vec<Edit<'_>> = edits.iter().map(|(path, new)| (path.as_bytes(), *new)).collect();
        list.sort_by(|one, other| one.0.cmp(other.0));
        match self.rebuilt(Some(tree), &list)? {
            Some(made) => Ok(made),
            None => Ok(self.write(ObjectKind::Tree, b"")?),
        }
    }

    /// One directory with its edits; none when nothing is left in it.
    fn rebuilt(&self, folder: Option<&ObjectId>, edits: &[Edit<'_>]) -> Result<Option<ObjectId>, Failed> {
        let mut entries = self.entries(folder)?;
        let first = |path: &'_ [u8]| path.split(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
        let mut groups: BTreeMap<Vec<u8>, Vec<Edit<'_>>> = BTreeMap::new();
        let mut here: Vec<Edit<'_>> = Vec::new();
        for (path, new) in edits {
            match path.iter().position(|byte| *byte == b'/') {
                Some(at) => groups.entry(first(path)).or_default().push((&path[at + 1..], *new)),
                None => here.push((path, *new)),
            }
        }
        // Removals first: a file can make room for a directory.
        for (name, _) in here.iter().filter(|(_, new)| new.is_none()) {
            if entries.get(*name).is_some_and(|old| old.mode != EntryMode::Tree) {
                entries.remove(*name);
            }
        }
        for (name, edits) in groups {
            let old = entries.get(&name).filter(|old| old.mode == EntryMode::Tree).map(|old| old.id);
            match self.rebuilt(old.as_ref(), &edits)? {
                Some(id) => {
                    entries.insert(name.clone(), TreeEntry { mode: EntryMode::Tree, name, id });
                }
                None if old.is_some() => {
                    entries.remove(&name);
                }
                None => {}
            }
        }
        for (name, new) in here {
            if let Some(Entry { mode, id }) = new {
                let name = name.to_vec();
                entries.insert(name.clone(), TreeEntry { mode: entry_mode(mode), name, id });
            }
        }
        if entries.is_empty() {
            return Ok(None);
        }
        let tree = Tree::new(entries.into_values().collect()).map_err(|_| NotUnderstood)?;
        Ok(Some(self.write(ObjectKind::Tree, &tree.encode())?))
    }
}

/// Is told of a path, and what it was and is.
type Each<'e> = dyn FnMut(&[u8], Option<&TreeEntry>, Option<&TreeEntry>) -> Result<(), Failed> + 'e;

type Edit<'a> = (&'a [u8], Option<Entry>);

/// Either git is to be asked, or nobody can do it.
#[derive(Debug)]
pub enum Failed {
    NotUnderstood,
    Error(RepositoryError),
}

impl From<NotUnderstood> for Failed {
    fn from(_: NotUnderstood) -> Self {
        Self::NotUnderstood
    }
}

impl From<Interrupted> for Failed {
    fn from(interrupted: Interrupted) -> Self {
        Self::Error(interrupted.into())
    }
}

impl From<RepositoryError> for Failed {
    fn from(error: RepositoryError) -> Self {
        Self::Error(error)
    }
}

/// What is left of the room for paths behind one more.
fn room_behind((count, bytes): (usize, usize), path: &[u8]) -> Result<(usize, usize), RepositoryError> {
    let left = count.checked_sub(1).zip(bytes.checked_sub(path.len()));
    left.ok_or_else(|| {
        let limit = format!("{MOST} paths, or {} MiB of names", PATH_BYTES >> 20);
        RepositoryError::TooMuch { limit, path: shown(path) }
    })
}

/// The end of a path, for an error.
pub fn shown(path: &[u8]) -> String {
    sandtable_store::path::escape(&path[path.len().saturating_sub(SHOWN)..])
}

/// None for a directory.
pub fn entry(entry: &TreeEntry) -> Option<Entry> {
    let mode = match entry.mode {
        EntryMode::File => Mode::File,
        EntryMode::Executable => Mode::Executable,
        EntryMode::Symlink => Mode::Symlink,
        EntryMode::Gitlink => Mode::Gitlink,
        EntryMode::Tree => return None,
    };
    Some(Entry { mode, id: entry.id })
}

const fn entry_mode(mode: Mode) -> EntryMode {
    match mode {
        Mode::File => EntryMode::File,
        Mode::Executable => EntryMode::Executable,
        Mode::Symlink => EntryMode::Symlink,
        Mode::Gitlink => EntryMode::Gitlink,
    }
}
