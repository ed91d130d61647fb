//! Which streams a command gets, and what this process has to carry for it.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;

use rustix::event::PollFd;
use rustix::fs::{FileType, Mode, OFlags, Stat, fchmod, fstat, fstatfs, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};
use rustix::process::geteuid;
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{Winsize, isatty};
use sandtable_protocol::invocation::{Carrier, Terminal};
use sandtable_protocol::log::{Stream, Writer};
use sandtable_protocol::wire::Stdio;

use super::pump::{self, Flow, Pump, Sink, unblock};
use super::terminal::{self, RawMode};

/// The file system of pipes without a name.
const PIPES: i64 = 0x5049_5045;

/// What a pipe of a command holds: four times the usual, so that less is carried in small pieces. No more: what
/// all pipes of a user hold is limited, and other programs of theirs would get tiny ones.
const ROOM: usize = 256 << 10;

/// The streams of one command.
#[derive(Debug)]
pub(super) struct Streams {
    wiring: Wiring,
    pumps: Vec<Pump>,
}

#[derive(Debug)]
enum Wiring {
    /// Three descriptors that go to the command: our own, or the far ends of pipes.
    Handed(Vec<OwnedFd>),
    /// A terminal inside; its master end once it exists. Standard error goes its own way when it is no
    /// terminal here.
    Terminal { size: Winsize, master: Option<OwnedFd>, raw: Option<RawMode>, errors: Vec<OwnedFd> },
}

impl Streams {
    /// Decides what the command gets.
    pub(super) fn new(carrier: &Carrier) -> Result<Self, Errno> {
        match carrier {
            Carrier::Log(path) => Self::logged(path),
            Carrier::Files { out, err } => Self::filed([out, err]),
            Carrier::Caller(Terminal::Always) => Self::terminal(),
            Carrier::Caller(Terminal::Auto) if isatty(stdin()) && isatty(stdout()) => Self::terminal(),
            Carrier::Caller(_) => Self::own(),
        }
    }

    fn terminal() -> Result<Self, Errno> {
        let mut wires = Wires::default();
        if !isatty(stderr()) {
            wires.add(stderr(), Flow::Out)?;
        }
        let errors = wires.handed;
        let wiring = Wiring::Terminal { size: terminal::size(), master: None, raw: None, errors };
        Ok(Self { wiring, pumps: wires.pumps })
    }

    /// The streams of this process, but never a terminal or a file.
    fn own() -> Result<Self, Errno> {
        let mut wires = Wires::default();
        for (stream, flow) in [(stdin(), Flow::In), (stdout(), Flow::Out), (stderr(), Flow::Out)] {
            wires.add(stream, flow)?;
        }
        Ok(Self { wiring: Wiring::Handed(wires.handed), pumps: wires.pumps })
    }

