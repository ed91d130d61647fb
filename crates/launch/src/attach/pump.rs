//! Bytes from one descriptor to another, a piece at a time, never blocking on the reading side.

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, ioctl_fionread, read, write};

/// At most this much is written at once: a pipe that polls writable takes it without blocking.
const PIECE: usize = 4096;

/// One direction.
#[derive(Debug)]
pub(super) struct Pump {
    from: Option<OwnedFd>,
    to: Option<OwnedFd>,
    held: VecDeque<u8>,
    flow: Flow,
    /// The far end of the pipe that a file is carried through, to see what was not read of it.
    far_end: Option<OwnedFd>,
}

/// Which way bytes flow, seen from the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    In,
    Out,
}

impl Pump {
    pub(super) fn new(from: OwnedFd, to: OwnedFd, flow: Flow) -> Self {
        Self { from: Some(from), to: Some(to), held: VecDeque::new(), flow, far_end: None }
    }

    /// Puts the file back to where the command stopped reading, so that whoever reads it next misses nothing.
    pub(super) fn giving_back(self, far_end: OwnedFd) -> Self {
        Self { far_end: Some(far_end), ..self }
    }

    /// What to wait for: room when something is held, else something to read.
    pub(super) fn interest(&self) -> Option<PollFd<'_>> {
        match (&self.from, &self.to) {
            (_, Some(to)) if !self.held.is_empty() => Some(PollFd::new(to, PollFlags::OUT)),
            (Some(from), Some(_)) => Some(PollFd::new(from, PollFlags::IN)),
            _ => None,
        }
    }

    /// Does what poll said is possible.
    pub(super) fn turn(&mut self) {
        if self.held.is_empty() {
            self.fill();
        } else {
            self.empty();
        }
        if self.from.is_none() && self.held.is_empty() {
            self.to = None;
        }
    }

    /// After the end of the command: what it wrote is moved on, what it did not read is given back.
    pub(super) fn finish(&mut self) {
        match self.flow {
            Flow::In => self.give_back(),
            Flow::Out => self.drain(),
        }
    }

    fn give_back(&mut self) {
        let Some(far_end) = &self.far_end else { return };
        let unread = ioctl_fionread(far_end).unwrap_or(0) + self.held.len() as u64;
        let back = i64::try_from(unread).unwrap_or(0);
        // At the end of the file `from` is gone, but the position belongs to our own standard input too.
        let _not_seekable = seek(rustix::stdio::stdin(), SeekFrom::Current(-back));
    }

    /// Moves everything that is there now, without waiting for more.
    fn drain(&mut self) {
        while !self.held.is_empty() && self.to.is_some() {
            self.empty();
        }
        while self.readable() {
            self.fill();
            while !self.held.is_empty() && self.to.is_some() {
                self.empty();
            }
        }
    }

    fn readable(&self) -> bool {
        let (Some(from), Some(_)) = (&self.from, &self.to) else { return false };
        let mut fds = [PollFd::new(from, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&at_once)), Ok(ready) if ready > 0)
    }

    fn fill(&mut self) {
        let Some(from) = &self.from else { return };
        let mut piece = [0; PIECE];
        match read(from.as_fd(), &mut piece) {
            // A terminal whose other end is closed answers EIO.
            Ok(0) | Err(Errno::IO) => self.from = None,
            Ok(count) => self.held.extend(&piece[..count]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.from = None,
        }
    }

    fn empty(&mut self) {
        let Some(to) = &self.to else { return };
        let (piece, _) = self.held.as_slices();
        match write(to.as_fd(), &piece[..piece.len().min(PIECE)]) {
            Ok(count) => drop(self.held.drain(..count)),
            Err(Errno::INTR | Errno::AGAIN) => {}
            // Nobody reads any more: what is held is lost, and the command finds out at its next write.
            Err(_) => {
                self.held.clear();
                self.from = None;
                self.to = None;
            }
        }
    }
}
