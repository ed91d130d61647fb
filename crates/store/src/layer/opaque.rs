//! The layer of a git directory, kept as it is.
//!
//! A sandbox's `.git` is no part of the state of its files, but rollback brings it back. What the upper directory
//! holds of it is stored as a state of its own, marks included and nothing interpreted: a name is written behind `=`, a
//! whiteout is an empty file behind `-`, and an empty file `!` says that its directory hides what is below it. So no name
//! in it is one that git keeps for itself.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::attribute::{Hides, hides};
use crate::dir::{Kind, Meta, Name, names, open_below, reopen, stat_at, stat_fd};
use crate::id::ObjectId;
use crate::object::{EntryMode, ObjectKind, ReadObjects, Tree, TreeEntry};
use crate::path::RelPath;
use crate::snapshot::{
    FILE_LIMIT, FileReader, Findings, Holes, Linked, Nothing, SkipReason, SnapshotError, Store, attributes,
    judge, link,
};
use crate::state::{Attributes, Entry, Node, Own, State, StateError, What, write_directory};

/// What a name in the stored layer stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerName<'a> {
    /// An entry of this name.
    Entry(&'a [u8]),
    /// This name is removed from what lies below.
    Whiteout(&'a [u8]),
    /// The directory hides everything that lies below.
    Opaque,
}

impl<'a> LayerName<'a> {
    /// `None` for a name that was not written here.
    pub fn parse(name: &'a [u8]) -> Option<Self> {
        let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
        match name {
            b"!" => Some(Self::Opaque),
            [b'=', name @ ..] if is_name(name) => Some(Self::Entry(name)),
            [b'-', name @ ..] if is_name(name) => Some(Self::Whiteout(name)),
            _ => None,
        }
    }

    fn write(self) -> Box<[u8]> {
        match self {
            Self::Entry(name) => [b"=", name].concat().into(),
            Self::Whiteout(name) => [b"-", name].concat().into(),
            Self::Opaque => (*b"!").into(),
        }
    }
}

/// The stored layer as a state, whose names are to be read with [`LayerName::parse`].
pub fn open(objects: &dyn ReadObjects, layer: &ObjectId) -> Result<State, StateError> {
    let data = objects.read_kind(layer, ObjectKind::Tree)?;
    let tree = Tree::parse(layer.kind(), &data).map_err(|source| StateError::Tree { id: *layer, source })?;
    let part = |name: &str| {
        let entry = tree.get(name.as_bytes()).filter(|entry| entry.mode == EntryMode::Tree);
        entry.map(|entry| entry.id).ok_or(StateError::Unfit { id: *layer, what: "it is no layer" })
    };
    Ok(State {
        tree: part("tree")?,
        manifest: part("manifest")?,
        times: part("times")?,
        layer: None,
        left_out: None,
    })
}

/// Stores the entry `name` of an upper directory with all that is in it.
pub(crate) fn store(
    upper: BorrowedFd<'_>,
    name: &[u8],
    store: Store<'_>,
) -> Result<(ObjectId, Findings), SnapshotError> {
    let mut keeper = Keeper {
        upper,
        store,
        frames: Vec::new(),
        findings: Findings::default(),
        holes: Holes::default(),
        linked: Linked::default(),
        path: RelPath::root(),
    };
    let root = Own::usual(EntryMode::Tree);
    let top = vec![Name { bytes: name.to_vec(), kind: None }].into_iter();
    let dir = reopen(upper).map_err(|errno| keeper.failed(errno))?;
    keeper.frames.push(Frame { dir: Some(dir), names: top, own: root, entries: Vec::new() });
    let state = keeper.run()?;
    let entry = |name: &str, id| TreeEntry { mode: EntryMode::Tree, name: name.into(), id };
    let parts =
        vec![entry("tree", state.tree), entry("manifest", state.manifest), entry("times", state.times)];
    let tree = Tree::new(parts).expect("three plain names");
    let id = store.sink.write(ObjectKind::Tree, &tree.encode()).map_err(StateError::Write)?;
    Ok((id, keeper.findings))
}

struct Keeper<'a> {
    upper: BorrowedFd<'a>,
    store: Store<'a>,
    frames: Vec<Frame>,
    findings: Findings,
    holes: Holes,
    linked: Linked,
    path: RelPath,
}

struct Frame {
    /// Closed while something below is read, if it is far above.
    dir: Option<OwnedFd>,
    names: std::vec::IntoIter<Name>,
    own: Own,
    entries: Vec<Entry>,
}

/// How many directories are kept open.
const HANDLES: usize = 32;