    /// Nothing to read, and a log for what is written.
    fn logged(path: &Path) -> Result<Self, Errno> {
        let log = Writer::new(path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let log = Rc::new(RefCell::new(log));
        let mut handed = vec![open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?];
        let mut pumps = Vec::new();
        for stream in [Stream::Out, Stream::Err] {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            pumps.push(Pump::new(read, Sink::Log(Rc::clone(&log), stream)));
            handed.push(write);
        }
        Ok(Self { wiring: Wiring::Handed(handed), pumps })
    }

    /// Nothing to read, and a file each for what is written.
    fn filed(paths: [&Path; 2]) -> Result<Self, Errno> {
        let mut handed = vec![open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?];
        let mut pumps = Vec::new();
        for path in paths {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = open(path, flags, Mode::RUSR | Mode::WUSR)?;
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            fchmod(&read, Mode::from_raw_mode(0o666))?;
            pumps.push(Pump::new(read, Sink::Plain(file)));
            handed.push(write);
        }
        Ok(Self { wiring: Wiring::Handed(handed), pumps })
    }

    pub(super) fn stdio(&self) -> Stdio {
        match &self.wiring {
            Wiring::Handed(_) => Stdio::Descriptors,
            Wiring::Terminal { size, .. } => Stdio::Terminal { rows: size.ws_row, columns: size.ws_col },
        }
    }

    /// What is attached to the request.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match &self.wiring {
            Wiring::Handed(three) => three.iter().map(AsFd::as_fd).collect(),
            Wiring::Terminal { errors, .. } => errors.iter().map(AsFd::as_fd).collect(),
        }
    }

    /// The command runs: lets go of what it has now, and connects its terminal with ours.
    pub(super) fn started(&mut self, terminal: Option<OwnedFd>) -> Result<(), Errno> {
        match &mut self.wiring {
            Wiring::Handed(three) => three.clear(),
            Wiring::Terminal { master, raw, errors, .. } => {
                errors.clear();
                let end = terminal.ok_or(Errno::BADF)?;
                *raw = RawMode::enter()?;
                let (here, there) = (fcntl_dupfd_cloexec(stdin(), 3)?, fcntl_dupfd_cloexec(&end, 3)?);
                self.pumps.push(Pump::new(here, Sink::Input(there)));
                let (there, here) = (fcntl_dupfd_cloexec(&end, 3)?, fcntl_dupfd_cloexec(stdout(), 3)?);
                let sink = if isatty(&here) { Sink::Screen(here, Box::default()) } else { Sink::Plain(here) };
                self.pumps.push(Pump::new(there, sink));
                *master = Some(end);
            }
        }
        Ok(())
    }

    /// One entry per pump that waits for something, in order.
    pub(super) fn interests(&self) -> impl Iterator<Item = PollFd<'_>> {
        pump::waiting(&self.pumps).map(|(_, interest)| interest)
    }

    /// Lets those pumps go on that poll found ready; `ready` is in the order of [`Self::interests`].
    pub(super) fn carry(&mut self, ready: &[bool]) {
        pump::carry(&mut self.pumps, ready);
    }

    /// After the end: everything the command wrote must arrive.
    pub(super) fn finish(&mut self) {
        self.outward().for_each(Pump::flush);
        self.pumps.iter_mut().for_each(Pump::finish);
    }

    /// The command stopped: the caller's shell gets its terminal back.
    pub(super) fn pause(&mut self) {
        self.outward().for_each(Pump::flush);
        self.outward().for_each(Pump::drain);
        if let Wiring::Terminal { raw, .. } = &mut self.wiring {
            *raw = None;
        }
    }

    /// The command is about to go on.
    pub(super) fn resume(&mut self) -> Result<(), Errno> {
        if let Wiring::Terminal { raw, .. } = &mut self.wiring {
            *raw = RawMode::enter()?;
        }
        self.resize();
        Ok(())
    }

    /// Follows a change of the window.
    pub(super) fn resize(&self) {
        if let Wiring::Terminal { master: Some(master), .. } = &self.wiring {
            terminal::resize(master);
        }
    }

    pub(super) fn has_terminal(&self) -> bool {
        matches!(self.wiring, Wiring::Terminal { .. })
    }

    /// The pumps that carry output. Input for a command that is gone or stopped goes nowhere.
    fn outward(&mut self) -> impl Iterator<Item = &mut Pump> {
        self.pumps.iter_mut().filter(|pump| pump.is_outward())
    }
}

/// Streams that are being connected.
#[derive(Debug, Default)]
struct Wires {
    handed: Vec<OwnedFd>,
    pumps: Vec<Pump>,
    /// The file behind the last output that is carried: the next one may be the same, and what is written to
    /// both has to arrive in its order.
    carried: Option<(u64, u64)>,
}

impl Wires {
    /// Hands `stream` over, or carries its bytes if the command must not have it itself.
    fn add(&mut self, stream: BorrowedFd<'_>, flow: Flow) -> Result<(), Errno> {
        let own = fcntl_dupfd_cloexec(stream, 3)?;
        let found = fstat(&own)?;
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            return Err(Errno::ISDIR);
        }
        if !isatty(&own) && !is_carried(&own, &found, flow) {
            widen(&own);
            self.handed.push(own);
            return Ok(());
        }
        let file = (found.st_dev, found.st_ino);
        if flow == Flow::Out && self.carried == Some(file) {
            let same = self.handed.last().ok_or(Errno::BADF)?;
            self.handed.push(fcntl_dupfd_cloexec(same, 3)?);
            return Ok(());
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        // So that `/dev/stdout` and its like can be opened by a command with other ids. Who can reach the name
        // of a pipe can reach the pipe.
        fchmod(&read, Mode::from_raw_mode(0o666))?;
        widen(&write);
        match flow {
            Flow::In => {
                let far_end = fcntl_dupfd_cloexec(&read, 3)?;
                unblock(&write)?;
                let pump = Pump::new(own, Sink::Pipe(write));
                let seekable = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
                self.pumps.push(if seekable { pump.giving_back(far_end) } else { pump });
                self.handed.push(read);
            }
            Flow::Out => {
                let screen = isatty(&own);
                let sink = if screen { Sink::Screen(own, Box::default()) } else { Sink::Plain(own) };
                self.pumps.push(Pump::new(read, sink));
                self.handed.push(write);
                self.carried = Some(file);
            }
        }
        Ok(())
    }
}

