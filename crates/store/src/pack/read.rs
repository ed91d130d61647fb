//! Reading objects out of a pack.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::entry::{self, EntryKind, Head};
use super::index::{Index, Located};
use super::inflate::Inflate;
use super::input::Input;
use super::{DEPTH_LIMIT, EntryError, OBJECT_LIMIT, PackError, delta, limit};
use crate::id::{HashKind, ObjectId};
use crate::object::{Object, ObjectKind};
use crate::regular;

/// A pack with its index, both open: it can be read even after its name is gone.
#[derive(Debug)]
pub struct Pack {
    path: PathBuf,
    file: std::fs::File,
    /// Where the entries end and the checksum starts.
    end: u64,
    pub index: Index,
    hash: HashKind,
    serial: u64,
}

/// Where an entry stands in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub id: ObjectId,
    pub offset: u64,
    pub end: u64,
    /// As the index has it.
    pub crc: u32,
}

static SERIAL: AtomicU64 = AtomicU64::new(0);

impl Pack {
    /// Opens `pack-….pack` and the index beside it.
    pub fn open(path: &Path, hash: HashKind) -> Result<Self, PackError> {
        let file = regular::open(path).map_err(PackError::io(path))?;
        let index = Index::open(&path.with_extension("idx"), hash)?;
        let length = file.metadata().map_err(PackError::io(path))?.len();
        let hash_bytes = hash.bytes() as u64;
        if length < 12 + hash_bytes {
            return Err(PackError::damaged(path, "it is too short"));
        }
        let end = length - hash_bytes;
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let pack = Self { path: path.to_owned(), file, end, index, hash, serial };
        let mut head = [0; 12];
        pack.file.read_exact_at(&mut head, 0).map_err(PackError::io(path))?;
        if !matches!(&head[..8], b"PACK\0\0\0\x02" | b"PACK\0\0\0\x03") {
            return Err(PackError::damaged(path, "it is no pack of version 2 or 3"));
        }
        if head[8..] != pack.index.count().to_be_bytes() {
            return Err(PackError::damaged(path, "its number of objects is not that of its index"));
        }
        if pack.trailer().map_err(PackError::io(path))? != pack.index.pack_checksum()? {
            return Err(PackError::damaged(path, "its index is that of another pack"));
        }
        Ok(pack)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.end + self.hash.bytes() as u64
    }

