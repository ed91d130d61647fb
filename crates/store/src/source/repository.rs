//! Where a directory's git repository is, and the few files of it that are read.
//!
//! The repository belongs to the user: it is only read, nothing is locked, and no program of git is run. Only what
//! decides how files are to be taken is understood of its configuration, and what is not understood counts
//! as the worst that it could mean.

use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::attributes::Conversion;
use super::index::{self, Index, Unusable};
use crate::id::HashKind;
use crate::regular;

/// Larger files of a repository than this are not read, its index aside.
const SMALL: u64 = 1 << 20;

/// A repository, by its directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// With the index and `HEAD`.
    pub git_dir: PathBuf,
    /// With the objects and the configuration: the same, except for a linked worktree.
    pub common_dir: PathBuf,
}

/// What the configuration says about how files are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configuration {
    pub hash: HashKind,
    pub conversion: Conversion,
}

/// Why a repository could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    #[error("cannot read `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` is larger than it may be", .0.display())]
    TooLarge(PathBuf),
    #[error("`{}` names no git directory", .0.display())]
    NoDirectory(PathBuf),
}

impl Repository {
    /// The repository whose work tree has its top at `root`.
    pub fn find(root: &Path) -> Result<Option<Self>, RepositoryError> {
        let dot_git = root.join(".git");
        let Some(meta) = look(&dot_git)? else { return Ok(None) };
        let git_dir = if meta.is_dir() {
            dot_git
        } else {
            let text = small(&dot_git)?.unwrap_or_default();
            let target = text.strip_prefix(b"gitdir: ").map(<[u8]>::trim_ascii_end);
            let target = target.filter(|target| !target.is_empty());
            let target = target.ok_or_else(|| RepositoryError::NoDirectory(dot_git.clone()))?;
            root.join(std::ffi::OsStr::from_bytes(target))
        };
        // A directory that happens to have this name is none.
        if look(&git_dir.join("HEAD"))?.is_none() {
            return Ok(None);
        }
        let common = small(&git_dir.join("commondir"))?.unwrap_or_default();
        let common_dir = match common.trim_ascii_end() {
            b"" => git_dir.clone(),
            common => git_dir.join(std::ffi::OsStr::from_bytes(common)),
        };
        Ok(Some(Self { git_dir, common_dir }))
    }

    /// Where its objects are.
    pub fn objects(&self) -> PathBuf {
        self.common_dir.join("objects")
    }

    pub fn configuration(&self) -> Result<Configuration, RepositoryError> {
        let text = small(&self.common_dir.join("config"))?.unwrap_or_default();
        let mut configuration = configuration(&text);
        // A worktree may have settings of its own.
        if look(&self.git_dir.join("config.worktree"))?.is_some() {
            configuration.conversion = configuration.conversion.max(Conversion::LineEnds);
        }
        Ok(configuration)
    }

    /// `info/exclude`: what is ignored here only.
    pub fn exclude(&self) -> Result<Vec<u8>, RepositoryError> {
        Ok(small(&self.common_dir.join("info/exclude"))?.unwrap_or_default())
    }

    /// `info/attributes`: attributes that hold here only.
    pub fn attributes(&self) -> Result<Vec<u8>, RepositoryError> {
        Ok(small(&self.common_dir.join("info/attributes"))?.unwrap_or_default())
    }

    /// The index as it is now; `None` if there is none.
    pub fn index(&self, hash: HashKind) -> Result<Option<Result<Index, Unusable>>, RepositoryError> {
        let path = self.git_dir.join("index");
        match read(&path, index::FILE_LIMIT) {
            Ok(found) => Ok(found.map(|(data, mtime_ns)| Index::parse(&data, hash, mtime_ns))),
            Err(RepositoryError::TooLarge(_)) => Ok(Some(Err(Unusable::TooLarge))),
            Err(error) => Err(error),
        }
    }
}

/// The hash that a repository with this configuration uses.
pub(crate) fn hash_in(configuration_text: &[u8]) -> HashKind {
    configuration(configuration_text).hash
}

fn configuration(text: &[u8]) -> Configuration {
    let mut found = Configuration { hash: HashKind::Sha1, conversion: Conversion::None };
    let mut section = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let mut line = line.trim_ascii();
        if let Some(rest) = line.strip_prefix(b"[") {
            let end = rest.iter().position(|byte| *byte == b']').unwrap_or(rest.len());
            section = rest[..end].trim_ascii().to_ascii_lowercase();
            if section.starts_with(b"include") {
                found.conversion = found.conversion.max(Conversion::LineEnds);
            }
            line = rest.get(end + 1..).unwrap_or_default().trim_ascii();
        }
        let mut parts = line.splitn(2, |byte| *byte == b'=');
        let key = parts.next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
        let value = parts.next().unwrap_or(b"true").trim_ascii().to_ascii_lowercase();
        match (section.as_slice(), key.as_slice()) {
            (b"extensions", b"objectformat")
                if value.starts_with(b"sha256") || value.starts_with(b"\"sha256") =>
            {
                found.hash = HashKind::Sha256;
            }
            (b"core", b"autocrlf") if !matches!(value.as_slice(), b"false" | b"no" | b"off" | b"0") => {
                found.conversion = found.conversion.max(Conversion::LineEnds);
            }
            (b"core", b"attributesfile") => found.conversion = Conversion::Anything,
            _ => {}
        }
    }
    found
}

fn look(path: &Path) -> Result<Option<std::fs::Metadata>, RepositoryError> {
    match path.metadata() {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(source) => Err(RepositoryError::Io { path: path.to_owned(), source }),
    }
}

fn small(path: &Path) -> Result<Option<Vec<u8>>, RepositoryError> {
    Ok(read(path, SMALL)?.map(|(data, _)| data))
}

/// A file's bytes and modification time, from one look at it.
fn read(path: &Path, limit: u64) -> Result<Option<(Vec<u8>, i64)>, RepositoryError> {
    let failed = |source| RepositoryError::Io { path: path.to_owned(), source };
    let file = match regular::open(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
            return Ok(None);
        }
        result => result.map_err(failed)?,
    };
    let meta = file.metadata().map_err(failed)?;
    let mut data = Vec::new();
    // Of one that is too large from the start nothing is read.
    if meta.len() <= limit {
        file.take(limit + 1).read_to_end(&mut data).map_err(failed)?;
    }
    if meta.len().max(data.len() as u64) > limit {
        return Err(RepositoryError::TooLarge(path.to_owned()));
    }
    let mtime_ns = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
    Ok(Some((data, mtime_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_counts_as_the_worst() {
        use Conversion::{Anything, LineEnds, None};
        use HashKind::{Sha1, Sha256};
        let of = |text: &str| {
            let found = configuration(text.as_bytes());
            (found.hash, found.conversion)
        };
        for (text, expected) in [
            ("", (Sha1, None)),
            ("[core]\n\tautocrlf = false\n", (Sha1, None)),
            ("[core]\n\tautocrlf\n", (Sha1, LineEnds)),
            ("[Core] AutoCRLF = input\n", (Sha1, LineEnds)),
            ("[other]\n\tautocrlf = true\n", (Sha1, None)),
            ("[includeIf \"gitdir:x\"]\n\tpath = y\n", (Sha1, LineEnds)),
            ("[core]\n\tattributesFile = x\n", (Sha1, Anything)),
            ("[extensions]\n\tobjectFormat = sha256\n", (Sha256, None)),
            ("[", (Sha1, None)),
        ] {
            assert_eq!(of(text), expected, "{text:?}");
        }
    }
}
