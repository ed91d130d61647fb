//! Loose objects: one file each, in the user's repository. They are read when a source is onboarded; the store
//! itself has none. They are written into repositories that last for one operation.

use std::io;
use std::path::{Path, PathBuf};

use super::deflate::deflate;
use super::inflate::Inflate;
use super::input::Input;
use super::{EntryError, limit};
use crate::id::{HashKind, ObjectId};
use crate::object::{Object, ObjectKind, WriteError};
use crate::regular;

/// The longest header that there can be, and some more.
const HEAD: usize = 64;

/// Where an object lies below a directory of objects.
pub fn path(objects: &Path, id: &ObjectId) -> PathBuf {
    let text = id.to_string();
    objects.join(&text[..2]).join(&text[2..])
}

/// Kind and size; `None` if there is no such file.
pub fn header(objects: &Path, id: &ObjectId) -> Result<Option<(ObjectKind, u64)>, EntryError> {
    let Some(file) = open(objects, id)? else { return Ok(None) };
    let loose = Loose::start(&file)?;
    Ok(Some((loose.kind, loose.size)))
}

/// A whole object that is not too large, and not yet compared with its id.
pub fn read(objects: &Path, id: &ObjectId) -> Result<Option<Object>, EntryError> {
    let Some(file) = open(objects, id)? else { return Ok(None) };
    let loose = Loose::start(&file)?;
    if loose.size > limit(loose.kind) {
        return Err(EntryError::TooLarge(loose.size));
    }
    let (kind, mut data) = (loose.kind, Vec::new());
    loose.each(&mut |_, block| {
        data.extend_from_slice(block);
        Ok(())
    })?;
    Ok(Some(Object { kind, data }))
}

/// An object piece by piece; gives its size.
pub fn stream(
    objects: &Path,
    id: &ObjectId,
    to: &mut dyn FnMut(ObjectKind, &[u8]) -> io::Result<()>,
) -> Result<Option<u64>, EntryError> {
    let Some(file) = open(objects, id)? else { return Ok(None) };
    Loose::start(&file)?.each(to).map(Some)
}

/// Writes an object into a directory that nobody else works in: a crash may leave half a file.
pub fn write(
    objects: &Path,
    hash: HashKind,
    (kind, data): (ObjectKind, &[u8]),
) -> Result<ObjectId, WriteError> {
    let id = crate::object::hash(hash, kind, data)?;
    let path = path(objects, &id);
    let mut whole = format!("{kind} {}\0", data.len()).into_bytes();
    whole.extend_from_slice(data);
    let mut stream = Vec::new();
    deflate(&whole, &mut stream);
    let folder = path.parent().expect("it is below the directory");
    let written = fs_err::create_dir_all(folder).and_then(|()| fs_err::write(&path, stream));
    written.map(|()| id).map_err(WriteError::Io)
}

fn open(objects: &Path, id: &ObjectId) -> Result<Option<std::fs::File>, EntryError> {
    match regular::open(&path(objects, id)) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Err(EntryError::damaged("it is no file"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

struct Loose<'a> {
    inflate: Inflate<'a>,
    kind: ObjectKind,
    size: u64,
    /// What was decompressed beyond the header.
    first: Vec<u8>,
}

impl<'a> Loose<'a> {
    fn start(file: &'a std::fs::File) -> Result<Self, EntryError> {
        let mut inflate = Inflate::new(Input::new(file, 0, file.metadata()?.len()));
        let mut start = vec![0; HEAD];
        let mut filled = 0;
        while filled < HEAD && !start[..filled].contains(&0) {
            match inflate.some(&mut start[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        start.truncate(filled);
        let (kind, size, length) = head(&start).ok_or_else(|| EntryError::damaged("it has no header"))?;
        Ok(Self { inflate, kind, size, first: start.split_off(length) })
    }

    /// Never decompresses more than the header announced.
    fn each(mut self, to: &mut dyn FnMut(ObjectKind, &[u8]) -> io::Result<()>) -> Result<u64, EntryError> {
        let longer = || EntryError::damaged("it is longer than it says");
        let mut left = self.size.checked_sub(self.first.len() as u64).ok_or_else(longer)?;
        to(self.kind, &self.first)?;
        let mut block = vec![0; 64 << 10];
        while left > 0 {
            let room = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
            match self.inflate.some(&mut block[..room])? {
                0 => return Err(EntryError::damaged("it is shorter than it says")),
                count => {
                    to(self.kind, &block[..count])?;
                    left -= count as u64;
                }
            }
        }
        self.inflate.end()?;
        Ok(self.size)
    }
}

/// Kind, size and length of a header such as `blob 12` and a byte of zero.
fn head(start: &[u8]) -> Option<(ObjectKind, u64, usize)> {
    let end = start.iter().position(|byte| *byte == 0)?;
    let (kind, size) = str::from_utf8(&start[..end]).ok()?.split_once(' ')?;
    let kinds = [ObjectKind::Commit, ObjectKind::Tree, ObjectKind::Blob, ObjectKind::Tag];
    let kind = kinds.into_iter().find(|known| known.name() == kind)?;
    let plain = size.bytes().all(|byte| byte.is_ascii_digit()) && (size == "0" || !size.starts_with('0'));
    Some((kind, size.parse().ok().filter(|_| plain)?, end + 1))
}
