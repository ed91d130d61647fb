//! Writing a pack.
//!
//! Any number of threads add objects. Each compresses its own in memory and then appends it in one write under the
//! lock; a large blob is compressed into a file beside, so that neither memory nor the lock is held for
//! long and content that turns out torn leaves nothing behind. How many objects there are is known only at
//! the end, so the checksum is made then, over the file as it was written.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Read, Seek as _, SeekFrom, Write};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flate2::Crc;
use fs_err::os::unix::fs::OpenOptionsExt as _;

use super::deflate::{deflate, deflate_small};
use super::inflate::Inflate;
use super::input::Input;
use super::spill::Spill;
use super::{EntryError, IndexEntry, Pack, Place, entry, write_index};
use crate::id::{HashKind, ObjectId};
use crate::object::{Hasher, Object, ObjectKind, WriteError, hash};

/// A blob above this goes through a file of its own.
const LARGE: u64 = 8 << 20;

/// Whether a pack is on disk before it gets its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    Now,
    /// The caller does it, or does without.
    Later,
}

/// A finished pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// `pack-` and the checksum, without an extension.
    pub name: String,
    pub objects: usize,
    /// Of pack and index together.
    pub bytes: u64,
}

/// A delta as it stands in a pack.
#[derive(Debug)]
pub struct Delta {
    /// Before it was compressed.
    size: u64,
    compressed: Vec<u8>,
}

impl Delta {
    pub fn new(orders: &[u8]) -> Self {
        let mut compressed = Vec::new();
        deflate_small(orders, &mut compressed);
        Self { size: orders.len() as u64, compressed }
    }

    /// How many bytes it takes, without its head.
    pub fn length(&self) -> u64 {
        self.compressed.len() as u64
    }
}

/// A pack that is being written. Dropping it unfinished removes its files.
#[derive(Debug)]
pub struct PackWriter {
    hash: HashKind,
    path: PathBuf,
    spills: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: std::fs::File,
    end: u64,
    entries: HashMap<ObjectId, (u64, u32)>,
    /// What some thread is compressing at the moment.
    claimed: HashSet<ObjectId>,
    /// A write went wrong in the middle: nothing can follow.
    broken: bool,
}

impl PackWriter {
    /// Starts a pack in the file `path`, which must not exist; files beside it start with its name.
    pub fn create(path: &Path, hash: HashKind) -> io::Result<Self> {
        let mut file = new_file(path)?;
        // The number of objects is filled in at the end.
        file.write_all(b"PACK\0\0\0\x02\0\0\0\0")?;
        let (entries, claimed) = (HashMap::new(), HashSet::new());
        let state = Mutex::new(State { file, end: 12, entries, claimed, broken: false });
        Ok(Self { hash, path: path.to_owned(), spills: AtomicU64::new(0), state })
    }

    pub fn hash_kind(&self) -> HashKind {
        self.hash
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.state().end
    }

    /// Number of objects so far.
    pub fn objects(&self) -> usize {
        self.state().entries.len()
    }

    /// Whether the object is in the pack, or about to be.
    pub fn contains(&self, id: &ObjectId) -> bool {
        let state = self.state();
        state.entries.contains_key(id) || state.claimed.contains(id)
    }

    /// Adds an object whose id is known to be `id`.
    pub fn add(&self, id: &ObjectId, kind: ObjectKind, data: &[u8]) -> io::Result<()> {
        if !self.claim(id) {
            return Ok(());
        }
        let mut bytes = entry::encode(kind, data.len() as u64);
        deflate(data, &mut bytes);
        self.append_bytes(id, &bytes)
    }

    /// Adds an object whose id is known to be `id`, compressed better than by [`Self::add`], which takes longer.
    pub fn add_small(&self, id: &ObjectId, kind: ObjectKind, data: &[u8]) -> io::Result<()> {
        if !self.claim(id) {
            return Ok(());
        }
        let mut bytes = entry::encode(kind, data.len() as u64);
        deflate_small(data, &mut bytes);
        self.append_bytes(id, &bytes)
    }

