//! A process of our own executable that acts for this one, because it has one thread and this one may have many.
//!
//! Caller and delegate share a socket. It is the delegate's standard input until the request has arrived, because that is
//! a descriptor that a process with threads can hand over without any other child inheriting it. The input that the
//! delegate is to have comes attached to the request and takes its place.

use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stdin};
use sandtable_protocol::wire::WireError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::transport::{self, Frame};

/// One end of the connection between a caller and its delegate.
#[derive(Debug)]
pub struct Line(OwnedFd);

impl Line {
    pub fn send<T: Serialize>(&self, message: &T) -> Result<(), WireError> {
        transport::send(&self.0, message, &[])
    }

    /// Waits for the next message.
    pub fn receive<T: DeserializeOwned>(&self) -> Result<T, WireError> {
        transport::receive(&self.0).map(|frame| frame.message)
    }

    /// Ends the connection for both ends and for every thread that waits on it.
    pub fn close(&self) {
        // One that is closed already cannot be closed again.
        let _closed = shutdown(&self.0, Shutdown::Both);
    }

    /// Whether the other end is closed, as far as nothing else arrives.
    pub fn is_closed(&self) -> bool {
        let look = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        rustix::io::retry_on_intr(|| recv(&self.0, &mut [0_u8], look)).is_ok_and(|(got, _)| got == 0)
    }

    /// Waits until the other end is closed. Whatever else arrives is dropped.
    pub fn closed(&self) {
        let mut byte = [0_u8];
        while rustix::io::retry_on_intr(|| recv(&self.0, &mut byte, RecvFlags::empty()))
            .is_ok_and(|(got, _)| got > 0)
        {}
    }
}

/// Starts `command`, which must call [`accept`], and sends it `request`. Its standard output and standard error are those
/// of `command`; its input is `input`, or nothing.
pub fn start<T: Serialize + fmt::Debug>(
    mut command: Command,
    input: Option<OwnedFd>,
    request: &T,
) -> io::Result<(Child, Line)> {
    let (here, there) = UnixStream::pair()?;
    let input = match input {
        Some(input) => input,
        None => nothing()?,
    };
    let mut child = command.stdin(Stdio::from(OwnedFd::from(there))).spawn()?;
    // The command holds a copy of the other end, which would keep the connection open.
    drop(command);
    let line = Line(here.into());
    match transport::send(&line.0, request, &[input.as_fd()]) {
        Ok(()) => Ok((child, line)),
        Err(error) => {
            drop(line);
            child.wait()?;
            Err(io::Error::other(error))
        }
    }
}

/// Takes over from the caller: the connection, and what was asked for.
pub fn accept<T: DeserializeOwned>() -> Result<(Line, T), WireError> {
    let line = fcntl_dupfd_cloexec(stdin(), 3)?;
    let Frame { message, descriptors } = transport::receive(&line)?;
    let input = descriptors.into_iter().next().ok_or(WireError::Closed)?;
    dup2_stdin(&input)?;
    Ok((Line(line), message))
}

/// Lets go of standard output and standard error: who reads them comes to their end once nobody else has them.
pub fn release_output() -> io::Result<()> {
    let nothing = nothing()?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    Ok(())
}

fn nothing() -> io::Result<OwnedFd> {
    Ok(open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}
