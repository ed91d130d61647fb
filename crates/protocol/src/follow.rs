//! Reading a file to which others add, and which becomes `PATH.1` when it is full.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Reads such a pair of files from its oldest byte on.
#[derive(Debug)]
pub struct Follow {
    path: PathBuf,
    file: Option<File>,
}

impl Follow {
    /// Starts at the oldest byte. A file that does not exist yet is an empty one.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: File::open(older(path)).ok() }
    }

    /// What was added since the last call: one piece per file, so the first goes on where the last one ended.
    pub fn pieces(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut pieces = Vec::new();
        loop {
            // Looked for before reading: whatever the old file got is read before the new one.
            let newer = self.newer()?;
            let mut piece = Vec::new();
            if let Some(file) = &mut self.file {
                file.read_to_end(&mut piece)?;
            }
            pieces.push(piece);
            let Some(newer) = newer else { return Ok(pieces) };
            self.file = Some(newer);
        }
    }

    /// The file at the path, if it is another than the one being read.
    fn newer(&self) -> io::Result<Option<File>> {
        let found = match File::open(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let same = match &self.file {
            Some(file) => identity(file)? == identity(&found)?,
            None => false,
        };
        Ok((!same).then_some(found))
    }
}

/// What a full file is called.
pub fn older(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let found = file.metadata()?;
    Ok((found.dev(), found.ino()))
}
