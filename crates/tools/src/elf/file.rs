//! What one ELF file says of itself.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use object::elf::{DT_NEEDED, DT_RELR, DT_RPATH, DT_RUNPATH, FileHeader64, VER_FLG_WEAK};
use object::read::StringTable;
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionTable};
use object::{Endianness, ReadCache};
use rustix::fs::{Mode, OFlags, open};

use super::{Misfit, numbers};

/// The longest first line of a script that the kernel takes.
const FIRST_LINE: usize = 256;
/// How many strings of any sort are taken from one file.
const MOST: usize = 4096;

/// What kind of program a file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Form {
    Elf,
    Script { interpreter: String },
    Other,
}

/// What an ELF file needs and offers.
#[derive(Debug, Default)]
pub(super) struct Object {
    pub(super) machine: String,
    pub(super) interpreter: Option<String>,
    pub(super) needed: Vec<String>,
    /// Where it wants its libraries to be looked for.
    pub(super) search: Vec<String>,
    /// Library and version of symbols that it asks for; a missing weak one does no harm and is not here.
    pub(super) versions: Vec<(String, String)>,
    /// Versions of symbols that it offers.
    pub(super) defined: Vec<String>,
    pub(super) short_relocations: bool,
}

type Cache = ReadCache<File>;
type Header = FileHeader64<Endianness>;

/// What kind of program `path` is, by its first bytes.
pub(super) fn form(path: &Path) -> Result<Form, Misfit> {
    let mut start = Vec::new();
    let read = regular(path)?.take(FIRST_LINE as u64).read_to_end(&mut start);
    read.map_err(|source| Misfit::Read { path: path.to_owned(), source })?;
    Ok(match &start[..] {
        [0x7f, b'E', b'L', b'F', ..] => Form::Elf,
        [b'#', b'!', rest @ ..] => {
            let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let word = line.trim_ascii().split(u8::is_ascii_whitespace).next().unwrap_or_default();
            Form::Script { interpreter: String::from_utf8_lossy(word).into_owned() }
        }
        _ => Form::Other,
    })
}

impl Object {
    pub(super) fn open(path: &Path) -> Result<Self, Misfit> {
        let program = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut file = regular(path)?;
        let mut ident = [0; 20];
        file.read_exact(&mut ident).map_err(|source| Misfit::Read { path: path.to_owned(), source })?;
        let machine = machine(&ident);
        // Only 64-bit files of the usual byte order are read further; others are for no machine of ours.
        if ident[4] != 2 || ident[5] != 1 {
            return Ok(Self { machine, ..Self::default() });
        }
        let cache = ReadCache::new(file);
        let mut object = Self { machine, ..Self::default() };
        object.read(&cache).map_err(|why| Misfit::Damaged { program, why: why.to_string() })?;
        Ok(object)
    }

    /// The newest version of a family that it offers: of `GLIBC`, `GLIBC_2.36`.
    pub(super) fn newest(&self, family: &str) -> Option<&str> {
        let of = |version: &&String| {
            version.strip_prefix(family).is_some_and(|rest| {
                rest.trim_start_matches('_').starts_with(|first: char| first.is_ascii_digit())
            })
        };
        let rank = |version: &&String| {
            numbers(version.strip_prefix(family).unwrap_or_default().trim_start_matches('_'))
        };
        self.defined.iter().filter(of).max_by_key(rank).map(String::as_str)
    }

    fn read(&mut self, cache: &Cache) -> object::read::Result<()> {
        let header = Header::parse(cache)?;
        let endian = header.endian()?;
        for segment in header.program_headers(endian, cache)? {
            if let Some(interpreter) = segment.interpreter(endian, cache)? {
                self.interpreter = Some(text(interpreter));
            }
        }
        let sections = header.sections(endian, cache)?;
        self.read_dynamic(endian, cache, &sections)?;
        self.read_versions(endian, cache, &sections)
    }

    fn read_dynamic<'data>(
        &mut self,
        endian: Endianness,
        cache: &'data Cache,
        sections: &SectionTable<'data, Header, &'data Cache>,
    ) -> object::read::Result<()> {
        let table = sections.dynamic_table(endian, cache)?;
        for entry in table.iter().take(MOST) {
            match entry.tag {
                DT_NEEDED => self.needed.push(text(table.string(entry)?)),
                DT_RPATH | DT_RUNPATH => {
                    let places = text(table.string(entry)?);
                    self.search
                        .extend(places.split(':').filter(|place| !place.is_empty()).map(str::to_owned));
                }
                DT_RELR => self.short_relocations = true,
                _ => {}
            }
        }
        Ok(())
    }

    fn read_versions<'data>(
        &mut self,
        endian: Endianness,
        cache: &'data Cache,
        sections: &SectionTable<'data, Header, &'data Cache>,
    ) -> object::read::Result<()> {
        let strings = |index| -> object::read::Result<StringTable<'data, &'data Cache>> {
            sections.strings(endian, cache, index)
        };
        if let Some((needs, link)) = sections.gnu_verneed(endian, cache)? {
            let strings = strings(link)?;
            for need in needs.take(MOST) {
                let (need, each) = need?;
                let file = text(need.file(endian, strings)?);
                for version in each.take(MOST) {
                    let version = version?;
                    if version.vna_flags.get(endian).0 & VER_FLG_WEAK.0 == 0 {
                        self.versions.push((file.clone(), text(version.name(endian, strings)?)));
                    }
                }
            }
        }
        if let Some((definitions, link)) = sections.gnu_verdef(endian, cache)? {
            let strings = strings(link)?;
            for definition in definitions.take(MOST) {
                let (_, mut names) = definition?;
                // The first name is its own, the others are what it builds on.
                if let Some(name) = names.next()? {
                    self.defined.push(text(name.name(endian, strings)?));
                }
            }
        }
        Ok(())
    }
}

/// Opens a file that may be anything; a pipe in its place does not hold us up.
fn regular(path: &Path) -> Result<File, Misfit> {
    let failed = |source| Misfit::Read { path: path.to_owned(), source };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open(path, flags, Mode::empty()).map(File::from).map_err(|errno| failed(errno.into()))?;
    match file.metadata() {
        Ok(found) if found.is_file() => Ok(file),
        Ok(_) => Err(failed(std::io::Error::other("it is no regular file"))),
        Err(error) => Err(failed(error)),
    }
}

/// The machine that a file is for, as Rust calls it.
fn machine(ident: &[u8; 20]) -> String {
    let number = match ident[5] {
        2 => u16::from_be_bytes([ident[18], ident[19]]),
        _ => u16::from_le_bytes([ident[18], ident[19]]),
    };
    match (number, ident[4]) {
        (62, 2) => "x86_64".to_owned(),
        (183, 2) => "aarch64".to_owned(),
        (243, 2) => "riscv64".to_owned(),
        (21, 2) => "powerpc64".to_owned(),
        (22, 2) => "s390x".to_owned(),
        (3, _) => "x86".to_owned(),
        (40, _) => "arm".to_owned(),
        (number, _) => format!("ELF machine {number}"),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