    pub(super) fn file(&self) -> &std::fs::File {
        &self.file
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn hash(&self) -> HashKind {
        self.hash
    }

    pub(super) fn trailer(&self) -> io::Result<Vec<u8>> {
        let mut trailer = vec![0; self.hash.bytes()];
        self.file.read_exact_at(&mut trailer, self.end)?;
        Ok(trailer)
    }

    /// Kind and size of the object at a place.
    pub fn header(&self, offset: u64) -> Result<(ObjectKind, u64), EntryError> {
        let (kind, size) = self.beginning(offset)?;
        let of_chain = || self.chain(offset, &BaseCache::default()).map(|chain| chain.from.kind());
        Ok((kind.map_or_else(of_chain, Ok)?, size))
    }

    /// Size of the object at a place: a delta says it itself, so its base is not looked at.
    pub fn size(&self, offset: u64) -> Result<u64, EntryError> {
        self.beginning(offset).map(|(_, size)| size)
    }

    /// The size of the object at a place, and its kind if it is no delta.
    fn beginning(&self, offset: u64) -> Result<(Option<ObjectKind>, u64), EntryError> {
        let (head, input) = self.head_of(offset, Input::little)?;
        if let EntryKind::Whole(kind) = head.kind {
            return Ok((Some(kind), head.size));
        }
        // The sizes stand at the start of a delta.
        let mut start = [0; 32];
        let mut inflate = Inflate::new(input);
        let mut filled = 0;
        while filled < start.len() {
            match inflate.some(&mut start[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        let sizes = delta::sizes(&start[..filled]);
        let (_, size, _) = sizes.ok_or_else(|| EntryError::damaged("its delta has no sizes"))?;
        Ok((None, size))
    }

    /// The object at a place, if it is not too large to be read at once.
    pub fn object(&self, offset: u64, cache: &BaseCache) -> Result<Object, EntryError> {
        let (head, input) = self.head(offset)?;
        if let EntryKind::Whole(kind) = head.kind {
            if head.size > limit(kind) {
                return Err(EntryError::TooLarge(head.size));
            }
            return Ok(Object { kind, data: Inflate::new(input).whole(head.size)? });
        }
        let object = self.resolve(offset, cache)?;
        if object.data.len() as u64 > limit(object.kind) {
            return Err(EntryError::TooLarge(object.data.len() as u64));
        }
        Ok(Arc::unwrap_or_clone(object))
    }

    /// The object that a delta makes, of any kind and of every size that deltas are made of.
    pub(super) fn rebuilt(&self, offset: u64, cache: &BaseCache) -> Result<Arc<Object>, EntryError> {
        self.resolve(offset, cache)
    }

    /// Writes the object at a place piece by piece; only a delta is held in memory.
    pub fn stream(
        &self,
        offset: u64,
        cache: &BaseCache,
        to: &mut dyn FnMut(ObjectKind, &[u8]) -> io::Result<()>,
    ) -> Result<u64, EntryError> {
        let (head, input) = self.head(offset)?;
        let EntryKind::Whole(kind) = head.kind else {
            let object = self.resolve(offset, cache)?;
            to(object.kind, &object.data)?;
            return Ok(object.data.len() as u64);
        };
        let mut inflate = Inflate::new(input);
        let mut block = vec![0; 64 << 10];
        let mut left = head.size;
        while left > 0 {
            let room = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
            match inflate.some(&mut block[..room])? {
                0 => return Err(EntryError::damaged("it is shorter than it says")),
                count => {
                    to(kind, &block[..count])?;
                    left -= count as u64;
                }
            }
        }
        inflate.end()?;
        Ok(head.size)
    }

    /// Whether the entry at a place is no delta, so that it can be copied as it is.
    pub fn stands_alone(&self, offset: u64) -> Result<bool, EntryError> {
        let (head, _) = self.head_of(offset, Input::little)?;
        Ok(matches!(head.kind, EntryKind::Whole(_)))
    }

    /// Copies an entry as it is.
    pub fn copy_raw(&self, place: &Place, to: &mut dyn Write) -> io::Result<()> {
        let mut block = vec![0; 64 << 10];
        let (mut at, end) = (place.offset, place.end);
        while at < end {
            let size = usize::try_from(end - at).unwrap_or(usize::MAX).min(block.len());
            self.file.read_exact_at(&mut block[..size], at)?;
            to.write_all(&block[..size])?;
            at += size as u64;
        }
        Ok(())
    }

    /// Where every entry starts and ends, in the order of the pack.
    pub fn places(&self) -> Result<Vec<Place>, PackError> {
        let mut places = Vec::new();
        for located in self.index.all()? {
            let Located { id, offset, crc } = located?;
            places.push(Place { id, offset, end: self.end, crc });
        }
        places.sort_unstable_by_key(|place| place.offset);
        for at in 1..places.len() {
            places[at - 1].end = places[at].offset;
        }
        Ok(places)
    }

    pub(super) fn head(&self, offset: u64) -> Result<(Head, Input<'_>), EntryError> {
        self.head_of(offset, Input::new)
    }

    fn head_of<'a>(
        &'a self,
        offset: u64,
        input: impl FnOnce(&'a std::fs::File, u64, u64) -> Input<'a>,
    ) -> Result<(Head, Input<'a>), EntryError> {
        if offset < 12 || offset >= self.end {
            return Err(EntryError::damaged("its place is outside of the pack"));
        }
        let mut input = input(&self.file, offset, self.end);
        let head = entry::read(&mut input, offset, self.hash)?;
        Ok((head, input))
    }

    /// The places of the deltas that lead from `offset` to an object that stands for itself, or that is there already:
    /// the way from there on was gone before, and is not gone again.
    fn chain(&self, offset: u64, cache: &BaseCache) -> Result<Chain, EntryError> {
        let mut deltas = Vec::new();
        let mut at = offset;
        loop {
            if let Some(object) = cache.get((self.serial, at)) {
                return Ok(Chain { from: From::Known(object), deltas });
            }
            let (head, _) = self.head_of(at, Input::little)?;
            let base = match head.kind {
                EntryKind::Whole(kind) => return Ok(Chain { from: From::Entry(at, kind), deltas }),
                EntryKind::Offset(base) => base,
                EntryKind::Reference(id) => {
                    let found =
                        self.index.find(&id).map_err(|error| EntryError::damaged(error.to_string()))?;
                    found.ok_or_else(|| EntryError::damaged(format!("its delta has no base `{id}`")))?
                }
            };
            deltas.push(at);
            // A delta on itself, by whatever way round, ends here too.
            if deltas.len() > DEPTH_LIMIT {
                return Err(EntryError::damaged("its deltas have no end"));
            }
            at = base;
        }
    }

    fn resolve(&self, offset: u64, cache: &BaseCache) -> Result<Arc<Object>, EntryError> {
        let mut chain = self.chain(offset, cache)?;
        let mut object = match chain.from {
            From::Known(object) => object,
            From::Entry(at, kind) => self.base(at, kind, cache)?,
        };
        // Time is bounded as well as memory: a chain may rebuild a large object again and again.
        let mut work = 64 * OBJECT_LIMIT;
        while let Some(at) = chain.deltas.pop() {
            let (head, input) = self.head(at)?;
            if head.size > OBJECT_LIMIT {
                return Err(EntryError::TooLarge(head.size));
            }
            let data = Inflate::new(input).whole(head.size)?;
            let wrong = || EntryError::damaged("its delta does not fit its base");
            let (_, size, _) = delta::sizes(&data).ok_or_else(wrong)?;
            if size > OBJECT_LIMIT {
                return Err(EntryError::TooLarge(size));
            }
            work =
                work.checked_sub(size).ok_or_else(|| EntryError::damaged("its deltas are too much work"))?;
            let made = delta::apply(&object.data, &data).ok_or_else(wrong)?;
            object = Arc::new(Object { kind: object.kind, data: made });
            cache.put((self.serial, at), &object);
        }
        Ok(object)
    }

    /// An object that deltas are built on.
    fn base(&self, at: u64, kind: ObjectKind, cache: &BaseCache) -> Result<Arc<Object>, EntryError> {
        let (head, input) = self.head(at)?;
        if head.size > OBJECT_LIMIT {
            return Err(EntryError::TooLarge(head.size));
        }
        let object = Arc::new(Object { kind, data: Inflate::new(input).whole(head.size)? });
        cache.put((self.serial, at), &object);
        Ok(object)
    }
}

struct Chain {
    from: From,
    /// The last is the one on what it starts from.
    deltas: Vec<u64>,
}

enum From {
    Known(Arc<Object>),
    /// The entry at this place, which is no delta.
    Entry(u64, ObjectKind),
}

impl From {
    fn kind(&self) -> ObjectKind {
        match self {
            Self::Known(object) => object.kind,
            Self::Entry(_, kind) => *kind,
        }
    }
}

/// Objects that deltas were built on, since others are likely to be built on them too.
#[derive(Debug, Default)]
pub struct BaseCache(Mutex<Cached>);

#[derive(Debug, Default)]
struct Cached {
    objects: HashMap<(u64, u64), Arc<Object>>,
    order: VecDeque<(u64, u64)>,
    bytes: usize,
}

impl BaseCache {
    const LIMIT: usize = 48 << 20;

    fn get(&self, key: (u64, u64)) -> Option<Arc<Object>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).objects.get(&key).cloned()
    }

    fn put(&self, key: (u64, u64), object: &Arc<Object>) {
        if object.data.len() > Self::LIMIT / 4 {
            return;
        }
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.objects.insert(key, Arc::clone(object)).is_some() {
            return;
        }
        cached.order.push_back(key);
        cached.bytes += object.data.len();
        while cached.bytes > Self::LIMIT {
            let Some(oldest) = cached.order.pop_front() else { break };
            if let Some(object) = cached.objects.remove(&oldest) {
                cached.bytes -= object.data.len();
            }
        }
    }
}
