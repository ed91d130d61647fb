//! One directory of a state, read from its three trees at once.

use super::manifest::{self, ROOT, Record, RecordKind};
use super::times::{self, Time};
use super::{Entry, Node, Own, StateError, What};
use crate::id::ObjectId;
use crate::object::{EntryMode, ObjectKind, ReadObjects, Tree, TreeEntry};

/// The blob with the records of a directory.
pub(super) const RECORDS: &[u8] = b"+";
/// What stands before the name of a sub-directory.
pub(super) const BELOW: u8 = b'=';

/// A directory, by the names of its trees. What has nothing to say is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Directory {
    pub tree: Option<ObjectId>,
    pub manifest: Option<ObjectId>,
    pub times: Option<ObjectId>,
}

/// What the root directory holds, and what it says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    pub own: Own,
    /// Sorted by name, as bytes.
    pub entries: Vec<Entry>,
}

impl Directory {
    /// Its entries, sorted by name, as bytes.
    pub fn read(&self, objects: &dyn ReadObjects) -> Result<Vec<Entry>, StateError> {
        let mut parts = Parts::read(self, objects)?;
        if parts.root_record().is_some() || parts.root_time().is_some() {
            let id = self.manifest.or(self.times).expect("the record came from one of them");
            return Err(StateError::Unfit { id, what: "only the root speaks of itself" });
        }
        parts.into_entries()
    }

    /// The same for the root, which also speaks of itself.
    pub fn read_root(&self, objects: &dyn ReadObjects) -> Result<Contents, StateError> {
        let mut parts = Parts::read(self, objects)?;
        let mut own = Own::usual(EntryMode::Tree);
        if let Some(record) = parts.root_record() {
            (own.bits, own.attributes) = (record.bits, record.attributes);
        }
        own.mtime_ns = parts.root_time().map(|time| time.nanoseconds);
        Ok(Contents { own, entries: parts.into_entries()? })
    }

    /// Whether both hold the same, whenever it was modified.
    pub fn same(&self, other: &Self) -> bool {
        (self.tree, self.manifest) == (other.tree, other.manifest)
    }
}

/// What the three trees say, not yet put together.
struct Parts {
    tree: Vec<TreeEntry>,
    manifest: Side<Record>,
    times: Side<Time>,
}

/// What the manifest, or times, say.
struct Side<T> {
    id: Option<ObjectId>,
    records: Vec<T>,
    /// By name, without what stands before it.
    below: Vec<(Box<[u8]>, ObjectId)>,
}

impl Parts {
    fn read(directory: &Directory, objects: &dyn ReadObjects) -> Result<Self, StateError> {
        let mut tree = read_tree(objects, directory.tree)?;
        tree.sort_unstable_by(|one, two| one.name.cmp(&two.name));
        let manifest = Side::read(objects, directory.manifest, manifest::parse)?;
        let times = Side::read(objects, directory.times, times::parse)?;
        Ok(Self { tree, manifest, times })
    }

    fn root_record(&mut self) -> Option<Record> {
        let at = self.manifest.records.iter().position(|record| *record.name == *ROOT)?;
        Some(self.manifest.records.remove(at))
    }

    fn root_time(&mut self) -> Option<Time> {
        let at = self.times.records.iter().position(|time| *time.name == *ROOT)?;
        Some(self.times.records.remove(at))
    }

