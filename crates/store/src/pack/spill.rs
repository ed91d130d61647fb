//! A large object on its way into a pack.

use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use super::deflate::Deflate;
use super::entry;
use super::write::new_file;
use crate::id::{HashKind, ObjectId};
use crate::object::{Hasher, ObjectKind, WriteError};

/// A file beside the pack for one large object; gone when this is.
pub(super) struct Spill {
    file: std::fs::File,
    path: PathBuf,
}

impl Drop for Spill {
    fn drop(&mut self) {
        drop(fs_err::remove_file(&self.path));
    }
}

impl Spill {
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        Ok(Self { file: new_file(&path)?, path })
    }

    pub(super) fn file(&self) -> &std::fs::File {
        &self.file
    }

    /// Compresses the content into the file; gives its id, and the file at its start.
    pub(super) fn fill(
        &self,
        kind: HashKind,
        size: u64,
        content: &mut dyn Read,
    ) -> Result<(ObjectId, &std::fs::File), WriteError> {
        let mut file = &self.file;
        file.write_all(&entry::encode(ObjectKind::Blob, size)).map_err(WriteError::Io)?;
        let mut hasher = Hasher::new(kind, ObjectKind::Blob, size);
        let mut block = vec![0; 128 << 10];
        let mut out = Vec::new();
        let mut deflate: Option<Deflate> = None;
        let mut left = size;
        while left > 0 {
            let room = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
            let count = some(content, &mut block[..room])?;
            if count == 0 {
                return Err(WriteError::Torn);
            }
            left -= count as u64;
            hasher.update(&block[..count]);
            deflate
                .get_or_insert_with(|| Deflate::for_content(&block[..count]))
                .push(&block[..count], &mut out);
            file.write_all(&out).map_err(WriteError::Io)?;
            out.clear();
        }
        if some(content, &mut [0])? != 0 {
            return Err(WriteError::Torn);
        }
        deflate.unwrap_or_else(|| Deflate::for_content(&[])).finish(&mut out);
        file.write_all(&out).and_then(|()| file.seek(SeekFrom::Start(0))).map_err(WriteError::Io)?;
        Ok((hasher.finish()?, &self.file))
    }
}

fn some(content: &mut dyn Read, to: &mut [u8]) -> Result<usize, WriteError> {
    loop {
        match content.read(to) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map_err(WriteError::Content),
        }
    }
}
