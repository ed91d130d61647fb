//! Reading tar archives: ustar, the names and sizes of pax, the long names of GNU. Nothing is written here.

use std::io::{self, Read};

use sandtable_store::path::{PathError, RelPath};

use super::{Error, Limits};

const BLOCK: usize = 512;
/// The longest extension header; names and attributes of one entry are in it.
const LONGEST_EXTENSION: u64 = 1 << 20;
/// How many extension headers one entry may have.
const MOST_EXTENSIONS: usize = 8;
/// The longest name of an entry or a link.
const LONGEST_NAME: usize = 4096;

/// One entry, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The tree itself has an empty path.
    pub path: RelPath,
    pub content: Content,
    /// Permission bits, as the archive says.
    pub mode: u32,
    /// Seconds since 1970.
    pub mtime: i64,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    File {
        size: u64,
    },
    Directory,
    Symlink {
        to: Vec<u8>,
    },
    HardLink {
        to: RelPath,
    },
    /// A device or a named pipe.
    Special,
}

/// Reads an archive entry by entry. As a [`Read`] it yields the bytes of the current one.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    /// Bytes of the current entry that were not read yet.
    left: u64,
    /// Zeros between it and the next header.
    padding: u64,
    limits: Limits,
    entries: u64,
    bytes: u64,
}

/// What extension headers say about the next entry.
#[derive(Debug, Default)]
struct Extended {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    mtime: Option<i64>,
}

impl<R: Read> Reader<R> {
    pub fn new(input: R, limits: Limits) -> Self {
        Self { input, left: 0, padding: 0, limits, entries: 0, bytes: 0 }
    }

    /// What it reads from, at wherever it is.
    pub fn into_inner(self) -> R {
        self.input
    }

    /// The next entry; what was not read of the one before is passed over. `None` at the end mark.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        self.skip()?;
        let mut extended = Extended::default();
        for _ in 0..=MOST_EXTENSIONS {
            let Some(header) = self.header()? else { return Ok(None) };
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(Error::TooLarge(format!("{} entries", self.limits.entries)));
            }
            match header[156] {
                b'x' => extended.read_pax(&self.extension(&header)?)?,
                // What is said for all entries is never a name or a size.
                b'g' => drop(self.extension(&header)?),
                b'L' => extended.path = Some(until_zero(&self.extension(&header)?).to_vec()),
                b'K' => extended.link = Some(until_zero(&self.extension(&header)?).to_vec()),
                _ => return self.entry(&header, extended).map(Some),
            }
        }
        Err(Error::Damaged("an entry has too many extension headers"))
    }

    fn entry(&mut self, header: &[u8; BLOCK], extended: Extended) -> Result<Entry, Error> {
        let size = match extended.size {
            Some(size) => size,
            None => number(&header[124..136])?,
        };
        let name = extended.path.unwrap_or_else(|| ustar_name(header));
        let link = extended.link.unwrap_or_else(|| until_zero(&header[157..257]).to_vec());
        let path = inside(&name)?;
        let refused = |why| Error::Entry { name: shown(&name), why };
        let content = match header[156] {
            // Old archives mark a directory by the end of its name only.
            b'0' | 0 if name.ends_with(b"/") => Content::Directory,
            b'0' | 0 | b'7' => Content::File { size },
            b'1' => Content::HardLink { to: inside(&link)? },
            b'2' if link.is_empty() || link.len() > LONGEST_NAME => {
                return Err(refused("is a symbolic link that leads nowhere"));
            }
            b'2' => Content::Symlink { to: link },
            b'3' | b'4' | b'6' => Content::Special,
            b'5' => Content::Directory,
            b'S' => return Err(refused("is a sparse file, which is not supported")),
            _ => return Err(refused("is of an unknown kind")),
        };
        if path.is_root() && content != Content::Directory {
            return Err(refused("takes the place of the root"));
        }
        self.begin(match content {
            Content::File { size } => size,
            _ => 0,
        })?;
        let mtime = match extended.mtime {
            Some(mtime) => mtime,
            None => number(&header[136..148]).unwrap_or(0).try_into().unwrap_or(0),
        };
        let mode = u32::try_from(number(&header[100..108])? & 0o7777).expect("twelve bits");
        Ok(Entry { path, content, mode, mtime })
    }

    /// Says how many bytes follow; refuses what is more than allowed before anything is read.
    fn begin(&mut self, size: u64) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > self.limits.bytes {
            return Err(Error::TooLarge(format!("{} bytes", self.limits.bytes)));
        }
        self.left = size;
        self.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
        Ok(())
    }

    fn extension(&mut self, header: &[u8; BLOCK]) -> Result<Vec<u8>, Error> {
        let size = number(&header[124..136])?;
        if size > LONGEST_EXTENSION {
            return Err(Error::Damaged("an extension header is too long"));
        }
        self.begin(size)?;
        let mut bytes = Vec::new();
        Read::by_ref(self).read_to_end(&mut bytes).map_err(Error::Read)?;
        if bytes.len() as u64 != size {
            return Err(Error::Damaged("it ends within an extension header"));
        }
        self.skip()?;
        Ok(bytes)
    }

    fn skip(&mut self) -> Result<(), Error> {
        let rest = self.left + self.padding;
        let passed =
            io::copy(&mut Read::by_ref(&mut self.input).take(rest), &mut io::sink()).map_err(Error::Read)?;
        if passed != rest {
            return Err(Error::Damaged("it ends within an entry"));
        }
        (self.left, self.padding) = (0, 0);
        Ok(())
    }

    /// The next header, with its checksum checked; `None` at the block of zeros that ends an archive.
    fn header(&mut self) -> Result<Option<[u8; BLOCK]>, Error> {
        let mut block = [0; BLOCK];
        self.input.read_exact(&mut block).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::Damaged("it ends without an end mark"),
            _ => Error::Read(error),
        })?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum: u64 =
            block[..148].iter().chain(&[b' '; 8]).chain(&block[156..]).map(|byte| u64::from(*byte)).sum();
        if number(&block[148..156]).ok() != Some(sum) {
            return Err(Error::Damaged("a header has a wrong checksum"));
        }
        Ok(Some(block))
    }
}

