//! The client's side of one command: asks PID 1 to run it, carries its streams, forwards signals, and waits
//! for its end. `run` and `exec` use the same code.
//!
//! The command never gets a terminal of the host. With a terminal on both standard input and output it
//! gets one of its own and the bytes are carried, what it writes through a filter; otherwise a stream that
//! is a terminal becomes a pipe. Nor does it get a file: its bytes are carried too. A directory is refused,
//! since it leads to the whole host. Other streams (pipes, sockets, devices) are handed over as they are.
//!
//! When the command stops, as after Ctrl-Z, this process puts the terminal back and stops as well; when it
//! goes on, so does the command.

mod filter;
mod freeze;
mod pump;
mod streams;
mod terminal;
mod time;

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::process::{Resource, getrlimit};
use sandtable_protocol::invocation::{AttachError, Ending, Invocation};
use sandtable_protocol::report::Report;
use sandtable_protocol::wire::{Ask, Command, Tell, WireError};

use crate::sys::signal::{ignore_signals, next_signal, release_signals, signal_descriptor};
use crate::transport;
pub use freeze::{Frozen, freeze};
use streams::Streams;
pub use terminal::restore as restore_terminal;
use terminal::{Who, suspend};
use time::{Clock, Turn};

/// Signals that are passed on to the command as they are, and those that this process acts on.
const TAKEN: [i32; 9] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGTSTP,
    libc::SIGCONT,
];
/// Signals that end the wait for others.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// How long a signal waits for the command that it may be meant for.
const MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
/// How long a sandbox may take to end after the grace it was given.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs one command over a connection to PID 1. `started` is called when it runs.
pub fn run(
    socket: BorrowedFd<'_>,
    invocation: Invocation,
    started: impl FnOnce(&Report),
) -> Result<Ending, AttachError> {
    let mut streams = Streams::new(&invocation.carrier).map_err(|errno| match errno {
        Errno::ISDIR => AttachError::DirectoryStream,
        errno => AttachError::Streams(errno),
    })?;
    let Invocation { argv, environment, directory, deadline, .. } = invocation;
    let time_ms = deadline.map(time::left_ms);
    let descriptors = getrlimit(Resource::Nofile).maximum;
    let stdio = streams.stdio();
    let command = Command { argv, environment, directory, stdio, time_ms, descriptors };
    // Before the command can run, and before `started`, which may make threads: theirs would be the ones to get a
    // signal otherwise.
    let signals = Signals::block(&TAKEN).map_err(AttachError::Streams)?;
    match transport::send(socket, &Ask::Run(command), &streams.descriptors()) {
        Err(WireError::Io(Errno::PIPE | Errno::CONNRESET)) => return Err(AttachError::NotTaken),
        Err(WireError::Io(errno @ Errno::TOOMANYREFS)) => return Err(AttachError::Crowded(errno)),
        sent => sent.map_err(AttachError::Lost)?,
    }
    let signals = answered(socket, signals).map_err(AttachError::Streams)?;
    let frame = match transport::receive::<Tell>(socket) {
        Err(WireError::Closed | WireError::Io(Errno::CONNRESET)) => return Err(AttachError::NotTaken),
        received => received.map_err(AttachError::Lost)?,
    };
    match frame.message {
        Tell::Started(report) => {
            started(&report);
            streams.started(frame.descriptors.into_iter().next()).map_err(AttachError::Streams)?;
            Client { socket, signals, streams, clock: Clock::new(deadline) }.carry()
        }
        Tell::NotStarted { step, errno } => {
            Ok(Ending::NotStarted { step, cause: Errno::from_raw_os_error(errno) })
        }
        _ => Err(AttachError::NotTaken),
    }
}