    fn into_entries(self) -> Result<Vec<Entry>, StateError> {
        let mut entries = Vec::with_capacity(self.tree.len());
        let mut found = self.tree.into_iter().peekable();
        let mut records = self.manifest.records.into_iter().peekable();
        let mut records_below = self.manifest.below.into_iter().peekable();
        let mut times = self.times.records.into_iter().peekable();
        let mut times_below = self.times.below.into_iter().peekable();
        loop {
            let names = [
                found.peek().map(|entry| entry.name.as_slice()),
                records.peek().map(|record| &*record.name),
                records_below.peek().map(|(name, _)| &**name),
            ];
            let Some(name) = names.into_iter().flatten().min() else { break };
            let name: Box<[u8]> = name.into();
            // Times of what is not there are of no use, and do no harm.
            while times.next_if(|time| *time.name < *name).is_some() {}
            while times_below.next_if(|below| *below.0 < *name).is_some() {}
            let pieces = Pieces {
                found: found.next_if(|entry| *entry.name == *name),
                record: records.next_if(|record| record.name == name),
                below: records_below.next_if(|below| below.0 == name).map(|below| below.1),
                time: times.next_if(|time| time.name == name).map(|time| time.nanoseconds),
                times_below: times_below.next_if(|below| below.0 == name).map(|below| below.1),
            };
            let node = pieces.node().map_err(|what| {
                let id = self.manifest.id.expect("a tree alone is never unfit");
                StateError::Unfit { id, what }
            })?;
            entries.push(Entry { name, node });
        }
        Ok(entries)
    }
}

/// All that is known about one name.
struct Pieces {
    found: Option<TreeEntry>,
    record: Option<Record>,
    below: Option<ObjectId>,
    time: Option<i64>,
    times_below: Option<ObjectId>,
}

impl Pieces {
    fn node(self) -> Result<Node, &'static str> {
        let mode = self.found.as_ref().map_or(EntryMode::Tree, |entry| entry.mode);
        let mut own = Own { mtime_ns: self.time, ..Own::usual(mode) };
        if let Some(record) = self.record {
            let fits = match mode {
                EntryMode::File => record.kind == RecordKind::File && record.bits & 0o100 == 0,
                EntryMode::Executable => record.kind == RecordKind::File && record.bits & 0o100 != 0,
                EntryMode::Symlink => record.kind == RecordKind::Symlink,
                EntryMode::Tree => record.kind == RecordKind::Directory,
                EntryMode::Gitlink => false,
            };
            if !fits {
                return Err("it speaks of another kind of entry");
            }
            (own.bits, own.attributes) = (record.bits, record.attributes);
        }
        if mode != EntryMode::Tree && self.below.is_some() {
            return Err("it has something below what is no directory");
        }
        let what = match (mode, self.found.map(|entry| entry.id)) {
            (EntryMode::Symlink, Some(id)) => What::Symlink(id),
            (EntryMode::Gitlink, Some(id)) => What::Gitlink(id),
            (EntryMode::File | EntryMode::Executable, Some(id)) => What::File(id),
            (_, tree) => {
                What::Directory(Box::new(Directory { tree, manifest: self.below, times: self.times_below }))
            }
        };
        Ok(Node { what, own })
    }
}

impl<T> Side<T> {
    fn read(
        objects: &dyn ReadObjects,
        id: Option<ObjectId>,
        parse: fn(&[u8]) -> Result<Vec<T>, manifest::ParseError>,
    ) -> Result<Self, StateError> {
        let mut side = Self { id, records: Vec::new(), below: Vec::new() };
        let Some(id) = id else { return Ok(side) };
        for entry in read_tree(objects, Some(id))? {
            match (entry.mode, entry.name.split_first()) {
                (EntryMode::File, _) if entry.name == RECORDS => {
                    let blob = objects.read_kind(&entry.id, ObjectKind::Blob)?;
                    side.records =
                        parse(&blob).map_err(|source| StateError::Records { id: entry.id, source })?;
                }
                (EntryMode::Tree, Some((&BELOW, name))) if is_name(name) => {
                    side.below.push((name.into(), entry.id));
                }
                _ => return Err(StateError::Unfit { id, what: "it has an entry of another kind" }),
            }
        }
        side.below.sort_unstable();
        Ok(side)
    }
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
}

fn read_tree(objects: &dyn ReadObjects, id: Option<ObjectId>) -> Result<Vec<TreeEntry>, StateError> {
    let Some(id) = id else { return Ok(Vec::new()) };
    let data = objects.read_kind(&id, ObjectKind::Tree)?;
    let tree = Tree::parse(id.kind(), &data).map_err(|source| StateError::Tree { id, source })?;
    Ok(tree.into_entries())
}
