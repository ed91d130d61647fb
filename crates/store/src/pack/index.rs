//! The index of a pack, version 2: names in order, with checksums and places.

use std::borrow::Cow;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::PackError;
use crate::id::{HashKind, ObjectId};
use crate::object::Hasher;
use crate::regular;

const HEAD: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
const NAMES: u64 = 8 + 256 * 4;
/// An index up to this is read at once, because it is hardly more than the table at its beginning.
const SMALL: u64 = 32 << 10;
/// An index above this is looked into on disk, however often.
const LARGE: u64 = 16 << 20;
/// After so many questions all of the index is read. A snapshot asks a few, and must not take longer because there are
/// many files; a checkout asks about every one.
const OFTEN: u32 = 64;
/// So many names are read from the disk at once.
const SPAN: u32 = 512;

/// An index that was looked at, but not yet checked against its checksum.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    /// Closed where all of it was read at once.
    file: Option<std::fs::File>,
    /// All of it, from the moment it was read.
    whole: OnceLock<Vec<u8>>,
    /// How often it was asked.
    asked: AtomicU32,
    length: u64,
    hash: HashKind,
    /// How many names start with a byte up to this one.
    fan: Vec<u32>,
}

/// One object of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    pub id: ObjectId,
    pub offset: u64,
    pub crc: u32,
}

impl Index {
    pub fn open(path: &Path, hash: HashKind) -> Result<Self, PackError> {
        let file = regular::open(path).map_err(PackError::io(path))?;
        let length = file.metadata().map_err(PackError::io(path))?.len();
        let mut index = Self {
            path: path.to_owned(),
            file: Some(file),
            whole: OnceLock::new(),
            asked: AtomicU32::new(0),
            length,
            hash,
            fan: vec![],
        };
        if length <= SMALL {
            index.whole()?;
            index.file = None;
        }
        index.read_fan()?;
        Ok(index)
    }

    /// Number of objects.
    pub fn count(&self) -> u32 {
        self.fan[255]
    }

