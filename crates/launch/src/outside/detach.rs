//! Going to the background: the caller's process waits for one answer, a process of its own goes on.

use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitOptions, setsid, waitpid};

use crate::sys::process::{Side, duplicate_onto, exit_now, fork};

/// Which of the two processes this is.
#[derive(Debug)]
pub enum Role {
    /// The one that was called.
    Caller(Caller),
    /// The one in the background: its own session, no terminal, nothing on its standard streams.
    Background(Background),
}

/// Waits for the answer from the background.
#[derive(Debug)]
pub struct Caller {
    answer: OwnedFd,
}

/// Gives the answer, once. Dropped without one, the caller hears an empty one.
#[derive(Debug)]
pub struct Background {
    answer: OwnedFd,
}

/// Splits this process in two. It must have one thread.
pub fn detach() -> Result<Role, Errno> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    match fork()? {
        Side::Parent(child) => {
            drop(write);
            waitpid(Some(child), WaitOptions::empty())?;
            Ok(Role::Caller(Caller { answer: read }))
        }
        Side::Child => {
            drop(read);
            match leave() {
                Ok(()) => Ok(Role::Background(Background { answer: write })),
                Err(_) => exit_now(125),
            }
        }
    }
}

/// A session of its own, and not as its leader, so that no terminal can become its own by being opened.
fn leave() -> Result<(), Errno> {
    setsid()?;
    if let Side::Parent(_) = fork()? {
        exit_now(0);
    }
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let null = fcntl_dupfd_cloexec(null, 3)?;
    (0..3).try_for_each(|standard| duplicate_onto(null.as_raw_fd(), standard))
}

impl Caller {
    /// The answer. Empty when the other process ended without one.
    pub fn answer(self) -> Vec<u8> {
        let mut answer = Vec::new();
        let _as_far_as_it_goes = std::fs::File::from(self.answer).read_to_end(&mut answer);
        answer
    }
}

impl Background {
    /// Gives the answer; the caller goes on.
    pub fn answer(self, answer: &[u8]) {
        // A caller that is gone needs none.
        std::fs::File::from(self.answer).write_all(answer).unwrap_or_default();
    }
}