/// Gives a pipe room, if it is one and has less. A user who has many pipes already may not: the usual size does too.
///
/// The caller's own pipes are widened as well, as the command could do itself. It is in a session of its own, which
/// the kernel schedules as a group of its own, so each change between it and its neighbours costs more than between
/// two programs of one shell; with more room there are fewer of them.
fn widen(stream: &OwnedFd) {
    if fcntl_getpipe_size(stream).is_ok_and(|size| size < ROOM) {
        let _usual_size = fcntl_setpipe_size(stream, ROOM);
    }
}

/// Whether a stream that is no terminal is carried all the same. A file is: whoever has a descriptor of it can
/// change its mode and times, and make a program with the owner's rights of it. So is a disk, which obeys
/// commands. So are the pipes of root that a command with other ids could not open by name.
fn is_carried(stream: &OwnedFd, found: &Stat, flow: Flow) -> bool {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile | FileType::BlockDevice => true,
        FileType::Fifo => flow == Flow::Out && geteuid().is_root() && !can_be_opened(stream),
        _ => false,
    }
}

/// Lets a command with other ids open `/dev/stdout` and its like for writing, which is all it may do with the
/// pipe anyway. A pipe without a name is reached by nobody else; one with a name keeps its mode.
fn can_be_opened(pipe: &OwnedFd) -> bool {
    fstatfs(pipe).is_ok_and(|system| system.f_type == PIPES)
        && fchmod(pipe, Mode::from_raw_mode(0o622)).is_ok()
}

#[cfg(test)]
mod tests {
    use rustix::io::{read, write};
    use rustix::pipe::pipe;

    use super::*;

    /// Reads what has arrived at a terminal.
    fn seen(terminal: &OwnedFd) -> Vec<u8> {
        let mut room = vec![0_u8; 1 << 16];
        let count = read(terminal, &mut room).unwrap_or(0);
        room.truncate(count);
        room
    }

    /// Standard error is in the middle of a long title when the command ends or stops, and standard output has more to say.
    #[test]
    fn what_is_left_of_one_stream_is_never_written_into_a_sequence_of_another() {
        let title = [b"\x1b]2;", vec![b'x'; 10_000].as_slice(), b"\x07"].concat();
        for end in [Streams::finish, Streams::pause] {
            let (terminal, screen) = pipe().unwrap();
            unblock(&terminal).unwrap();
            let saying = |text: &[u8]| {
                let (from, command) = pipe().unwrap();
                assert_eq!(write(&command, text), Ok(text.len()));
                (Pump::new(from, Sink::Screen(screen.try_clone().unwrap(), Box::default())), command)
            };
            let (errors, _command) = saying(&title);
            let mut pumps = vec![errors];
            let mut arrived = Vec::new();
            while arrived.is_empty() {
                pump::carry(&mut pumps, &[true]);
                arrived = seen(&terminal);
            }
            assert!(arrived.len() < title.len(), "the rest is held");
            let (output, _command) = saying(&vec![b'y'; 10_000]);
            pumps.insert(0, output);
            end(&mut Streams { wiring: Wiring::Handed(Vec::new()), pumps });
            arrived.extend(seen(&terminal));
            assert!(arrived.windows(title.len()).any(|piece| piece == title), "the title is whole");
            assert_eq!(arrived.split(|byte| *byte == b'y').count() - 1, 10_000);
        }
    }
}
