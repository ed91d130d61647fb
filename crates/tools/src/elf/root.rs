//! A root file system as the loader inside it would see it, read from outside.

use std::collections::VecDeque;
use std::fmt;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::file::Object;

/// How many links one path may lead through.
const MOST_LINKS: usize = 40;
/// The largest C library that is searched for its version, and the largest list of library directories.
const LARGEST_LIBC: u64 = 16 << 20;
const LARGEST_LIST: u64 = 1 << 20;
/// Where loaders look without being told. Those of other machines do no harm.
const PLACES: [&str; 8] = [
    "/lib",
    "/usr/lib",
    "/lib64",
    "/usr/lib64",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
];

/// A root file system.
#[derive(Clone, Debug)]
pub struct Root {
    base: PathBuf,
    /// Directories inside with what changed in each of them.
    layers: Vec<(PathBuf, PathBuf)>,
    places: Vec<String>,
    libc: Libc,
}

/// The C library of a root file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Libc {
    /// With the newest version of symbols that it offers.
    Glibc {
        version: Option<String>,
    },
    Musl {
        version: Option<String>,
    },
    /// None: only static programs run.
    None,
}

impl Libc {
    /// How plans and recipes call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Glibc { .. } => "glibc",
            Self::Musl { .. } => "musl",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Libc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Glibc { version: Some(version) } | Self::Musl { version: Some(version) } => {
                write!(f, "{} {version}", self.name())
            }
            Self::Glibc { .. } | Self::Musl { .. } => f.write_str(self.name()),
            Self::None => f.write_str("no C library"),
        }
    }
}

impl Root {
    /// The root file system in the directory `base`; `/` is this machine's.
    pub fn new(base: impl Into<PathBuf>) -> Self {
        let (base, layers) = (base.into(), Vec::new());
        let mut root = Self { base, layers, places: Vec::new(), libc: Libc::None };
        root.places = PLACES.iter().map(|place| (*place).to_owned()).chain(root.configured()).collect();
        root.libc = root.find_libc();
        root
    }

    /// The same with what changed in directories of it: of each its path inside, without the first slash, and where the
    /// changes are. What was removed from a directory is still found.
    #[must_use]
    pub fn with_layers(&self, layers: Vec<(PathBuf, PathBuf)>) -> Self {
        let mut root = Self { layers, ..self.clone() };
        root.places.extend(root.configured());
        root
    }

    pub fn libc(&self) -> &Libc {
        &self.libc
    }

    pub(super) fn library_places(&self) -> &[String] {
        &self.places
    }

    /// The file at `path` inside, wherever its links lead inside; `None` if there is none.
    pub fn find(&self, path: &str) -> Option<PathBuf> {
        let mut waiting: VecDeque<PathBuf> = parts(Path::new(path));
        let (mut here, mut links) = (PathBuf::new(), 0);
        while let Some(part) = waiting.pop_front() {
            if part == Path::new("..") {
                here.pop();
                continue;
            }
            let next = here.join(&part);
            let outside = self.outside(&next);
            if !fs::symlink_metadata(&outside).ok()?.is_symlink() {
                here = next;
                continue;
            }
            links += 1;
            if links > MOST_LINKS {
                return None;
            }
            let to = fs::read_link(&outside).ok()?;
            if to.is_absolute() {
                here.clear();
            }
            for part in parts(&to).into_iter().rev() {
                waiting.push_front(part);
            }
        }
        Some(self.outside(&here))
    }

    /// Where a path inside that leads through no link is.
    fn outside(&self, inside: &Path) -> PathBuf {
        let changed = self.layers.iter().find_map(|(directory, changes)| {
            let path = changes.join(inside.strip_prefix(directory).ok()?);
            fs::symlink_metadata(&path).is_ok().then_some(path)
        });
        changed.unwrap_or_else(|| self.base.join(inside))
    }

    /// Directories that the loader's configuration names.
    fn configured(&self) -> Vec<String> {
        let Some(directory) = self.find("/etc/ld.so.conf.d") else { return Vec::new() };
        let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
        let mut files: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        files.sort();
        let lists =
            files.iter().filter_map(|name| self.read(&format!("/etc/ld.so.conf.d/{name}"), LARGEST_LIST));
        lists
            .flat_map(|list| {
                let list = String::from_utf8_lossy(&list).into_owned();
                list.lines()
                    .map(str::trim)
                    .filter(|line| line.starts_with('/'))
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    fn find_libc(&self) -> Libc {
        if let Some(libc) = self.places.iter().find_map(|place| self.find(&format!("{place}/libc.so.6"))) {
            let newest = Object::open(&libc).ok();
            let version = newest.as_ref().and_then(|object| object.newest("GLIBC")?.strip_prefix("GLIBC_"));
            return Libc::Glibc { version: version.map(str::to_owned) };
        }
        let loaders = ["x86_64", "aarch64"].map(|machine| format!("/lib/ld-musl-{machine}.so.1"));
        match loaders.iter().find(|loader| self.find(loader).is_some()) {
            Some(loader) => {
                Libc::Musl { version: self.read(loader, LARGEST_LIBC).as_deref().and_then(musl_version) }
            }
            None => Libc::None,
        }
    }

    /// The first bytes of a file inside, `most` of them; `None` if there is none.
    pub fn read(&self, path: &str, most: u64) -> Option<Vec<u8>> {
        let path = self.find(path)?;
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        fs::File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// musl's own version: the one text in it that is a version and nothing else.
fn musl_version(bytes: &[u8]) -> Option<String> {
    let is_version = |text: &&[u8]| {
        let plain = text.split(|byte| *byte == b'-').next().unwrap_or_default();
        let parts: Vec<&[u8]> = plain.split(|byte| *byte == b'.').collect();
        parts.len() == 3
            && parts
                .iter()
                .all(|part| !part.is_empty() && part.len() < 4 && part.iter().all(u8::is_ascii_digit))
    };
    bytes.split(|byte| *byte == 0).find(is_version).map(|text| String::from_utf8_lossy(text).into_owned())
}

fn parts(path: &Path) -> VecDeque<PathBuf> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(PathBuf::from(name)),
            Component::ParentDir => Some(PathBuf::from("..")),
            _ => None,
        })
        .collect()
}
