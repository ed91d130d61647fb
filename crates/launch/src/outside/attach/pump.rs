//! Bytes from one descriptor to another, a piece at a time, never blocking on the reading side.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, SeekFrom, fcntl_setfl, seek};
use rustix::io::{Errno, ioctl_fionread, read, write};
use rustix::pipe::{SpliceFlags, splice};
use sandtable_protocol::log::{Stream, Writer};

use super::filter::Filter;

/// At most this much is written at once to what may block: a pipe that polls writable takes it without.
const PIECE: usize = 4096;
/// At most this much is read at once for what cannot block us, a log or the command's input.
const CHUNK: usize = 128 << 10;
/// At most this much is moved by the kernel at once.
const BULK: usize = 1 << 20;
/// More than a pipe or a terminal can hold: what comes after is written by somebody who goes on writing.
const LAST: usize = 2 << 20;
/// Ctrl-D.
const END_OF_INPUT: u8 = 4;

/// One direction.
#[derive(Debug)]
pub(super) struct Pump {
    from: Option<OwnedFd>,
    to: Option<Sink>,
    held: VecDeque<u8>,
    /// Where a piece is read to.
    room: Vec<u8>,
    last: u8,
    bulk: Bulk,
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

/// Whether the kernel moves the bytes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bulk {
    Yes,
    /// It would, but the other end is full.
    NoRoom,
    No,
}

/// Makes the end of a pipe that nobody else has answer at once when there is no room.
pub(super) fn unblock(end: &OwnedFd) -> Result<(), Errno> {
    fcntl_setfl(end, OFlags::NONBLOCK)
}

/// Where bytes go.
#[derive(Debug)]
pub(super) enum Sink {
    /// The command's input, closed when there is no more. It does not block: see [`unblock`].
    Pipe(OwnedFd),
    /// The input of the command's terminal, which is told of the end by Ctrl-D.
    Input(OwnedFd),
    /// A stream of the caller that is no terminal.
    Plain(OwnedFd),
    /// A terminal of the caller.
    Screen(OwnedFd, Box<Filter>),
    Log(Rc<RefCell<Writer>>, Stream),
}

impl Sink {
    fn descriptor(&self) -> Option<&OwnedFd> {
        match self {
            Self::Pipe(fd) | Self::Input(fd) | Self::Plain(fd) | Self::Screen(fd, _) => Some(fd),
            Self::Log(..) => None,
        }
    }
}

/// The pumps that wait for something, in order. Of those that write to a terminal one goes on until it has written all that
/// it holds, which ends outside of any control sequence: what another one writes never comes to lie within one.
pub(super) fn waiting(pumps: &[Pump]) -> impl Iterator<Item = (usize, PollFd<'_>)> {
    let writer = pumps.iter().position(|pump| pump.is_screen() && !pump.held.is_empty());
    pumps.iter().enumerate().filter_map(move |(number, pump)| {
        let may = writer.is_none_or(|writer| writer == number) || !pump.is_screen();
        pump.interest().filter(|_| may).map(|interest| (number, interest))
    })
}

/// Lets those go on that poll found ready; `ready` is in the order of [`waiting`].
pub(super) fn carry(pumps: &mut [Pump], ready: &[bool]) {
    let numbers: Vec<usize> = waiting(pumps).map(|(number, _)| number).collect();
    for (number, _) in numbers.into_iter().zip(ready).filter(|(_, ready)| **ready) {
        pumps[number].turn();
    }
}

impl Pump {
    pub(super) fn new(from: OwnedFd, to: Sink) -> Self {
        let bulk = if matches!(to, Sink::Plain(_)) { Bulk::Yes } else { Bulk::No };
        let flow = if matches!(to, Sink::Pipe(_) | Sink::Input(_)) { Flow::In } else { Flow::Out };
        let (held, room) = (VecDeque::new(), Vec::new());
        Self { from: Some(from), to: Some(to), held, room, last: b'\n', bulk, flow, far_end: None }
    }

    /// Puts the file back to where the command stopped reading, so that whoever reads it next misses nothing.
    pub(super) fn giving_back(self, far_end: OwnedFd) -> Self {
        Self { far_end: Some(far_end), ..self }
    }