impl Keeper<'_> {
    fn run(&mut self) -> Result<State, SnapshotError> {
        loop {
            let frame = self.frames.last_mut().expect("the first is left by returning");
            if let Some(name) = frame.names.next() {
                self.entry(&name.bytes)?;
                continue;
            }
            let mut frame = self.frames.pop().expect("it was there a moment ago");
            frame.entries.sort_unstable_by(|one, two| one.name.cmp(&two.name));
            let is_root = self.frames.is_empty();
            let written = write_directory(self.store.sink, &frame.entries, is_root.then_some(&frame.own));
            let written = written.map_err(StateError::Write)?;
            let Some(above) = self.frames.last_mut() else {
                return State::from_root(&written, self.store.sink)
                    .map_err(|error| StateError::Write(error).into());
            };
            let name = LayerName::Entry(self.path.name().expect("it is below the root")).write();
            let node = Node { what: What::Directory(Box::new(written)), own: frame.own };
            above.entries.push(Entry { name, node });
            self.path.pop();
            if above.dir.is_none() {
                let dir = open_below(self.upper, &self.path).map_err(|errno| self.failed(errno))?;
                self.frames.last_mut().expect("it was there a moment ago").dir = Some(dir);
            }
        }
    }

    fn entry(&mut self, name: &[u8]) -> Result<(), SnapshotError> {
        self.path.push(name).expect("a directory lists single names");
        let depth = self.frames.len();
        match self.look(name) {
            Ok(()) => {}
            Err(Nothing::Skip(why)) => self.findings.skip(self.path.clone(), why),
            Err(Nothing::Failed(source)) => {
                return Err(SnapshotError::Read { path: self.path.clone(), source });
            }
            Err(Nothing::Write(error)) => return Err(StateError::Write(error).into()),
            Err(Nothing::Cancelled) => return Err(SnapshotError::Cancelled),
        }
        if self.frames.len() == depth {
            self.path.pop();
        }
        Ok(())
    }

    fn look(&mut self, name: &[u8]) -> Result<(), Nothing> {
        let dir = self.dir();
        let meta = stat_at(dir, name).map_err(judge)?;
        if meta.is_null_device() {
            return self.mark(LayerName::Whiteout(name));
        }
        match meta.kind {
            Kind::Directory => self.directory(name),
            Kind::File if !self.linked.fits(&meta) => Err(Nothing::Skip(SkipReason::Names)),
            Kind::File => {
                let reader = FileReader {
                    sink: self.store.sink,
                    limit: FILE_LIMIT,
                    holes: &self.holes,
                    linked: &self.linked,
                    cancelled: &|| false,
                };
                let given = reader.read(dir, name, &meta)?;
                if given.torn {
                    self.findings.changed(self.path.clone());
                }
                self.findings.counts.add(&given);
                self.push(name, What::File(given.id), Own::new(&given.meta, given.attributes));
                Ok(())
            }
            Kind::Symlink => {
                let id = link(self.store.sink, dir, name)?;
                self.push(name, What::Symlink(id), Own::new(&meta, Attributes::default()));
                Ok(())
            }
            Kind::Fifo => Err(Nothing::Skip(SkipReason::Fifo)),
            Kind::Socket => Err(Nothing::Skip(SkipReason::Socket)),
            Kind::Character | Kind::Block => Err(Nothing::Skip(SkipReason::Device)),
        }
    }

    fn directory(&mut self, name: &[u8]) -> Result<(), Nothing> {
        let dir = crate::dir::open_dir(self.dir(), name).map_err(judge)?;
        let meta: Meta = stat_fd(dir.as_fd()).map_err(judge)?;
        let (attributes, _) = attributes(dir.as_fd()).map_err(judge)?;
        let is_opaque = hides(dir.as_fd()).map_err(judge)? == Hides::Everything;
        let names = names(dir.as_fd()).map_err(judge)?.into_iter();
        if let Some(far) = self.frames.len().checked_sub(HANDLES) {
            self.frames[far].dir = None;
        }
        let own = Own::new(&meta, attributes);
        self.frames.push(Frame { dir: Some(dir), names, own, entries: Vec::new() });
        if is_opaque { self.mark(LayerName::Opaque) } else { Ok(()) }
    }

    fn mark(&mut self, name: LayerName<'_>) -> Result<(), Nothing> {
        let id = self.store.sink.write(ObjectKind::Blob, b"").map_err(Nothing::Write)?;
        let node = Node { what: What::File(id), own: Own::usual(EntryMode::File) };
        self.last().entries.push(Entry { name: name.write(), node });
        Ok(())
    }

    fn push(&mut self, name: &[u8], what: What, own: Own) {
        let entry = Entry { name: LayerName::Entry(name).write(), node: Node { what, own } };
        self.last().entries.push(entry);
    }

    fn last(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("an entry is in a directory")
    }

    fn dir(&self) -> BorrowedFd<'_> {
        let frame = self.frames.last().expect("an entry is in a directory");
        frame.dir.as_ref().expect("the last is open").as_fd()
    }

    fn failed(&self, errno: Errno) -> SnapshotError {
        SnapshotError::Read { path: self.path.clone(), source: errno.into() }
    }
}