    /// Where the object stands in the pack.
    pub fn find(&self, id: &ObjectId) -> Result<Option<u64>, PackError> {
        if id.kind() != self.hash {
            return Ok(None);
        }
        if self.length <= LARGE && self.asked.fetch_add(1, Ordering::Relaxed) >= OFTEN {
            self.whole()?;
        }
        let first = usize::from(id.as_bytes()[0]);
        let mut low = first.checked_sub(1).map_or(0, |before| self.fan[before]);
        let mut high = self.fan[first];
        while high - low > SPAN {
            let middle = low + (high - low) / 2;
            if self.name(middle)?.as_ref() <= id.as_bytes() {
                low = middle;
            } else {
                high = middle;
            }
        }
        let size = (high - low) as usize * self.hash.bytes();
        let names = self.read(NAMES + u64::from(low) * self.name_bytes(), size)?;
        let (mut from, mut to) = (0, high - low);
        while from < to {
            let middle = from + (to - from) / 2;
            let start = middle as usize * self.hash.bytes();
            match names[start..start + self.hash.bytes()].cmp(id.as_bytes()) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
                std::cmp::Ordering::Equal => return self.offset(low + middle).map(Some),
            }
        }
        Ok(None)
    }

    /// The object at a place in the order of names.
    pub fn get(&self, number: u32) -> Result<Located, PackError> {
        let id = ObjectId::from_bytes(&self.name(number)?).expect("the length is that of the hash");
        let crc = self.number(self.table(self.name_bytes(), number))?;
        Ok(Located { id, offset: self.offset(number)?, crc })
    }

    /// All objects in the order of names; for this all of the index is read, and a large one is given back afterwards.
    pub fn all(&self) -> Result<impl Iterator<Item = Result<Located, PackError>>, PackError> {
        let apart = if self.length > LARGE {
            let (path, hash, fan) = (self.path.clone(), self.hash, self.fan.clone());
            let whole = OnceLock::from(self.all_bytes()?);
            Some(Self { path, file: None, whole, asked: AtomicU32::new(0), length: self.length, hash, fan })
        } else {
            self.whole()?;
            None
        };
        Ok((0..self.count()).map(move |number| apart.as_ref().unwrap_or(self).get(number)))
    }

    /// The names that lie between `from` and `to`, both of them included; at most `limit`.
    pub fn between(&self, from: &ObjectId, to: &ObjectId, limit: usize) -> Result<Vec<ObjectId>, PackError> {
        let first = usize::from(from.as_bytes()[0]);
        let mut number = first.checked_sub(1).map_or(0, |before| self.fan[before]);
        let mut found = Vec::new();
        while number < self.fan[usize::from(to.as_bytes()[0])] && found.len() < limit {
            let name = self.name(number)?;
            if name.as_ref() > to.as_bytes() {
                break;
            }
            if name.as_ref() >= from.as_bytes() {
                found.push(ObjectId::from_bytes(&name).expect("the length is that of the hash"));
            }
            number += 1;
        }
        Ok(found)
    }

    /// The checksum of the pack that this is the index of.
    pub fn pack_checksum(&self) -> Result<Vec<u8>, PackError> {
        self.read(self.length - 2 * self.name_bytes(), self.hash.bytes()).map(Cow::into_owned)
    }

    /// Reads all of it and compares it with its checksum.
    pub fn verify(&self) -> Result<(), PackError> {
        let mut hasher = Hasher::checksum(self.hash);
        let end = self.length - self.name_bytes();
        let mut at = 0;
        while at < end {
            let size = usize::try_from((end - at).min(1 << 20)).expect("at most a block");
            hasher.update(&self.read(at, size)?);
            at += size as u64;
        }
        let found = hasher.finish().map_err(|error| PackError::damaged(&self.path, error.to_string()))?;
        if found.as_bytes() != self.read(end, self.hash.bytes())?.as_ref() {
            return Err(PackError::damaged(&self.path, "its checksum does not fit"));
        }
        let mut before: Option<ObjectId> = None;
        for entry in self.all()? {
            let id = entry?.id;
            if before.is_some_and(|before| before >= id) {
                return Err(PackError::damaged(&self.path, format!("it is not sorted at `{id}`")));
            }
            before = Some(id);
        }
        Ok(())
    }

    fn name_bytes(&self) -> u64 {
        self.hash.bytes() as u64
    }

    fn read_fan(&mut self) -> Result<(), PackError> {
        if self.length < NAMES + 2 * self.name_bytes() {
            return Err(PackError::damaged(&self.path, "it is too short"));
        }
        if self.read(0, 8)?.as_ref() != HEAD {
            return Err(PackError::damaged(&self.path, "it is no index of version 2"));
        }
        let table = self.read(8, 256 * 4)?;
        let fan: Vec<u32> = table.as_chunks::<4>().0.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect();
        if !fan.is_sorted() {
            return Err(PackError::damaged(&self.path, "its table of first bytes is not sorted"));
        }
        let count = u64::from(fan[255]);
        let least = NAMES + count * (self.name_bytes() + 8) + 2 * self.name_bytes();
        // Each object may have one long place, which takes eight bytes.
        if self.length < least || self.length > least + count * 8 || !(self.length - least).is_multiple_of(8)
        {
            return Err(PackError::damaged(&self.path, "its length does not fit the number of its objects"));
        }
        self.fan = fan;
        Ok(())
    }

    /// Where the entry `number` of the table of checksums stands, or further on by `skip` bytes per object.
    fn table(&self, skip: u64, number: u32) -> u64 {
        NAMES + u64::from(self.count()) * skip + u64::from(number) * 4
    }

    fn name(&self, number: u32) -> Result<Cow<'_, [u8]>, PackError> {
        self.read(NAMES + u64::from(number) * self.name_bytes(), self.hash.bytes())
    }

    fn offset(&self, number: u32) -> Result<u64, PackError> {
        let short = self.number(self.table(self.name_bytes() + 4, number))?;
        if short & 1 << 31 == 0 {
            return Ok(u64::from(short));
        }
        let at = self.table(self.name_bytes() + 8, 0) + u64::from(short & !(1 << 31)) * 8;
        if at + 8 > self.length - 2 * self.name_bytes() {
            return Err(PackError::damaged(&self.path, "it says a place outside of its table"));
        }
        let bytes = self.read(at, 8)?;
        Ok(u64::from_be_bytes(bytes.as_ref().try_into().expect("eight were read")))
    }

    fn number(&self, at: u64) -> Result<u32, PackError> {
        let bytes = self.read(at, 4)?;
        Ok(u32::from_be_bytes(bytes.as_ref().try_into().expect("four were read")))
    }

    fn read(&self, at: u64, size: usize) -> Result<Cow<'_, [u8]>, PackError> {
        let short = || PackError::damaged(&self.path, "it is cut off");
        if let Some(data) = self.whole.get() {
            let start = usize::try_from(at).map_err(|_| short())?;
            return data.get(start..).and_then(|rest| rest.get(..size)).map(Cow::Borrowed).ok_or_else(short);
        }
        let mut data = vec![0; size];
        self.read_into(&mut data, at)?;
        Ok(Cow::Owned(data))
    }

    /// From now on everything is answered from memory.
    fn whole(&self) -> Result<(), PackError> {
        if self.whole.get().is_none() {
            let data = self.all_bytes()?;
            // Another thread may have been quicker, with the same bytes.
            self.whole.get_or_init(|| data);
        }
        Ok(())
    }

    fn all_bytes(&self) -> Result<Vec<u8>, PackError> {
        let mut data = vec![0; usize::try_from(self.length).expect("a file that was opened fits an address")];
        self.read_into(&mut data, 0)?;
        Ok(data)
    }

    fn read_into(&self, data: &mut [u8], at: u64) -> Result<(), PackError> {
        let file = self.file.as_ref().expect("it is closed only when all was read");
        file.read_exact_at(data, at).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => PackError::damaged(&self.path, "it is cut off"),
            _ => PackError::io(&self.path)(error),
        })
    }
}
