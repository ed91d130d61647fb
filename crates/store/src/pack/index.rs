//! The index of a pack, version 2: names in order, with checksums and places.

use std::borrow::Cow;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::PackError;
use crate::id::{HashKind, ObjectId};
use crate::object::Hasher;

const HEAD: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
const NAMES: u64 = 8 + 256 * 4;
/// An index above this is looked into on disk.
const IN_MEMORY: u64 = 16 << 20;

/// An index that was looked at, but not yet checked against its checksum.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    bytes: Bytes,
    length: u64,
    hash: HashKind,
    /// How many names start with a byte up to this one.
    fan: Vec<u32>,
}

#[derive(Debug)]
enum Bytes {
    Memory(Vec<u8>),
    File(std::fs::File),
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
        let file = fs_err::File::open(path).map_err(PackError::io(path))?.into_file();
        let length = file.metadata().map_err(PackError::io(path))?.len();
        let bytes = if length <= IN_MEMORY {
            let mut data = vec![0; usize::try_from(length).expect("checked to be small")];
            file.read_exact_at(&mut data, 0).map_err(PackError::io(path))?;
            Bytes::Memory(data)
        } else {
            Bytes::File(file)
        };
        let mut index = Self { path: path.to_owned(), bytes, length, hash, fan: vec![] };
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
        let first = usize::from(id.as_bytes()[0]);
        let mut low = first.checked_sub(1).map_or(0, |before| self.fan[before]);
        let mut high = self.fan[first];
        while low < high {
            let middle = low + (high - low) / 2;
            match self.name(middle)?.as_ref().cmp(id.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.offset(middle).map(Some),
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

    /// All objects in the order of names; for this all of the index is read.
    pub fn all(&self) -> Result<impl Iterator<Item = Result<Located, PackError>>, PackError> {
        let whole = match &self.bytes {
            Bytes::Memory(_) => None,
            Bytes::File(_) => {
                let length = usize::try_from(self.length).expect("a file that was opened fits an address");
                let bytes = Bytes::Memory(self.read(0, length)?.into_owned());
                let (path, hash, fan) = (self.path.clone(), self.hash, self.fan.clone());
                Some(Self { path, bytes, length: self.length, hash, fan })
            }
        };
        Ok((0..self.count()).map(move |number| whole.as_ref().unwrap_or(self).get(number)))
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
        match &self.bytes {
            Bytes::Memory(data) => {
                let start = usize::try_from(at).map_err(|_| short())?;
                data.get(start..).and_then(|rest| rest.get(..size)).map(Cow::Borrowed).ok_or_else(short)
            }
            Bytes::File(file) => {
                let mut data = vec![0; size];
                match file.read_exact_at(&mut data, at) {
                    Ok(()) => Ok(Cow::Owned(data)),
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(short()),
                    Err(error) => Err(PackError::io(&self.path)(error)),
                }
            }
        }
    }
}
