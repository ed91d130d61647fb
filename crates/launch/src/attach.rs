//! The client's side of one command: asks PID 1 to run it, carries its streams, forwards signals, and waits
//! for its end. `run` and `exec` use the same code.
//!
//! The command never gets a terminal of the host. With a terminal on both standard input and output it
//! gets one of its own and the bytes are carried; otherwise a stream that is a terminal becomes a pipe. Nor
//! does it get a file: its bytes are carried too. A directory is refused, since it leads to the whole host.
//! Other streams (pipes, sockets, devices) are handed over as they are.

mod pump;
mod streams;
mod time;

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::report::Report;
use crate::sys::signal::{next_signal, release_signals, signal_descriptor};
use crate::wire::{self, Ask, Command, StartStep, Status, Tell, WireError};
use streams::Streams;
pub use time::GRACE;
use time::{Clock, Turn};

/// How a command of ours ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It ran.
    Ended(Status),
    /// It ran until its time was up, and was ended.
    TimedOut,
    /// It did not run.
    NotStarted { step: StartStep, cause: Errno },
}

/// Why the end of a command is not known.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error("the sandbox was lost while the command ran")]
    Lost(#[source] WireError),
    /// The sandbox was about to end and did not take the command. It has not run.
    #[error("the sandbox ended before it took the command")]
    NotTaken,
    /// It has not run.
    #[error(
        "standard input, output or error is a directory, which would lead the command out of its sandbox"
    )]
    DirectoryStream,
    #[error("cannot prepare the command's streams")]
    Streams(#[source] Errno),
}

/// What to run; the streams are those of this process.
#[derive(Clone, Debug)]
pub struct Invocation {
    pub argv: Vec<std::ffi::OsString>,
    pub environment: Vec<std::ffi::OsString>,
    pub directory: std::path::PathBuf,
    /// When it is ended, with everything else in the sandbox.
    pub deadline: Option<std::time::Instant>,
}

/// How long a sandbox may take to end after the grace it was given.
const PATIENCE: Duration = Duration::from_secs(10);

/// Signals that are passed on to the command.
const FORWARDED: [i32; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Runs one command over a connection to PID 1. `started` is called when it runs.
pub fn run(
    socket: BorrowedFd<'_>,
    invocation: Invocation,
    started: impl FnOnce(&Report),
) -> Result<Ending, AttachError> {
    let mut streams = Streams::new().map_err(|errno| match errno {
        Errno::ISDIR => AttachError::DirectoryStream,
        errno => AttachError::Streams(errno),
    })?;
    let Invocation { argv, environment, directory, deadline } = invocation;
    let command = Command { argv, environment, directory, stdio: streams.stdio() };
    match wire::send(socket, &Ask::Run(command), &streams.descriptors()) {
        Err(WireError::Io(Errno::PIPE | Errno::CONNRESET)) => return Err(AttachError::NotTaken),
        sent => sent.map_err(AttachError::Lost)?,
    }
    let frame = match wire::receive::<Tell>(socket) {
        Err(WireError::Closed | WireError::Io(Errno::CONNRESET)) => return Err(AttachError::NotTaken),
        received => received.map_err(AttachError::Lost)?,
    };
    match frame.message {
        Tell::Started(report) => {
            started(&report);
            streams.started(frame.descriptors.into_iter().next()).map_err(AttachError::Streams)?;
            carry(socket, &mut streams, Clock::new(deadline))
        }
        Tell::NotStarted { step, errno } => {
            Ok(Ending::NotStarted { step, cause: Errno::from_raw_os_error(errno) })
        }
        _ => Err(AttachError::NotTaken),
    }
}

/// Waits until no other client has a command in the sandbox, or the time of all is up. `waiting` hears how
/// many still have.
pub fn wait_for_others(
    socket: BorrowedFd<'_>,
    deadline: Option<std::time::Instant>,
    mut waiting: impl FnMut(usize),
) {
    let mut clock = Clock::new(deadline);
    loop {
        let mut fds = [PollFd::new(&socket, PollFlags::IN)];
        let ready = poll(&mut fds, clock.left().as_ref());
        match (ready, clock.turn(socket)) {
            (Ok(0) | Err(Errno::INTR), Ok(Turn::On)) => continue,
            (Ok(_), Ok(Turn::On)) => {}
            _ => return,
        }
        match wire::receive::<Tell>(socket).map(|frame| frame.message) {
            Ok(Tell::Others { running: 0 }) | Err(_) => return,
            Ok(Tell::Others { running }) => waiting(running),
            Ok(_) => {}
        }
    }
}

/// Asks the sandbox behind `socket` to end, and waits until it has. One that does not is an error: PID 1 shares
/// its sandbox with a workload that may try to keep it from answering.
pub fn stop(socket: BorrowedFd<'_>, grace: Duration) -> Result<(), WireError> {
    let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
    set_socket_timeout(socket, Timeout::Recv, Some(grace.saturating_add(PATIENCE)))?;
    wire::send(socket, &Ask::Stop { grace_ms }, &[])?;
    loop {
        match wire::receive::<Tell>(socket) {
            Ok(_) => {}
            Err(WireError::Io(errno @ Errno::AGAIN)) => return Err(errno.into()),
            Err(_) => return Ok(()),
        }
    }
}

/// Carries bytes and signals until the command has ended.
fn carry(socket: BorrowedFd<'_>, streams: &mut Streams, mut clock: Clock) -> Result<Ending, AttachError> {
    let mut wanted = FORWARDED.to_vec();
    wanted.push(libc::SIGWINCH);
    let signals = Signals::block(&wanted).map_err(AttachError::Streams)?;
    loop {
        let ready = {
            let mut fds =
                vec![PollFd::new(&socket, PollFlags::IN), PollFd::new(&signals.descriptor, PollFlags::IN)];
            fds.extend(streams.interests());
            match poll(&mut fds, clock.left().as_ref()) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(AttachError::Streams(errno)),
            }
            fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<bool>>()
        };
        if clock.turn(socket).map_err(AttachError::Lost)? == Turn::Over {
            // Whoever still writes would be waited for without end.
            return Ok(Ending::TimedOut);
        }
        streams.carry(&ready[2..]);
        if ready[1] {
            signals.forward(socket, streams).map_err(AttachError::Lost)?;
        }
        if ready[0] {
            match wire::receive::<Tell>(socket).map(|frame| frame.message) {
                Ok(Tell::Ended(status)) => {
                    streams.finish();
                    return Ok(clock.judge(status));
                }
                Ok(_) => {}
                Err(_) if clock.has_rung() => return Ok(Ending::TimedOut),
                Err(error) => return Err(AttachError::Lost(error)),
            }
        }
    }
}

/// Signals taken by this process as data; given back when dropped.
struct Signals {
    descriptor: OwnedFd,
    numbers: Vec<i32>,
}

impl Signals {
    fn block(numbers: &[i32]) -> Result<Self, Errno> {
        Ok(Self { descriptor: signal_descriptor(numbers)?, numbers: numbers.to_vec() })
    }

    fn forward(&self, socket: BorrowedFd<'_>, streams: &Streams) -> Result<(), WireError> {
        while let Some(number) = next_signal(self.descriptor.as_fd()) {
            if number == libc::SIGWINCH {
                streams.resize();
            } else {
                wire::send(socket, &Ask::Signal { number }, &[])?;
            }
        }
        Ok(())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        release_signals(&self.numbers);
    }
}
