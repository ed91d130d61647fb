//! Which streams a command gets, and what this process has to carry for it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::PollFd;
use rustix::fs::{FileType, Mode, Stat, fchmod, fstat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::geteuid;
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{
    OptionalActions, Termios, Winsize, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

use super::pump::{Flow, Pump};
use crate::wire::Stdio;

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
    /// Looks at the streams of this process.
    pub(super) fn new() -> Result<Self, Errno> {
        let mut wires = Wires::default();
        if isatty(stdin()) && isatty(stdout()) {
            let size = tcgetwinsize(stdin())?;
            if !isatty(stderr()) {
                wires.add(stderr(), Flow::Out)?;
            }
            let errors = wires.handed;
            let wiring = Wiring::Terminal { size, master: None, raw: None, errors };
            return Ok(Self { wiring, pumps: wires.pumps });
        }
        for (stream, flow) in [(stdin(), Flow::In), (stdout(), Flow::Out), (stderr(), Flow::Out)] {
            wires.add(stream, flow)?;
        }
        Ok(Self { wiring: Wiring::Handed(wires.handed), pumps: wires.pumps })
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
                *raw = Some(RawMode::enter()?);
                let copy = |fd: BorrowedFd<'_>| fcntl_dupfd_cloexec(fd, 3);
                self.pumps.push(Pump::new(copy(stdin())?, copy(end.as_fd())?, Flow::In));
                self.pumps.push(Pump::new(copy(end.as_fd())?, copy(stdout())?, Flow::Out));
                *master = Some(end);
            }
        }
        Ok(())
    }

    /// One entry per pump that waits for something, in order.
    pub(super) fn interests(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.pumps.iter().filter_map(Pump::interest)
    }

    /// Lets those pumps go on that poll found ready; `ready` is in the order of [`Self::interests`].
    pub(super) fn carry(&mut self, ready: &[bool]) {
        let waiting = self.pumps.iter_mut().filter(|pump| pump.interest().is_some());
        for (pump, ready) in waiting.zip(ready) {
            if *ready {
                pump.turn();
            }
        }
    }

    /// After the end: everything the command wrote must arrive.
    pub(super) fn finish(&mut self) {
        self.pumps.iter_mut().for_each(Pump::finish);
    }

    /// Follows a change of the window.
    pub(super) fn resize(&self) {
        if let Wiring::Terminal { master: Some(master), .. } = &self.wiring
            && let Ok(size) = tcgetwinsize(stdin())
        {
            let _gone = tcsetwinsize(master, size);
        }
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
        if !isatty(&own) && !is_carried(&found, flow) {
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
        match flow {
            Flow::In => {
                let far_end = fcntl_dupfd_cloexec(&read, 3)?;
                let pump = Pump::new(own, write, Flow::In);
                let seekable = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
                self.pumps.push(if seekable { pump.giving_back(far_end) } else { pump });
                self.handed.push(read);
            }
            Flow::Out => {
                self.pumps.push(Pump::new(read, own, Flow::Out));
                self.handed.push(write);
                self.carried = Some(file);
            }
        }
        Ok(())
    }
}

/// Whether a stream that is no terminal is carried all the same. A file is: whoever has a descriptor of it can
/// change its mode and times, and make a program with the owner's rights of it. So is a disk, which obeys
/// commands. So are the pipes of root, which a command with other ids could not open by name.
fn is_carried(found: &Stat, flow: Flow) -> bool {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile | FileType::BlockDevice => true,
        FileType::Fifo => flow == Flow::Out && geteuid().is_root(),
        _ => false,
    }
}

/// The terminal passes every byte on uninterpreted; put back when dropped.
#[derive(Debug)]
struct RawMode {
    before: Termios,
}

impl RawMode {
    fn enter() -> Result<Self, Errno> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Drain, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _terminal_gone = tcsetattr(stdin(), OptionalActions::Drain, &self.before);
    }
}
