//! The bytes of a file that may be mostly holes and may change while it is read.

use std::io::{self, Read};
use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, pread, retry_on_intr};

/// Smaller files are read without asking for holes.
const SPARSE: u64 = 1 << 20;

/// A file from its beginning to the size it was seen to have, and not further.
pub(super) struct Content<'a> {
    file: BorrowedFd<'a>,
    cancelled: &'a (dyn Fn() -> bool + Sync),
    at: u64,
    size: u64,
    /// Up to here it is known what follows, and whether it is a hole.
    known: u64,
    is_hole: bool,
}

impl<'a> Content<'a> {
    pub(super) fn new(file: BorrowedFd<'a>, size: u64, cancelled: &'a (dyn Fn() -> bool + Sync)) -> Self {
        let known = if size < SPARSE { size } else { 0 };
        Self { file, cancelled, at: 0, size, known, is_hole: false }
    }

    /// Finds out how far the data, or the hole, reaches from here.
    fn look_ahead(&mut self) {
        let end = |found: rustix::io::Result<u64>| match found {
            Ok(offset) => Some(offset),
            Err(Errno::NXIO) => Some(self.size),
            // The file system does not know; then all of it is read.
            Err(_) => None,
        };
        let data = end(seek(self.file, SeekFrom::Data(self.at)));
        (self.known, self.is_hole) = match data {
            None => (self.size, false),
            Some(data) if data > self.at => (data, true),
            Some(_) => (end(seek(self.file, SeekFrom::Hole(self.at))).unwrap_or(self.size), false),
        };
        // A file that changes under us must not stop the reader.
        self.known = self.known.clamp(self.at + 1, self.size);
    }
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.cancelled)() {
            return Err(io::Error::other("cancelled"));
        }
        if self.at >= self.size || buffer.is_empty() {
            return Ok(0);
        }
        if self.at >= self.known {
            self.look_ahead();
        }
        let length = buffer.len().min(usize::try_from(self.known - self.at).unwrap_or(usize::MAX));
        let count = if self.is_hole {
            buffer[..length].fill(0);
            length
        } else {
            retry_on_intr(|| pread(self.file, &mut buffer[..length], self.at))?
        };
        self.at += count as u64;
        Ok(count)
    }
}
