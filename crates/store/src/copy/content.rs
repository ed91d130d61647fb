//! The bytes of one file: shared, copied by the kernel, or carried; holes stay holes.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use rustix::fs::{SeekFrom, fstat, ftruncate, seek};
use rustix::io::{Errno, Result, pread, pwrite, retry_on_intr};

use super::CopyError;
use super::work::{Work, read, write};
use crate::os::{copy_range, share_content};
use crate::path::RelPath;

/// As much as is copied between two looks whether to stop.
const STEP: u64 = 16 << 20;
const BLOCK: usize = 128 << 10;

/// Makes the new file `to` hold what `from` holds; gives the number of bytes.
pub(super) fn copy(
    work: &Work<'_>,
    from: &OwnedFd,
    to: &OwnedFd,
    path: &RelPath,
) -> std::result::Result<u64, CopyError> {
    let size = fstat(from).map_err(|errno| read(path, errno))?.st_size.cast_unsigned();
    if size == 0 {
        return Ok(0);
    }
    if work.may_clone() {
        match share_content(to, from) {
            Ok(()) => return Ok(size),
            // Whatever the reason, it will be the same for the next file.
            Err(_) => work.clones.store(false, Ordering::Relaxed),
        }
    }
    let mut carrier = Carrier { from, to, buffer: Vec::new() };
    let mut at = 0;
    while at < size {
        let (start, end) = data(from, at, size).map_err(|errno| read(path, errno))?;
        at = start;
        while at < end {
            if (work.options.cancelled)() {
                return Err(CopyError::Cancelled);
            }
            match carrier.some(at, (end - at).min(STEP)).map_err(|errno| write(path, errno))? {
                // The file became shorter meanwhile.
                0 => return Ok(at),
                count => at += count,
            }
        }
    }
    // A hole at the end.
    ftruncate(to, size).map_err(|errno| write(path, errno))?;
    Ok(size)
}

/// The next stretch of data at or after `at`; all of the rest where the file system knows no holes.
fn data(file: &OwnedFd, at: u64, size: u64) -> Result<(u64, u64)> {
    match seek(file, SeekFrom::Data(at)) {
        Err(Errno::NXIO) => Ok((size, size)),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok((at, size)),
        Err(errno) => Err(errno),
        Ok(start) => Ok((start, seek(file, SeekFrom::Hole(start))?.min(size))),
    }
}

struct Carrier<'a> {
    from: &'a OwnedFd,
    to: &'a OwnedFd,
    /// Empty as long as the kernel copies by itself.
    buffer: Vec<u8>,
}

impl Carrier<'_> {
    /// Copies some bytes at `at`, at most `length`.
    fn some(&mut self, at: u64, length: u64) -> Result<u64> {
        if self.buffer.is_empty() {
            let length = usize::try_from(length).unwrap_or(BLOCK);
            match copy_range(self.from, self.to, at, length) {
                Err(Errno::XDEV | Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP | Errno::PERM) => {}
                Err(Errno::INTR) => return self.some(at, length as u64),
                result => return result.map(|count| count as u64),
            }
            self.buffer = vec![0; BLOCK];
        }
        let room = usize::try_from(length).unwrap_or(BLOCK).min(BLOCK);
        let count = retry_on_intr(|| pread(self.from, &mut self.buffer[..room], at))?;
        let mut written = 0;
        while written < count {
            written += retry_on_intr(|| pwrite(self.to, &self.buffer[written..count], at + written as u64))?;
        }
        Ok(count as u64)
    }
}
