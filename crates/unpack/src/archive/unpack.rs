//! Unpacking an archive of any known format beneath a directory handle, for somebody who builds in it: files stay
//! writable for their owner, no link leads out, and not everything of the archive need be taken.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;

use sandtable_store::path::RelPath;

use super::plant::Tree;
use super::stream::Stream;
use super::tar::Reader;
use super::zip::Zip;
use super::{Content, Entry, Error, Limits, ar};

/// How much larger than the archive its content may be, beyond a size that is always allowed. The best honest ratio
/// seen, of generated tables in text, is well below; a bomb is a thousand and more.
const MOST_EXPANSION: u64 = 100;
const ALWAYS_ALLOWED: u64 = 16 << 20;

/// What an archive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A tar archive, plain or compressed: also npm's packages and crates.
    Tar,
    /// A zip archive: also wheels.
    Zip,
    /// A Debian package, of which the files are unpacked.
    Deb,
}

/// What of an archive is wanted, and how much it may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What it is; `None` to look at its first bytes.
    pub format: Option<Format>,
    /// How many leading directories of each name are left out.
    pub strip: usize,
    /// Files or directories to take, by their names after stripping; all if there are none.
    pub only: Vec<RelPath>,
    pub limits: Limits,
}

/// What was unpacked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    pub entries: u64,
    pub bytes: u64,
    /// Special files below `dev`, which are left out.
    pub skipped: Vec<RelPath>,
}

impl Format {
    fn of(file: &mut File) -> Result<Self, Error> {
        let mut start = Vec::new();
        file.by_ref().take(8).read_to_end(&mut start).map_err(Error::Read)?;
        file.seek(SeekFrom::Start(0)).map_err(Error::Read)?;
        Ok(match &start[..] {
            [b'P', b'K', 3 | 5, 4 | 6, ..] => Self::Zip,
            b"!<arch>\n" => Self::Deb,
            _ => Self::Tar,
        })
    }
}

/// Unpacks `archive` into the directory `into`. What is refused is refused where it is found: a directory in which
/// unpacking failed is not to be used.
pub fn unpack(mut archive: File, into: OwnedFd, options: &Options) -> Result<Unpacked, Error> {
    let size = archive.metadata().map_err(Error::Read)?.len();
    archive.seek(SeekFrom::Start(0)).map_err(Error::Read)?;
    let allowed = size.saturating_mul(MOST_EXPANSION).max(ALWAYS_ALLOWED);
    let limits = Limits { bytes: options.limits.bytes.min(allowed), ..options.limits };
    let format = match options.format {
        Some(format) => format,
        None => Format::of(&mut archive)?,
    };
    let mut taken = Taken { tree: Tree::writable(into, limits), options };
    match format {
        Format::Tar => taken.tar(Reader::new(Stream::new(archive)?, limits))?,
        Format::Deb => {
            let data = ar::member(archive, "data.tar")?;
            taken.tar(Reader::new(Stream::new(data)?, limits))?;
        }
        Format::Zip => {
            let mut zip = Zip::open(archive, limits)?;
            while let Some((entry, mut data)) = zip.next_entry()? {
                taken.entry(entry, &mut data)?;
            }
        }
    }
    taken.finish()
}

struct Taken<'a> {
    tree: Tree,
    options: &'a Options,
}

impl Taken<'_> {
    fn tar<R: std::io::Read>(&mut self, mut archive: Reader<R>) -> Result<(), Error> {
        while let Some(entry) = archive.next_entry()? {
            self.entry(entry, &mut archive)?;
        }
        Ok(())
    }

    fn entry(&mut self, mut entry: Entry, data: &mut dyn std::io::Read) -> Result<(), Error> {
        let Some(path) = stripped(&entry.path, self.options.strip) else { return Ok(()) };
        if let Content::HardLink { to } = &mut entry.content {
            let refused = || Error::Entry {
                name: entry.path.display_escaped(),
                why: "is a hard link to what is left out",
            };
            *to = stripped(to, self.options.strip).ok_or_else(refused)?;
        }
        entry.path = path;
        let wanted = |path: &RelPath| {
            self.options
                .only
                .iter()
                .any(|only| path.components().take(only.components().count()).eq(only.components()))
        };
        if self.options.only.is_empty() || wanted(&entry.path) {
            self.tree.put(&entry, data)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Unpacked, Error> {
        let (entries, bytes) = self.tree.counted();
        if entries == 0 && !self.options.only.is_empty() {
            let names: Vec<String> = self.options.only.iter().map(RelPath::display_escaped).collect();
            return Err(Error::NothingFound(names.join("`, `")));
        }
        Ok(Unpacked { entries, bytes, skipped: self.tree.finish()? })
    }
}

/// The path without its first `count` names; `None` if nothing is left.
fn stripped(path: &RelPath, count: usize) -> Option<RelPath> {
    if count == 0 {
        return Some(path.clone());
    }
    let mut rest = RelPath::root();
    for name in path.components().skip(count) {
        rest.push(name).expect("it was part of a path");
    }
    (!rest.is_root()).then_some(rest)
}
