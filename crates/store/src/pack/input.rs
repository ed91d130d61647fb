//! A stretch of a file, read from its start on without moving the file's own position.

use std::io;
use std::os::unix::fs::FileExt as _;

use super::EntryError;

/// Enough for the header and the whole of most objects. Each read is twice as large as the one before, so that at most
/// about as much again is read as is needed.
const FIRST: usize = 4 << 10;
const MOST: usize = 64 << 10;
/// Enough for the header and the start of a delta.
const LITTLE: usize = 256;

pub(super) struct Input<'a> {
    file: &'a std::fs::File,
    /// Where the file is read next, and where it must not be read any more.
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    used: usize,
    /// How much is read next.
    stride: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(file: &'a std::fs::File, at: u64, end: u64) -> Self {
        Self { file, next: at, end, buffer: Vec::new(), used: 0, stride: FIRST }
    }

    /// For one who only wants to know how an entry begins.
    pub(super) fn little(file: &'a std::fs::File, at: u64, end: u64) -> Self {
        Self { stride: LITTLE, ..Self::new(file, at, end) }
    }

    /// Where the next byte stands in the file.
    pub(super) fn position(&self) -> u64 {
        self.next - (self.buffer.len() - self.used) as u64
    }

    /// How many bytes there can be at most.
    pub(super) fn remaining(&self) -> u64 {
        self.end.saturating_sub(self.position())
    }

    /// Some bytes that were not consumed; none at the end.
    pub(super) fn chunk(&mut self) -> io::Result<&[u8]> {
        if self.used == self.buffer.len() {
            let size = self.end.saturating_sub(self.next).min(self.stride as u64);
            self.stride = (2 * self.stride).clamp(FIRST, MOST);
            self.buffer.resize(usize::try_from(size).expect("at most a block"), 0);
            let count = self.read()?;
            self.buffer.truncate(count);
            self.used = 0;
            self.next += count as u64;
        }
        Ok(&self.buffer[self.used..])
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.used += count;
        debug_assert!(self.used <= self.buffer.len());
    }

    pub(super) fn byte(&mut self) -> Result<u8, EntryError> {
        let byte = self.chunk()?.first().copied().ok_or_else(|| EntryError::damaged("it is cut off"))?;
        self.consume(1);
        Ok(byte)
    }

    pub(super) fn bytes(&mut self, buffer: &mut [u8]) -> Result<(), EntryError> {
        buffer.iter_mut().try_for_each(|byte| {
            *byte = self.byte()?;
            Ok(())
        })
    }

    fn read(&mut self) -> io::Result<usize> {
        loop {
            match self.file.read_at(&mut self.buffer, self.next) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}
