//! Reading zip archives, as wheels are: the list at the end says what there is, each entry is stored or deflated,
//! and its checksum is compared. Encryption, several volumes and entries of more than 4 GiB are refused.

use std::fs::File;
use std::io::{BufReader, Read, Seek as _, SeekFrom};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::tar::{Content, Entry, inside, shown};
use super::{Error, Limits};

const END: [u8; 4] = *b"PK\x05\x06";
const LISTED: [u8; 4] = *b"PK\x01\x02";
const LOCAL: [u8; 4] = *b"PK\x03\x04";
/// The end record without its comment, and the longest comment.
const END_LENGTH: usize = 22;
const LONGEST_COMMENT: u64 = 0xffff;
/// The longest list of entries.
const LONGEST_LIST: u64 = 256 << 20;
/// The longest target of a symbolic link.
const LONGEST_LINK: u64 = 4096;
/// The largest size that the format can say without extensions.
const UNSAYABLE: u32 = u32::MAX;
/// Bits of a Unix mode that say what an entry is.
const KIND: u32 = 0o170_000;
const SYMLINK: u32 = 0o120_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
/// The system that wrote the entry, when it has Unix modes.
const UNIX: u8 = 3;

/// An archive that was opened.
#[derive(Debug)]
pub(super) struct Zip {
    file: File,
    entries: std::vec::IntoIter<Listed>,
}

/// One line of the list.
#[derive(Debug)]
struct Listed {
    name: Vec<u8>,
    method: u16,
    flags: u16,
    crc: u32,
    packed: u64,
    size: u64,
    at: u64,
    mode: Option<u32>,
}

/// An entry, and its bytes if it is a file.
pub(super) type Found = (Entry, Box<dyn Read>);

/// The bytes of one entry. Its checksum is compared when all were read.
pub(super) struct Data {
    input: Box<dyn Read>,
    crc: Crc,
    expected: u32,
    left: u64,
}

impl Zip {
    /// Reads the list.
    pub(super) fn open(mut file: File, limits: Limits) -> Result<Self, Error> {
        let length = file.seek(SeekFrom::End(0)).map_err(Error::Read)?;
        let tail = length.min(LONGEST_COMMENT + END_LENGTH as u64);
        let bytes = read_at(&mut file, length - tail, tail)?;
        let end = bytes.windows(END_LENGTH).rposition(|window| window.starts_with(&END));
        let end = &bytes[end.ok_or(Error::Damaged("it has no list of entries"))?..];
        let (count, size, start) = (u64::from(u16_at(end, 10)), u32_at(end, 12), u32_at(end, 16));
        if u16_at(end, 4) != 0 || u16_at(end, 6) != 0 {
            return Err(Error::Damaged("it is one of several volumes"));
        }
        if size == UNSAYABLE || start == UNSAYABLE || u64::from(size) > LONGEST_LIST {
            return Err(Error::TooLarge("the format can hold without extensions".to_owned()));
        }
        if count > limits.entries {
            return Err(Error::TooLarge(format!("{} entries", limits.entries)));
        }
        let list = read_at(&mut file, start.into(), size.into())?;
        Ok(Self { file, entries: listed(&list, count)?.into_iter() })
    }

    /// The next entry.
    pub(super) fn next_entry(&mut self) -> Result<Option<Found>, Error> {
        let Some(listed) = self.entries.next() else { return Ok(None) };
        let refused = |why| Error::Entry { name: shown(&listed.name), why };
        let path = inside(&listed.name)?;
        if listed.flags & 1 != 0 {
            return Err(refused("is encrypted"));
        }
        let mode = listed.mode.unwrap_or(0o644);
        let nothing = || Box::new(std::io::empty()) as Box<dyn Read>;
        let (content, data) = match mode & KIND {
            _ if listed.name.ends_with(b"/") => (Content::Directory, nothing()),
            DIRECTORY => (Content::Directory, nothing()),
            SYMLINK => {
                let mut to = Vec::new();
                let read = self.data(&listed)?.take(LONGEST_LINK + 1).read_to_end(&mut to);
                let read = read.map_err(|_| refused("is a symbolic link that cannot be read"))?;
                if read == 0 || read as u64 > LONGEST_LINK {
                    return Err(refused("is a symbolic link that leads nowhere"));
                }
                (Content::Symlink { to }, nothing())
            }
            0 | REGULAR => {
                let data = self.data(&listed)?;
                (Content::File { size: listed.size }, Box::new(data) as Box<dyn Read>)
            }
            _ => (Content::Special, nothing()),
        };
        let mode = if content == Content::Directory { mode & 0o777 | 0o755 } else { mode & 0o777 };
        Ok(Some((Entry { path, content, mode, mtime: 0 }, data)))
    }

