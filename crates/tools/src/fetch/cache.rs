//! Downloads, kept by their hash. A file is hashed when it comes and whenever it is taken out; one that is not what its
//! name says is removed and fetched again.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use fs_err as fs;
use sandtable_sandbox::model::path::HostPath;
use sandtable_store::lock::FileLock;
use sandtable_store::remove::remove_tree;
use sha2::Digest as _;

use super::{Came, FetchError};
use crate::plan::{Download, Sha256};

/// The downloads of a user.
#[derive(Clone, Debug)]
pub struct Cache {
    root: HostPath,
}

impl Cache {
    /// Downloads below the directory `root`, which is made when it is needed.
    pub fn new(root: HostPath) -> Self {
        Self { root }
    }

    /// The file, checked, from its beginning; `None` if it is not there or not what it should be.
    pub fn open(&self, download: &Download) -> Result<Option<File>, FetchError> {
        let path = self.place(download);
        let mut file = match fs::File::open(path.as_path()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(FetchError::file("open", path.as_path()))?.into_file(),
        };
        let found = hash(&mut file).map_err(FetchError::file("read", path.as_path()))?;
        if found == download.sha256 {
            return Ok(Some(file));
        }
        // Whatever happened to it, it is not to be used.
        fs::remove_file(path.as_path()).map_err(FetchError::file("remove", path.as_path()))?;
        Ok(None)
    }

    /// Makes sure that the file is there. `bring` puts it somewhere below the scratch directory it is given, and says
    /// where; what is left there from an attempt that failed is still there, for a client that can go on.
    pub(super) fn obtain(
        &self,
        download: &Download,
        bring: impl FnOnce(&HostPath) -> Result<HostPath, FetchError>,
    ) -> Result<Came, FetchError> {
        let private =
            std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700)
                .create(self.root.as_path());
        private.map_err(FetchError::file("make", self.root.as_path()))?;
        let lock = self.root.join(format!("{}.lock", download.sha256));
        // Another process may be fetching it.
        let _held = FileLock::exclusive(lock.as_path())
            .map_err(|error| FetchError::file("lock", lock.as_path())(error.source))?;
        if self.open(download)?.is_some() {
            return Ok(Came::Cached);
        }
        let scratch = self.root.join(format!("{}.partial", download.sha256));
        fs::create_dir_all(scratch.as_path()).map_err(FetchError::file("make", scratch.as_path()))?;
        let brought = bring(&scratch)?;
        let taken = self.take(download, &brought);
        // A file that is wrong is not gone on with; one that is right was moved.
        let _left = remove_tree(scratch.as_path());
        taken.map(|()| Came::Fetched)
    }

    fn take(&self, download: &Download, brought: &HostPath) -> Result<(), FetchError> {
        let failed = |what| FetchError::file(what, brought.as_path());
        let meta = fs::symlink_metadata(brought.as_path()).map_err(failed("look at"))?;
        let name = download.file.to_string();
        if !meta.is_file() {
            return Err(FetchError::Refused { file: name, why: "what came is no file" });
        }
        let mut file = fs::File::open(brought.as_path()).map_err(failed("open"))?.into_file();
        let found = hash(&mut file).map_err(failed("read"))?;
        if found != download.sha256 {
            return Err(match download.size {
                Some(wanted) if meta.len() < wanted => {
                    FetchError::Short { file: name, wanted, found: meta.len() }
                }
                _ => FetchError::Hash { file: name, wanted: download.sha256, found },
            });
        }
        let read_only = std::fs::Permissions::from_mode(0o400);
        fs::set_permissions(brought.as_path(), read_only).map_err(failed("protect"))?;
        file.sync_all().map_err(failed("write out"))?;
        fs::rename(brought.as_path(), self.place(download).as_path()).map_err(failed("rename"))
    }

    fn place(&self, download: &Download) -> HostPath {
        self.root.join(download.sha256.to_string())
    }
}

/// The hash of all of a file, which is at its beginning afterwards.
fn hash(file: &mut File) -> std::io::Result<Sha256> {
    let (mut hash, mut buffer) = (sha2::Sha256::new(), vec![0; 128 * 1024]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(Sha256(hash.finalize().into()))
}

/// Bytes of all files below `path`; what vanishes meanwhile does not count.
pub(super) fn written(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => written(&entry.path()),
            Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |meta| meta.len()),
            _ => 0,
        })
        .sum()
}
