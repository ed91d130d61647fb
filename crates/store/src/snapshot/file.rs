//! Reading one file or symlink that may be exchanged or written to at any moment.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{SeekFrom, readlinkat, seek};
use rustix::io::Errno;

use super::content::Content;
use super::holes::Holes;
use super::linked::Linked;
use crate::dir::{Kind, Meta, attribute_names, attribute_value, open_file, stat_at, stat_fd};
use crate::id::ObjectId;
use crate::object::{ObjectKind, WriteError, WriteObjects};
use crate::state::manifest::is_kept;
use crate::state::{Attribute, Attributes, SkipReason};

/// How often a file that changes while it is read is read again.
const TRIES: usize = 3;

/// What the attributes of one entry may take together.
const ATTRIBUTE_BYTES: usize = 1 << 20;

/// Reads files into a store.
pub(crate) struct FileReader<'a> {
    pub(crate) sink: &'a dyn WriteObjects,
    pub(crate) limit: u64,
    pub(crate) holes: &'a Holes,
    pub(crate) linked: &'a Linked,
    pub(crate) cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// What reading a file gave.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) id: ObjectId,
    pub(crate) attributes: Attributes,
    /// What it looked like when it had been read.
    pub(crate) meta: Meta,
    /// It never held still: this is what the last reading saw.
    pub(crate) torn: bool,
    /// Some attributes are too large and not there.
    pub(crate) attributes_cut: bool,
    /// How many bytes were read; none of a file that was read under another name.
    pub(crate) read: u64,
}

/// Why there is nothing of an entry.
#[derive(Debug)]
pub(crate) enum Nothing {
    Skip(SkipReason),
    Failed(io::Error),
    Write(WriteError),
    Cancelled,
}

impl FileReader<'_> {
    /// Reads the file `name` in `dir`, which was seen to be `seen`.
    pub(crate) fn read(&self, dir: BorrowedFd<'_>, name: &[u8], seen: &Meta) -> Result<Given, Nothing> {
        if let Some(given) = self.linked.read_before(seen) {
            return Ok(given);
        }
        let given = self.read_anew(dir, name, seen)?;
        self.linked.remember(&given);
        Ok(given)
    }

    fn read_anew(&self, dir: BorrowedFd<'_>, name: &[u8], seen: &Meta) -> Result<Given, Nothing> {
        let mut seen = *seen;
        let mut last = SkipReason::Moved;
        for left in (0..TRIES).rev() {
            match self.attempt(dir, name, &seen) {
                Ok(given) if given.torn && left > 0 => {}
                Ok(given) => return Ok(given),
                Err(Nothing::Skip(why @ (SkipReason::Moved | SkipReason::Torn))) => last = why,
                Err(nothing) => return Err(nothing),
            }
            seen = stat_at(dir, name).map_err(|_| Nothing::Skip(SkipReason::Moved))?;
            if seen.kind != Kind::File {
                return Err(Nothing::Skip(SkipReason::Moved));
            }
        }
        Err(Nothing::Skip(last))
    }

    fn attempt(&self, dir: BorrowedFd<'_>, name: &[u8], seen: &Meta) -> Result<Given, Nothing> {
        let file = open_file(dir, name, seen).map_err(judge)?;
        let before = stat_fd(file.as_fd()).map_err(judge)?;
        if before.size > self.limit {
            return Err(Nothing::Skip(SkipReason::TooLarge));
        }
        if !self.holes.fit(file.as_fd(), before.size) {
            return Err(Nothing::Skip(SkipReason::Holes));
        }
        let (attributes, attributes_cut) = attributes(file.as_fd()).map_err(judge)?;
        wait_for_writes(file.as_fd());
        let mut content = Content::new(file.as_fd(), before.size, self.cancelled);
        let id = self.sink.write_blob(before.size, &mut content).map_err(|error| self.sort(error))?;
        let meta = stat_fd(file.as_fd()).map_err(judge)?;
        let look = |meta: &Meta| (meta.size, meta.mtime_ns, meta.ctime_ns);
        let torn = look(&meta) != look(&before);
        Ok(Given { id, attributes, meta, torn, attributes_cut, read: meta.size })
    }

    fn sort(&self, error: WriteError) -> Nothing {
        match error {
            _ if (self.cancelled)() => Nothing::Cancelled,
            WriteError::Torn => Nothing::Skip(SkipReason::Torn),
            WriteError::Content(source) => source
                .raw_os_error()
                .map_or(Nothing::Failed(source), |raw| judge(Errno::from_raw_os_error(raw))),
            error => Nothing::Write(error),
        }
    }
}

/// Waits until whoever is in the middle of writing to the file is done with it.
///
/// The kernel stamps a file before it copies the data in, and a writer may lose the processor between the two for
/// longer than a tick: then the file has its new change time and still its old content, and would be taken for settled.
/// Both happen under the lock of the inode, which reading does not take on every file system, but looking for a
/// hole does (`ext4_llseek`, `shmem_file_llseek`, `btrfs_file_llseek`). Whoever gets the lock later is stamped later.
fn wait_for_writes(file: BorrowedFd<'_>) {
    // Whether there is a hole, or such a question is understood, does not matter.
    let _answer = seek(file, SeekFrom::Hole(0));
}

/// Stores the target of the symlink `name`.
pub(crate) fn link(sink: &dyn WriteObjects, dir: BorrowedFd<'_>, name: &[u8]) -> Result<ObjectId, Nothing> {
    match readlinkat(dir, name, Vec::new()) {
        Ok(target) => sink.write(ObjectKind::Blob, target.as_bytes()).map_err(Nothing::Write),
        // No symlink any more.
        Err(Errno::INVAL) => Err(Nothing::Skip(SkipReason::Moved)),
        Err(errno) => Err(judge(errno)),
    }
}

/// The attributes of an open file or directory that are part of a state, and whether some are too large for it.
pub(crate) fn attributes(fd: BorrowedFd<'_>) -> rustix::io::Result<(Attributes, bool)> {
    let mut kept = Vec::new();
    let (mut room, mut is_cut) = (ATTRIBUTE_BYTES, false);
    for name in attribute_names(fd)?.into_iter().filter(|name| is_kept(name)) {
        let Some(value) = attribute_value(fd, &name)? else { continue };
        match room.checked_sub(name.len() + value.len()) {
            Some(left) => {
                room = left;
                kept.push(Attribute { name: name.into(), value: value.into() });
            }
            None => is_cut = true,
        }
    }
    Ok((Attributes::new(kept), is_cut))
}

/// Tells an error that concerns one entry from one that concerns everything.
pub(crate) fn judge(errno: Errno) -> Nothing {
    match errno {
        // A lease that another process holds makes the kernel say `AGAIN` for good.
        Errno::ACCESS | Errno::PERM | Errno::IO | Errno::AGAIN => Nothing::Skip(SkipReason::Unreadable),
        Errno::XDEV => Nothing::Skip(SkipReason::Mount),
        Errno::NOENT | Errno::STALE | Errno::LOOP | Errno::NOTDIR | Errno::NXIO => {
            Nothing::Skip(SkipReason::Moved)
        }
        errno => Nothing::Failed(errno.into()),
    }
}