impl<R: Read> Read for Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = self.input.read(&mut buffer[..wanted])?;
        self.left -= read as u64;
        Ok(read)
    }
}

impl Extended {
    /// Reads records of the form `LENGTH KEY=VALUE\n`.
    fn read_pax(&mut self, mut text: &[u8]) -> Result<(), Error> {
        const BAD: Error = Error::Damaged("a pax header is malformed");
        while !text.is_empty() {
            let space = text.iter().position(|byte| *byte == b' ').ok_or(BAD)?;
            let length: usize = text_number(&text[..space]).ok_or(BAD)?;
            let record = text.get(space + 1..length).filter(|record| record.ends_with(b"\n")).ok_or(BAD)?;
            let record = &record[..record.len() - 1];
            let equals = record.iter().position(|byte| *byte == b'=').ok_or(BAD)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                b"size" => self.size = Some(text_number(value).ok_or(BAD)?),
                b"mtime" => self.mtime = value.split(|byte| *byte == b'.').next().and_then(text_number),
                key if key.starts_with(b"GNU.sparse.") => {
                    return Err(Error::Damaged("it holds a sparse file, which is not supported"));
                }
                _ => {}
            }
            text = &text[length..];
        }
        Ok(())
    }
}

fn text_number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// A number of a header: octal digits, or the bytes of a large number after a mark.
fn number(field: &[u8]) -> Result<u64, Error> {
    const BAD: Error = Error::Damaged("a header has a malformed number");
    if field[0] & 0x80 != 0 {
        let high = u64::from(field[0] & 0x7f);
        return field[1..]
            .iter()
            .try_fold(high, |sum, byte| (sum >> 56 == 0).then(|| sum << 8 | u64::from(*byte)).ok_or(BAD));
    }
    let text = until_zero(field).trim_ascii();
    let digit = |sum: u64, byte: &u8| match byte {
        b'0'..=b'7' if sum >> 61 == 0 => Ok(sum << 3 | u64::from(byte - b'0')),
        _ => Err(BAD),
    };
    text.iter().try_fold(0, digit)
}

fn until_zero(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn ustar_name(header: &[u8; BLOCK]) -> Vec<u8> {
    let name = until_zero(&header[..100]);
    let prefix = until_zero(&header[345..500]);
    // GNU's own format has times where ustar has a prefix.
    if &header[257..263] != b"ustar\0" || prefix.is_empty() {
        return name.to_vec();
    }
    [prefix, b"/", name].concat()
}

/// The path of an entry or of a hard link's target: `./` at its start, doubled slashes and a slash at its end
/// mean nothing, anything that could lead outside is refused.
pub(super) fn inside(name: &[u8]) -> Result<RelPath, Error> {
    let refused = |why| Error::Entry { name: shown(name), why };
    if name.starts_with(b"/") {
        return Err(refused("has an absolute path"));
    }
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(refused("has no usable path"));
    }
    let parts = name.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let mut path = RelPath::root();
    for part in parts {
        path.push(part).map_err(|error| match error {
            PathError::Dots => refused("leads out of the image"),
            _ => refused("has no usable path"),
        })?;
    }
    Ok(path)
}

pub(super) fn shown(name: &[u8]) -> String {
    let short = &name[..name.len().min(200)];
    short.escape_ascii().to_string()
}
