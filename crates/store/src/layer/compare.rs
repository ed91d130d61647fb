//! Telling a changed copy from an unchanged one.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::readlinkat;
use rustix::io::{Errno, Result, retry_on_intr};

use crate::dir::{Kind, Meta, open_file};

const BLOCK: usize = 128 * 1024;

/// A place to find an entry: the directory, its name there, and what it was seen to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) name: &'a [u8],
    pub(super) meta: &'a Meta,
}

/// What a comparison found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Same,
    Different,
    /// The lower side may not be read.
    LowerUnreadable,
    /// The lower side was exchanged between two looks.
    LowerMoved,
}

/// Two buffers, used again for every file.
#[derive(Debug)]
pub(super) struct Comparer {
    ours: Vec<u8>,
    theirs: Vec<u8>,
}

impl Comparer {
    pub(super) fn new() -> Self {
        Self { ours: vec![0; BLOCK], theirs: vec![0; BLOCK] }
    }

    /// Compares an open upper file with a lower one, byte by byte: sizes and times can be made to agree.
    pub(super) fn files(&mut self, upper: &OwnedFd, size: u64, lower: Site<'_>) -> Result<Content> {
        if size != lower.meta.size {
            return Ok(Content::Different);
        }
        let lower = match open_file(lower.dir, lower.name, lower.meta) {
            Err(errno) if super::is_unreadable(errno) => return Ok(Content::LowerUnreadable),
            // Another process holds a lease on the user's file.
            Err(Errno::AGAIN) => return Ok(Content::LowerUnreadable),
            Err(Errno::STALE | Errno::NOENT | Errno::LOOP | Errno::XDEV) => return Ok(Content::LowerMoved),
            result => result?,
        };
        loop {
            let ours = fill(upper.as_fd(), &mut self.ours)?;
            let theirs = fill(lower.as_fd(), &mut self.theirs)?;
            if self.ours[..ours] != self.theirs[..theirs] {
                return Ok(Content::Different);
            }
            if ours == 0 {
                return Ok(Content::Same);
            }
        }
    }
}

/// Whether two symlinks have the same target text.
pub(super) fn links(upper: Site<'_>, lower: Site<'_>) -> Result<Content> {
    let ours = readlinkat(upper.dir, upper.name, Vec::new())?;
    match readlinkat(lower.dir, lower.name, Vec::new()) {
        Ok(theirs) if theirs == ours => Ok(Content::Same),
        Ok(_) => Ok(Content::Different),
        Err(errno) if super::is_unreadable(errno) => Ok(Content::LowerUnreadable),
        Err(Errno::INVAL | Errno::NOENT) => Ok(Content::LowerMoved),
        Err(errno) => Err(errno),
    }
}

/// Whether two special files are the same pipe, socket or device as far as a name can tell.
pub(super) fn specials(upper: &Meta, lower: &Meta) -> Content {
    let is_device = matches!(upper.kind, Kind::Character | Kind::Block);
    if is_device && upper.rdev != lower.rdev { Content::Different } else { Content::Same }
}

fn fill(file: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match retry_on_intr(|| rustix::io::read(file, &mut buffer[filled..]))? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}