    fn data(&mut self, listed: &Listed) -> Result<Data, Error> {
        let refused = |why| Error::Entry { name: shown(&listed.name), why };
        let header = read_at(&mut self.file, listed.at, 30)?;
        if header[..4] != LOCAL {
            return Err(refused("is not where the list says"));
        }
        let skip = u64::from(u16_at(&header, 26)) + u64::from(u16_at(&header, 28));
        let mut file = self.file.try_clone().map_err(Error::Read)?;
        // One position for all copies: entries are read one at a time, each to its end or not at all.
        file.seek(SeekFrom::Start(listed.at + 30 + skip)).map_err(Error::Read)?;
        let packed = BufReader::new(file.take(listed.packed));
        let input: Box<dyn Read> = match listed.method {
            0 => Box::new(packed),
            8 => Box::new(DeflateDecoder::new(packed)),
            _ => return Err(refused("is compressed in a way that is not supported")),
        };
        Ok(Data { input, crc: Crc::new(), expected: listed.crc, left: listed.size })
    }
}

impl Read for Data {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bad = |why: &str| Err(std::io::Error::new(std::io::ErrorKind::InvalidData, why));
        let read = self.input.read(buffer)?;
        if buffer.is_empty() {
            return Ok(0);
        }
        self.crc.update(&buffer[..read]);
        match self.left.checked_sub(read as u64) {
            None => bad("an entry is larger than the list says"),
            Some(0) if read == 0 && self.crc.sum() != self.expected => bad("an entry has a wrong checksum"),
            Some(left) => {
                self.left = left;
                Ok(read)
            }
        }
    }
}

fn listed(mut list: &[u8], count: u64) -> Result<Vec<Listed>, Error> {
    const SHORT: Error = Error::Damaged("its list of entries is cut short");
    let mut entries = Vec::new();
    for _ in 0..count {
        let head = list.get(..46).ok_or(SHORT)?;
        if head[..4] != LISTED {
            return Err(Error::Damaged("its list of entries is malformed"));
        }
        let name = usize::from(u16_at(head, 28));
        let whole = 46 + name + usize::from(u16_at(head, 30)) + usize::from(u16_at(head, 32));
        let bytes = list.get(..whole).ok_or(SHORT)?;
        let (packed, size, at) = (u32_at(head, 20), u32_at(head, 24), u32_at(head, 42));
        if [packed, size, at].contains(&UNSAYABLE) {
            return Err(Error::TooLarge("the format can hold without extensions".to_owned()));
        }
        entries.push(Listed {
            name: bytes[46..46 + name].to_vec(),
            method: u16_at(head, 10),
            flags: u16_at(head, 8),
            crc: u32_at(head, 16),
            packed: packed.into(),
            size: size.into(),
            at: at.into(),
            mode: (head[5] == UNIX).then(|| u32_at(head, 38) >> 16).filter(|mode| *mode != 0),
        });
        list = &list[whole..];
    }
    Ok(entries)
}

fn read_at(file: &mut File, start: u64, length: u64) -> Result<Vec<u8>, Error> {
    file.seek(SeekFrom::Start(start)).map_err(Error::Read)?;
    let mut bytes = Vec::new();
    file.by_ref().take(length).read_to_end(&mut bytes).map_err(Error::Read)?;
    if (bytes.len() as u64) < length { Err(Error::Damaged("it is cut short")) } else { Ok(bytes) }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
