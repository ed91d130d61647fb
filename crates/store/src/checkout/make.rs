//! One entry of a state, made on a disk: in a directory that is open, under a single name that must not exist yet.
//!
//! Data never decides on more than a name below that handle, bytes, nine permission bits, attributes of users and a
//! time. Set-id and sticky bits are not set, devices are not made. What an entry loses that way is said.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags, chownat, fchmod, fchown,
    fsetxattr, futimens, openat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use crate::id::ObjectId;
use crate::object::{ReadError, ReadObjects};
use crate::os::granted;
use crate::state::{Own, manifest};

/// What times entries get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// Those of the state, to the nanosecond.
    #[default]
    Recorded,
    /// The moment they are made.
    Now,
}

/// What an entry could not be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lost {
    /// Set-user-id, set-group-id or sticky: never set from data.
    SpecialBits,
    /// The file system does not take it, or no more of it.
    Attributes,
}

/// Why an entry could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MakeError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Io(#[from] Errno),
}

/// Makes entries.
#[derive(Clone, Copy)]
pub(crate) struct Maker<'a> {
    pub(crate) objects: &'a dyn ReadObjects,
    pub(crate) times: Times,
    /// To whom everything is given; nobody, if it stays with whoever makes it.
    owner: Option<(u32, u32)>,
    /// The permission bits that a new entry gets if it asks for them; the others must be set later.
    granted: u16,
}

/// The permission bits that data may set.
const BITS: u16 = 0o777;

impl<'a> Maker<'a> {
    /// For entries below `top`: what it grants new ones is tried first.
    pub(crate) fn new(objects: &'a dyn ReadObjects, top: BorrowedFd<'_>, times: Times) -> Self {
        Self { objects, times, owner: None, granted: granted(top, BITS) }
    }

    /// The same, with everything given to somebody.
    pub(crate) fn given_to(self, owner: Option<(u32, u32)>) -> Self {
        Self { owner, ..self }
    }

    /// A file with everything it has; gives the number of its bytes. Nothing is left of one that failed.
    pub(crate) fn file(
        &self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        node: (&ObjectId, &Own),
    ) -> Result<(u64, Vec<Lost>), MakeError> {
        let (id, own) = node;
        // Attributes can only be set by who may write.
        let bits = if own.attributes.is_empty() { own.bits & BITS } else { 0o600 };
        let content = match self.objects.recorded(id) {
            Err(ReadError::TooLarge { .. }) => None,
            read => Some(read?),
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(parent, name, flags, Mode::from_raw_mode(bits.into()))?;
        let filled = self.fill(file, id, content).and_then(|(file, bytes)| {
            let lost = self.dress(file.as_fd(), own, bits)?;
            Ok((bytes, lost))
        });
        if filled.is_err() {
            // It is ours and half made; if it cannot be removed, the error that follows says enough.
            let _gone = unlinkat(parent, name, AtFlags::empty());
        }
        filled
    }

    fn fill(&self, file: OwnedFd, id: &ObjectId, content: Option<Vec<u8>>) -> Result<(File, u64), MakeError> {
        let mut file = File::from(file);
        let Some(content) = content else {
            let mut holes = Holes { file, hole: 0 };
            let bytes = self.objects.stream(id, &mut holes)?;
            return Ok((holes.finish().map_err(|error| errno(&error))?, bytes));
        };
        file.write_all(&content).map_err(|error| errno(&error))?;
        Ok((file, content.len() as u64))
    }

    /// A symlink to what the blob says.
    pub(crate) fn symlink(
        &self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        node: (&ObjectId, &Own),
    ) -> Result<Vec<Lost>, MakeError> {
        let (id, own) = node;
        let target = self.objects.recorded(id)?;
        symlinkat(target.as_slice(), parent, name)?;
        if let Some((uid, gid)) = self.owner {
            let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
            chownat(parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if let Some(times) = self.stamps(own) {
            utimensat(parent, name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(if own.attributes.is_empty() { Vec::new() } else { vec![Lost::Attributes] })
    }

    /// What a directory says of itself, once everything is in it.
    pub(crate) fn settle(&self, directory: BorrowedFd<'_>, own: &Own) -> rustix::io::Result<Vec<Lost>> {
        // It was made for its owner only, so its bits are always set.
        self.dress(directory, own, 0o10_000)
    }

    /// Owner, attributes, permissions, time: in this order, since each could undo what came before. `asked` is what
    /// the entry was made with.
    pub(crate) fn dress(
        &self,
        entry: BorrowedFd<'_>,
        own: &Own,
        asked: u16,
    ) -> rustix::io::Result<Vec<Lost>> {
        let mut lost = Vec::new();
        if let Some((uid, gid)) = self.owner {
            fchown(entry, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
        for attribute in own.attributes.iter().filter(|attribute| manifest::is_kept(&attribute.name)) {
            if fsetxattr(entry, &*attribute.name, &attribute.value, XattrFlags::empty()).is_err() {
                lost.push(Lost::Attributes);
            }
        }
        lost.dedup();
        if own.bits & !BITS != 0 {
            lost.push(Lost::SpecialBits);
        }
        let bits = own.bits & BITS;
        if asked != bits || bits & !self.granted != 0 {
            fchmod(entry, Mode::from_raw_mode(bits.into()))?;
        }
        if let Some(times) = self.stamps(own) {
            futimens(entry, &times)?;
        }
        Ok(lost)
    }

    pub(crate) fn stamps(&self, own: &Own) -> Option<Timestamps> {
        const SECOND: i64 = 1_000_000_000;
        let mtime = own.mtime_ns.filter(|_| self.times == Times::Recorded)?;
        let modified = Timespec { tv_sec: mtime.div_euclid(SECOND), tv_nsec: mtime.rem_euclid(SECOND) };
        let accessed = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        Some(Timestamps { last_access: accessed, last_modification: modified })
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// A large file: stretches of zeros become holes, as they may have been.
struct Holes {
    file: File,
    /// How many zeros were seen since the last byte that was written.
    hole: u64,
}

/// The smallest stretch of zeros that is worth a hole.
const PAGE: usize = 4096;

impl Write for Holes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.chunks(PAGE) {
            if piece.iter().all(|byte| *byte == 0) {
                self.hole += piece.len() as u64;
                continue;
            }
            if self.hole > 0 {
                self.file.seek(SeekFrom::Current(self.hole.cast_signed()))?;
                self.hole = 0;
            }
            self.file.write_all(piece)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Holes {
    fn finish(mut self) -> io::Result<File> {
        if self.hole > 0 {
            let end = self.file.stream_position()? + self.hole;
            self.file.set_len(end)?;
        }
        Ok(self.file)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn zeros_become_holes_and_stay_zeros() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let mut data = vec![0; 3 << 20];
        data[1 << 20] = 7;
        data[(1 << 20) + 5000] = 8;
        let file = fs_err::File::create(&path).unwrap().into_parts().0;
        let mut holes = Holes { file, hole: 0 };
        for piece in data.chunks(100_000) {
            holes.write_all(piece).unwrap();
        }
        drop(holes.finish().unwrap());
        assert_eq!(fs_err::read(&path).unwrap(), data);
        assert!(fs_err::metadata(&path).unwrap().blocks() * 512 < 1 << 20);
    }
}