/// Waits until PID 1 answers. A signal that comes earlier is for the command if that runs a moment later; else it
/// has its usual effect on this process, so that nobody is kept waiting by a sandbox that holds still.
fn answered(socket: BorrowedFd<'_>, mut signals: Signals) -> Result<Signals, Errno> {
    loop {
        let mut fds = [PollFd::new(&socket, PollFlags::IN), PollFd::new(&signals.descriptor, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let (answer, signal) = (fds[0].revents(), fds[1].revents());
        if !answer.is_empty() {
            return Ok(signals);
        }
        if !signal.is_empty() {
            let mut fds = [PollFd::new(&socket, PollFlags::IN)];
            if matches!(poll(&mut fds, Some(&MOMENT)), Ok(1..)) {
                return Ok(signals);
            }
            drop(signals);
            signals = Signals::block(&TAKEN)?;
        }
    }
}

/// Waits until no other client has a command in the sandbox, or the time of all is up. `waiting` hears how
/// many still have. A signal that would end this process ends the wait instead, and with it what still runs.
pub fn wait_for_others(socket: BorrowedFd<'_>, deadline: Option<Instant>, mut waiting: impl FnMut(usize)) {
    let Ok(signals) = Signals::block(&ENDING) else { return };
    let mut clock = Clock::new(deadline);
    loop {
        let mut fds = [PollFd::new(&socket, PollFlags::IN), PollFd::new(&signals.descriptor, PollFlags::IN)];
        if let Err(errno) = poll(&mut fds, clock.left().as_ref())
            && errno != Errno::INTR
        {
            return;
        }
        let signalled = next_signal(signals.descriptor.as_fd()).is_some();
        if signalled || !matches!(clock.turn(socket), Ok(Turn::On)) {
            return;
        }
        if !is_readable(socket) {
            continue;
        }
        match transport::receive::<Tell>(socket).map(|frame| frame.message) {
            Ok(Tell::Others { running: 0 }) | Err(_) => return,
            Ok(Tell::Others { running }) => waiting(running),
            Ok(_) => {}
        }
    }
}

/// Tells PID 1, as its supervisor, what else holds, for the reports of other clients.
pub fn add_to_report(socket: BorrowedFd<'_>, found: &Report) -> Result<(), WireError> {
    transport::send(socket, &Ask::Limits(found.clone()), &[])
}

/// Makes a write beyond the limit on the size of files an error, not the end of this process. Commands in a sandbox start
/// with the usual signals.
pub fn outlive_file_limits() {
    ignore_signals(&[libc::SIGXFSZ]);
}

/// Asks the sandbox behind `socket` to end, and waits until it has. One that does not is an error: PID 1 shares
/// its sandbox with a workload that may try to keep it from answering.
pub fn stop(socket: BorrowedFd<'_>, grace: Duration) -> Result<(), WireError> {
    let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
    set_socket_timeout(socket, Timeout::Recv, Some(grace.saturating_add(PATIENCE)))?;
    transport::send(socket, &Ask::Stop { grace_ms }, &[])?;
    loop {
        match transport::receive::<Tell>(socket) {
            Ok(_) => {}
            Err(WireError::Io(errno @ Errno::AGAIN)) => return Err(errno.into()),
            Err(_) => return Ok(()),
        }
    }
}

/// A command that runs, and what is carried for it.
struct Client<'socket> {
    socket: BorrowedFd<'socket>,
    signals: Signals,
    streams: Streams,
    clock: Clock,
}

impl Client<'_> {
    /// Carries bytes and signals until the command has ended.
    fn carry(mut self) -> Result<Ending, AttachError> {
        loop {
            let ready = self.wait().map_err(AttachError::Streams)?;
            if self.clock.turn(self.socket).map_err(AttachError::Lost)? == Turn::Over {
                // Whoever still writes would be waited for without end.
                return Ok(Ending::TimedOut);
            }
            self.streams.carry(ready.get(2..).unwrap_or_default());
            if ready.get(1) == Some(&true) {
                self.forward()?;
            }
            if ready.first() == Some(&true) {
                match transport::receive::<Tell>(self.socket).map(|frame| frame.message) {
                    Ok(Tell::Ended(status)) => {
                        self.streams.finish();
                        return Ok(self.clock.judge(status));
                    }
                    Ok(Tell::Stopped) => self.stop(Who::Group)?,
                    Ok(_) => {}
                    Err(_) if self.clock.has_rung() => return Ok(Ending::TimedOut),
                    Err(error) => return Err(AttachError::Lost(error)),
                }
            }
        }
    }

    /// What is ready: the connection, a signal, then the streams. Empty when the wait was broken off.
    fn wait(&self) -> Result<Vec<bool>, Errno> {
        let mut fds = vec![
            PollFd::new(&self.socket, PollFlags::IN),
            PollFd::new(&self.signals.descriptor, PollFlags::IN),
        ];
        fds.extend(self.streams.interests());
        match poll(&mut fds, self.clock.left().as_ref()) {
            Ok(_) => Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect()),
            Err(Errno::INTR) => Ok(Vec::new()),
            Err(errno) => Err(errno),
        }
    }

    fn forward(&mut self) -> Result<(), AttachError> {
        while let Some(number) = next_signal(self.signals.descriptor.as_fd()) {
            match number {
                libc::SIGWINCH => self.streams.resize(),
                // Without a terminal of its own the command would ignore this one: its group has no shell.
                libc::SIGTSTP if !self.streams.has_terminal() => {
                    self.signal(libc::SIGSTOP)?;
                    self.stop(Who::Ourselves)?;
                }
                libc::SIGCONT => {}
                number => self.signal(number)?,
            }
        }
        Ok(())
    }

    /// Stops with the command, and lets it go on when we do.
    fn stop(&mut self, who: Who) -> Result<(), AttachError> {
        self.streams.pause();
        suspend(who);
        // Ended in the meantime: the terminal may be somebody else's by now.
        if is_readable(self.socket) {
            return Ok(());
        }
        self.streams.resume().map_err(AttachError::Streams)?;
        self.signal(libc::SIGCONT)
    }

    fn signal(&self, number: i32) -> Result<(), AttachError> {
        transport::send(self.socket, &Ask::Signal { number }, &[]).map_err(AttachError::Lost)
    }
}

fn is_readable(socket: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&socket, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&at_once)), Ok(ready) if ready > 0)
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
}

impl Drop for Signals {
    fn drop(&mut self) {
        release_signals(&self.numbers);
    }
}