    /// What to wait for: room when something is held, else something to read.
    fn interest(&self) -> Option<PollFd<'_>> {
        match (&self.from, &self.to) {
            (_, Some(to)) if !self.held.is_empty() || self.bulk == Bulk::NoRoom => {
                to.descriptor().map(|to| PollFd::new(to, PollFlags::OUT))
            }
            (Some(from), Some(_)) => Some(PollFd::new(from, PollFlags::IN)),
            _ => None,
        }
    }

    /// Whether it carries what the command writes.
    pub(super) fn is_outward(&self) -> bool {
        self.flow == Flow::Out
    }

    fn is_screen(&self) -> bool {
        matches!(self.to, Some(Sink::Screen(..)))
    }

    /// Does what poll said is possible.
    fn turn(&mut self) {
        if self.bulk == Bulk::NoRoom {
            self.bulk = Bulk::Yes;
            self.fill();
        } else if self.held.is_empty() {
            self.fill();
            if self.chunk() == CHUNK {
                // What does not block need not be asked first.
                self.empty();
            }
        } else {
            self.empty();
        }
        if self.from.is_none() && self.held.is_empty() {
            self.close();
        }
    }

    /// After the end of the command: what it wrote is moved on, what it did not read is given back.
    pub(super) fn finish(&mut self) {
        if self.is_outward() {
            self.drain();
            self.close();
        } else {
            self.give_back();
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
    pub(super) fn drain(&mut self) {
        self.bulk = Bulk::No;
        self.flush();
        let mut moved = 0;
        while moved < LAST && self.readable() {
            moved += self.fill();
            self.flush();
        }
    }

    /// After the last byte: a screen is put back into the state that a shell expects.
    pub(super) fn close(&mut self) {
        if let Some(Sink::Screen(_, filter)) = &mut self.to {
            self.held.extend(filter.closing());
            self.flush();
        }
        self.to = None;
    }

    pub(super) fn flush(&mut self) {
        while !self.held.is_empty() && self.to.is_some() {
            self.empty();
        }
    }

    fn readable(&self) -> bool {
        let (Some(from), Some(_)) = (&self.from, &self.to) else { return false };
        let mut fds = [PollFd::new(from, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&at_once)), Ok(ready) if ready > 0)
    }

    /// Lets the kernel move what is there, where it can.
    fn splice(&mut self) -> bool {
        let (Some(from), Some(Sink::Plain(to)), Bulk::Yes) = (&self.from, &self.to, self.bulk) else {
            return false;
        };
        match splice(from, None, to, None, BULK, SpliceFlags::NONBLOCK) {
            Ok(0) => self.from = None,
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => self.bulk = Bulk::NoRoom,
            // Not between these two: a terminal, or a file that is only added to.
            Err(Errno::INVAL) => {
                self.bulk = Bulk::No;
                return false;
            }
            Err(_) => {
                self.from = None;
                self.to = None;
            }
        }
        true
    }

    fn fill(&mut self) -> usize {
        if self.splice() {
            return 0;
        }
        let Some(from) = &self.from else { return 0 };
        self.room.resize(self.chunk(), 0);
        match read(from.as_fd(), &mut self.room) {
            Ok(count) if count > 0 => {
                self.take(count);
                return count;
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // A terminal whose other end is closed answers EIO.
            _ => {
                self.from = None;
                self.end();
            }
        }
        0
    }

    /// How much is read and written at once.
    fn chunk(&self) -> usize {
        if matches!(self.to, Some(Sink::Pipe(_) | Sink::Log(..))) { CHUNK } else { PIECE }
    }

    fn take(&mut self, count: usize) {
        let piece = &self.room[..count];
        self.last = piece.last().copied().unwrap_or(self.last);
        match &mut self.to {
            Some(Sink::Screen(_, filter)) => self.held.extend(filter.pass(piece)),
            // A log that cannot be written must not stop the command.
            Some(Sink::Log(log, stream)) => log.borrow_mut().write(*stream, piece).unwrap_or_default(),
            _ => self.held.extend(piece),
        }
    }

    /// In the middle of a line the first Ctrl-D only ends the line.
    fn end(&mut self) {
        if let Some(Sink::Input(_)) = self.to {
            self.held.extend(std::iter::repeat_n(END_OF_INPUT, if self.last == b'\n' { 1 } else { 2 }));
        }
    }

    fn empty(&mut self) {
        let most = self.chunk();
        let Some(to) = self.to.as_ref().and_then(Sink::descriptor) else { return self.held.clear() };
        let (piece, _) = self.held.as_slices();
        match write(to.as_fd(), &piece[..piece.len().min(most)]) {
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

#[cfg(test)]
mod tests {
    use rustix::pipe::pipe;

    use super::*;

    /// Both streams are the caller's terminal. The title of the first is longer than what is written at once.
    #[test]
    fn a_stream_never_writes_into_a_sequence_of_another() {
        let (terminal, screen) = pipe().unwrap();
        unblock(&terminal).unwrap();
        let title = [b"\x1b]2;", vec![b'x'; 10_000].as_slice(), b"\x07"].concat();
        let texts = [title.clone(), vec![b'y'; 10_000]];
        let mut pumps: Vec<Pump> = Vec::new();
        for text in &texts {
            let (from, command) = pipe().unwrap();
            assert_eq!(write(&command, text), Ok(text.len()));
            let screen = Sink::Screen(screen.try_clone().unwrap(), Box::default());
            pumps.push(Pump::new(from, screen));
        }
        let mut seen: Vec<u8> = Vec::new();
        while waiting(&pumps).next().is_some() {
            let count = waiting(&pumps).count();
            carry(&mut pumps, &vec![true; count]);
            let mut room = vec![0_u8; 1 << 16];
            let arrived = read(&terminal, &mut room).unwrap_or(0);
            seen.extend(&room[..arrived]);
        }
        let of = |byte: u8| seen.split(|found| *found == byte).count() - 1;
        assert_eq!((of(b'x'), of(b'y')), (10_000, 10_000));
        assert!(seen.windows(title.len()).any(|piece| piece == title), "the title is whole");
    }
}
