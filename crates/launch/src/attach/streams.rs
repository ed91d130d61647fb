//! Which streams a command gets, and what this process has to carry for it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::PollFd;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{
    OptionalActions, Termios, Winsize, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

use super::pump::Pump;
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
    /// Looks at the streams of this process.
    pub(super) fn new() -> Result<Self, Errno> {
        if isatty(stdin()) && isatty(stdout()) {
            let size = tcgetwinsize(stdin())?;
            return Ok(Self {
                wiring: Wiring::Terminal { size, master: None, raw: None },
                pumps: Vec::new(),
            });
        }
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
                    pumps.push(Pump::new(own, write));
                    handed.push(read);
                }
                Flow::Out => {
                    pumps.push(Pump::new(read, own));
                    handed.push(write);
                }
            }
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
                *raw = Some(RawMode::enter()?);
                self.pumps.push(Pump::new(fcntl_dupfd_cloexec(stdin(), 3)?, fcntl_dupfd_cloexec(&end, 3)?));
                self.pumps.push(Pump::new(fcntl_dupfd_cloexec(&end, 3)?, fcntl_dupfd_cloexec(stdout(), 3)?));
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
        // Input for a command that is gone goes nowhere.
        let outward = match self.wiring {
            Wiring::Terminal { .. } => 1,
            Wiring::Handed(_) => 0,
        };
        self.pumps.iter_mut().skip(outward).for_each(Pump::drain);
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

/// Which way bytes flow.
#[derive(Clone, Copy, Debug)]
enum Flow {
    In,
    Out,
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
