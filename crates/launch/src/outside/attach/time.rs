//! The time a command has. When it is up, everything in the sandbox is asked to end, and a little later made
//! to: first by PID 1, and should that not answer, by ending PID 1 itself. PID 1 knows the time as well, for when
//! this process is stopped and hears no bell.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::io::Errno;
use sandtable_protocol::constants::GRACE;
use sandtable_protocol::invocation::Ending;
use sandtable_protocol::wire::{Ask, Status, WireError};

use crate::transport;

/// How much longer PID 1 may take to say that everything is gone.
const PATIENCE: Duration = Duration::from_millis(250);

/// The time until `deadline`.
pub(super) fn left_ms(deadline: Instant) -> u64 {
    u64::try_from(deadline.saturating_duration_since(Instant::now()).as_millis()).unwrap_or(u64::MAX)
}

/// The clock of one command.
#[derive(Debug)]
pub(super) enum Clock {
    /// It has all the time there is.
    Still,
    /// It runs until then.
    Set(Instant),
    /// It was asked to end, and is given up then.
    Rung(Instant),
}

/// Whether to go on waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    On,
    Over,
}

impl Clock {
    pub(super) fn new(deadline: Option<Instant>) -> Self {
        deadline.map_or(Self::Still, Self::Set)
    }

    /// How long may be waited at once.
    pub(super) fn left(&self) -> Option<Timespec> {
        match self {
            Self::Still => None,
            Self::Set(end) | Self::Rung(end) => {
                // Rounded up, so that a wait does not end a moment too early again and again.
                let left = end.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
                let seconds = i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
                Some(Timespec { tv_sec: seconds, tv_nsec: i64::from(left.subsec_nanos()) })
            }
        }
    }

    /// Does what is due by now.
    pub(super) fn turn(&mut self, socket: BorrowedFd<'_>) -> Result<Turn, WireError> {
        let now = Instant::now();
        match *self {
            Self::Set(end) if end <= now => {
                *self = Self::Rung(now + GRACE + PATIENCE);
                let grace_ms = u64::try_from(GRACE.as_millis()).expect("a few seconds");
                match transport::send(socket, &Ask::Stop { grace_ms }, &[]) {
                    // It was earlier than we, who were stopped: what it said before it went is still to be read.
                    Err(WireError::Io(Errno::PIPE | Errno::CONNRESET)) => Ok(Turn::On),
                    sent => sent.map(|()| Turn::On),
                }
            }
            Self::Rung(end) if end <= now => Ok(Turn::Over),
            _ => Ok(Turn::On),
        }
    }

    pub(super) fn has_rung(&self) -> bool {
        matches!(self, Self::Rung(_))
    }

    /// What a command's end means: after the bell it was not its own.
    pub(super) fn judge(&self, status: Status) -> Ending {
        if self.has_rung() { Ending::TimedOut } else { Ending::Ended(status) }
    }
}