    /// Adds an object whose id is known to be `id` as a delta on one that was added before.
    pub fn add_delta(&self, id: &ObjectId, base: &ObjectId, delta: &Delta) -> io::Result<()> {
        if !self.claim(id) {
            return Ok(());
        }
        self.append_with(id, |state| {
            let (at, _) =
                state.entries.get(base).ok_or_else(|| io::Error::other("the base is not in the pack"))?;
            let mut bytes = entry::encode_delta(delta.size, state.end - at);
            bytes.extend_from_slice(&delta.compressed);
            let mut crc = Crc::new();
            crc.update(&bytes);
            state.file.write_all(&bytes)?;
            Ok((bytes.len() as u64, crc.sum()))
        })
    }

    /// Adds a blob of exactly `size` bytes unless `known` says that it is there already.
    pub fn add_blob(
        &self,
        size: u64,
        content: &mut dyn Read,
        known: &dyn Fn(&ObjectId) -> bool,
    ) -> Result<ObjectId, WriteError> {
        if size <= LARGE {
            let data = exactly(size, content)?;
            let id = hash(self.hash, ObjectKind::Blob, &data)?;
            if !known(&id) {
                self.add(&id, ObjectKind::Blob, &data).map_err(WriteError::Io)?;
            }
            return Ok(id);
        }
        let spill = self.spill().map_err(WriteError::Io)?;
        let (id, mut compressed) = spill.fill(self.hash, size, content)?;
        if !known(&id) && self.claim(&id) {
            self.append(&id, &mut compressed).map_err(WriteError::Io)?;
        }
        Ok(id)
    }

    /// Adds an entry of another pack as it stands there.
    pub fn add_raw(&self, pack: &Pack, place: &Place) -> io::Result<()> {
        if !self.claim(&place.id) {
            return Ok(());
        }
        let length = place.end.saturating_sub(place.offset);
        if length <= LARGE {
            let mut bytes = Vec::new();
            pack.copy_raw(place, &mut bytes)?;
            return self.append_bytes(&place.id, &bytes);
        }
        let spill = self.spill()?;
        let mut file = spill.file();
        pack.copy_raw(place, &mut file)?;
        file.seek(SeekFrom::Start(0))?;
        self.append(&place.id, &mut file)
    }

    /// An object that was added.
    pub fn read(&self, id: &ObjectId) -> Result<Option<Object>, EntryError> {
        let (file, at, end) = {
            let state = self.state();
            let Some((at, _)) = state.entries.get(id) else { return Ok(None) };
            (state.file.try_clone()?, *at, state.end)
        };
        let mut input = Input::new(&file, at, end);
        let head = entry::read(&mut input, at, self.hash)?;
        let entry::EntryKind::Whole(kind) = head.kind else {
            return Err(EntryError::damaged("there is a delta where none is written"));
        };
        if head.size > super::OBJECT_LIMIT {
            return Err(EntryError::TooLarge(head.size));
        }
        Ok(Some(Object { kind, data: Inflate::new(input).whole(head.size)? }))
    }

    /// Ends the pack and moves it and its index into `dir`; `None` if nothing was added.
    pub fn finish(self, dir: &Path, sync: Sync) -> io::Result<Option<Written>> {
        let (checksum, mut entries, pack_bytes) = {
            let mut state = self.state();
            if state.broken || !state.claimed.is_empty() {
                return Err(io::Error::other("an object could not be written"));
            }
            if state.entries.is_empty() {
                return Ok(None);
            }
            let checksum = state.seal(self.hash)?;
            let one = |(id, (offset, crc)): (&ObjectId, &(u64, u32))| IndexEntry {
                id: *id,
                offset: *offset,
                crc: *crc,
            };
            (checksum, state.entries.iter().map(one).collect::<Vec<_>>(), state.end)
        };
        let index = self.path.with_extension("idx");
        let mut out = BufWriter::with_capacity(64 << 10, new_file(&index)?);
        write_index(&mut out, self.hash, &mut entries, checksum.as_bytes())?;
        let out = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        let bytes = pack_bytes + out.metadata()?.len();
        let state = self.state();
        for file in [&state.file, &out] {
            file.set_permissions(std::fs::Permissions::from_mode(0o444))?;
            if sync == Sync::Now {
                file.sync_all()?;
            }
        }
        let name = format!("pack-{checksum}");
        // The index makes the pack visible, so it comes last.
        fs_err::rename(&self.path, dir.join(format!("{name}.pack")))?;
        fs_err::rename(&index, dir.join(format!("{name}.idx")))?;
        if sync == Sync::Now {
            fs_err::File::open(dir)?.sync_all()?;
        }
        Ok(Some(Written { name, objects: entries.len(), bytes }))
    }

