//! Which streams a command gets, and what this process has to carry for it.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;

use rustix::event::PollFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{Winsize, isatty};

use super::pump::{Pump, Sink};
use super::terminal::{self, RawMode};
use super::{Carrier, Terminal};
use crate::log::{Stream, Writer};
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
    /// A terminal inside; its master end once it exists.
    Terminal { size: Winsize, master: Option<OwnedFd>, raw: Option<RawMode> },
}

impl Streams {
    /// Decides what the command gets.
    pub(super) fn new(carrier: &Carrier) -> Result<Self, Errno> {
        match carrier {
            Carrier::Log(path) => Self::logged(path),
            Carrier::Caller(Terminal::Always) => Ok(Self::terminal()),
            Carrier::Caller(Terminal::Auto) if isatty(stdin()) && isatty(stdout()) => Ok(Self::terminal()),
            Carrier::Caller(_) => Self::own(),
        }
    }

    fn terminal() -> Self {
        let wiring = Wiring::Terminal { size: terminal::size(), master: None, raw: None };
        Self { wiring, pumps: Vec::new() }
    }

    /// The streams of this process, but never a terminal.
    fn own() -> Result<Self, Errno> {
        let mut pumps = Vec::new();
        let mut handed = Vec::new();
        for (stream, flow) in [(stdin(), Flow::In), (stdout(), Flow::Out), (stderr(), Flow::Out)] {
            let own = fcntl_dupfd_cloexec(stream, 3)?;
            if !isatty(&own) {
                handed.push(own);
                continue;
            }
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            match flow {
                Flow::In => {
                    pumps.push(Pump::new(own, Sink::Pipe(write)));
                    handed.push(read);
                }
                Flow::Out => {
                    pumps.push(Pump::new(read, Sink::Screen(own, Box::default())));
                    handed.push(write);
                }
            }
        }
        Ok(Self { wiring: Wiring::Handed(handed), pumps })
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
            Wiring::Terminal { .. } => Vec::new(),
        }
    }

    /// The command runs: lets go of what it has now, and connects its terminal with ours.
    pub(super) fn started(&mut self, terminal: Option<OwnedFd>) -> Result<(), Errno> {
        match &mut self.wiring {
            Wiring::Handed(three) => three.clear(),
            Wiring::Terminal { master, raw, .. } => {
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
    pub(super) fn drain(&mut self) {
        for pump in self.outward() {
            pump.drain();
            pump.close();
        }
    }

    /// The command stopped: the caller's shell gets its terminal back.
    pub(super) fn pause(&mut self) {
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

/// Which way bytes flow.
#[derive(Clone, Copy, Debug)]
enum Flow {
    In,
    Out,
}