    fn spill(&self) -> io::Result<Spill> {
        let number = self.spills.fetch_add(1, Ordering::Relaxed);
        Spill::create(self.path.with_extension(format!("blob{number}")))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is now for the caller to add this object.
    fn claim(&self, id: &ObjectId) -> bool {
        let mut state = self.state();
        !state.entries.contains_key(id) && state.claimed.insert(*id)
    }

    /// Appends an entry that was claimed and is in memory.
    fn append_bytes(&self, id: &ObjectId, bytes: &[u8]) -> io::Result<()> {
        let mut crc = Crc::new();
        crc.update(bytes);
        self.append_with(id, |state| {
            state.file.write_all(bytes)?;
            Ok((bytes.len() as u64, crc.sum()))
        })
    }

    /// Appends an entry that was claimed.
    fn append(&self, id: &ObjectId, bytes: &mut dyn Read) -> io::Result<()> {
        self.append_with(id, |state| write_all(&mut state.file, bytes))
    }

    /// `write` gives length and checksum of what it appended.
    fn append_with(
        &self,
        id: &ObjectId,
        write: impl FnOnce(&mut State) -> io::Result<(u64, u32)>,
    ) -> io::Result<()> {
        let mut state = self.state();
        if state.broken {
            return Err(io::Error::other("an object before this one could not be written"));
        }
        state.broken = true;
        let (length, crc) = write(&mut state)?;
        state.broken = false;
        let offset = state.end;
        state.end += length;
        state.entries.insert(*id, (offset, crc));
        state.claimed.remove(id);
        Ok(())
    }
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        // After `finish` neither has this name any more.
        for path in [&self.path, &self.path.with_extension("idx")] {
            drop(fs_err::remove_file(path));
        }
    }
}

impl State {
    /// Fills in the number of objects and appends the checksum.
    fn seal(&mut self, hash: HashKind) -> io::Result<ObjectId> {
        let count = u32::try_from(self.entries.len()).map_err(io::Error::other)?;
        self.file.write_all_at(&count.to_be_bytes(), 8)?;
        let mut hasher = Hasher::checksum(hash);
        let mut block = vec![0; 128 << 10];
        let mut at = 0;
        while at < self.end {
            let size = usize::try_from(self.end - at).unwrap_or(usize::MAX).min(block.len());
            self.file.read_exact_at(&mut block[..size], at)?;
            hasher.update(&block[..size]);
            at += size as u64;
        }
        let checksum = hasher.finish().map_err(io::Error::other)?;
        self.file.write_all_at(checksum.as_bytes(), self.end)?;
        self.end += hash.bytes() as u64;
        Ok(checksum)
    }
}

/// Writes all of `bytes`; gives their number and checksum.
fn write_all(file: &mut std::fs::File, bytes: &mut dyn Read) -> io::Result<(u64, u32)> {
    let mut crc = Crc::new();
    let mut block = vec![0; 128 << 10];
    let mut length = 0;
    loop {
        match bytes.read(&mut block) {
            Ok(0) => return Ok((length, crc.sum())),
            Ok(count) => {
                crc.update(&block[..count]);
                file.write_all(&block[..count])?;
                length += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// All of the content, which must be `size` bytes.
fn exactly(size: u64, content: &mut dyn Read) -> Result<Vec<u8>, WriteError> {
    let mut data = Vec::with_capacity(usize::try_from(size).expect("checked to be small") + 1);
    content.take(size + 1).read_to_end(&mut data).map_err(WriteError::Content)?;
    if data.len() as u64 == size { Ok(data) } else { Err(WriteError::Torn) }
}

pub(super) fn new_file(path: &Path) -> io::Result<std::fs::File> {
    let mut options = fs_err::OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.open(path).map(fs_err::File::into_file)
}
