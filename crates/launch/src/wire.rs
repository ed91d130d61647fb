//! How PID 1 and its clients talk: frames over a Unix stream socket, a length and JSON, with descriptors
//! attached to the length.
//!
//! The supervisor is one client, `exec` and `stop` are others. Nothing of the workload speaks this protocol,
//! but a client may be wrong or old: a frame that is too long or does not parse ends the connection.

use std::ffi::OsString;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::container::Terms;
use crate::report::Report;

/// Longest frame: the kernel's own limit on arguments and environment is smaller, even written as JSON.
const LONGEST: usize = 16 << 20;
/// Descriptors one frame can carry; the kernel's limit is 253.
const MOST_DESCRIPTORS: usize = 253;

/// From a client to PID 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// Idmapped mounts, in the order of `Plan::idmapped`, attached as descriptors. Only during set-up.
    Mounts,
    /// What the supervisor found to hold beside what PID 1 reported: a control group, and the ids of a container,
    /// can be seen from outside only. From the supervisor, before its command.
    Limits(Report),
    /// What a container is like, with the socket for further clients and the lock of the layer attached. From
    /// the supervisor, before anything else.
    Adopt(Terms),
    /// Run a command. With `Stdio::Descriptors` three descriptors are attached.
    Run(Command),
    /// Send a signal to the command of this connection, to its whole process group.
    Signal { number: i32 },
    /// End everything: `SIGTERM` now, `SIGKILL` when the grace is over.
    Stop { grace_ms: u64 },
    /// Hold everything still until `Thaw`, or until this connection ends. Three descriptors may be attached, of a
    /// control group to put everything into: `cgroup.procs`, `cgroup.freeze`, `cgroup.events`.
    Freeze,
    /// Let everything go on, as far as this connection is concerned.
    Thaw,
}

/// From PID 1 to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tell", rename_all = "snake_case")]
pub enum Tell {
    /// The user and the network namespace, attached as descriptors: once PID 1 is sealed nobody outside can
    /// open them any more. Only with a way out.
    Namespaces,
    /// The user namespace exists and waits for its id map (root only).
    NeedsIds,
    /// A step of the set-up failed. PID 1 ends after this.
    Failed(Failure),
    /// The set-up is done; this is what holds.
    Ready(Report),
    /// The command runs, in a sandbox of which this holds. With `Stdio::Terminal` the master end is attached.
    Started(Report),
    /// The command could not be started.
    NotStarted { step: StartStep, errno: i32 },
    /// The command of this connection was stopped, as by Ctrl-Z. `Ask::Signal` with `SIGCONT` lets it go on.
    Stopped,
    /// The command ended.
    Ended(Status),
    /// How many commands of other connections still run, after this one's ended.
    Others { running: usize },
    /// Everything is held still.
    Frozen {
        by: FrozenBy,
        /// Whether really nothing moves.
        complete: bool,
    },
    /// It goes on.
    Thawed {
        /// Whether nothing moved until now.
        unbroken: bool,
    },
}

/// How a sandbox is held still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrozenBy {
    /// All but its first process are in a control group that is frozen.
    ControlGroup,
    /// Its first process stopped all others.
    Signals,
}

/// A step of the set-up that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("cannot {step}")]
pub struct Failure {
    /// What was tried, readable after "cannot".
    pub step: String,
    pub errno: i32,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    pub argv: Vec<OsString>,
    /// `NAME=value` pairs: the whole environment.
    pub environment: Vec<OsString>,
    pub directory: PathBuf,
    pub stdio: Stdio,
    /// How long the sandbox may last, from its supervisor: PID 1 ends it then, should nobody else do.
    pub time_ms: Option<u64>,
}

/// What the command talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stdio", rename_all = "snake_case")]
pub enum Stdio {
    /// Three descriptors of the client.
    Descriptors,
    /// A new terminal inside the sandbox. One descriptor may be attached: standard error.
    Terminal { rows: u16, columns: u16 },
}

/// What went wrong before a command ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartStep {
    /// Its directory could not be entered.
    Directory,
    /// It could not be executed.
    Program,
    /// No process or terminal could be made for it.
    Process,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Status {
    Exited { code: i32 },
    Signalled { number: i32 },
}

/// Why a frame could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("the other end closed the connection")]
    Closed,
    #[error("a frame of {0} bytes is too long")]
    TooLong(usize),
    #[error("a frame is not understood")]
    Malformed(#[source] serde_json::Error),
    #[error("the connection failed")]
    Io(#[from] Errno),
}

/// A frame and the descriptors that came with it.
#[derive(Debug)]
pub struct Frame<T> {
    pub message: T,
    pub descriptors: Vec<OwnedFd>,
}

/// Sends one frame.
pub fn send<T: Serialize>(
    socket: impl AsFd,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), WireError> {
    let body = serde_json::to_vec(message).map_err(WireError::Malformed)?;
    let length = u32::try_from(body.len())
        .ok()
        .filter(|_| body.len() <= LONGEST)
        .ok_or(WireError::TooLong(body.len()))?;
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(
            ancillary.push(SendAncillaryMessage::ScmRights(descriptors)),
            "at most {MOST_DESCRIPTORS} descriptors"
        );
    }
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend_from_slice(&body);
    let mut sent = retry(|| sendmsg(&socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL))?;
    while sent < bytes.len() {
        sent += retry(|| rustix::net::send(&socket, &bytes[sent..], SendFlags::NOSIGNAL))?;
    }
    Ok(())
}

/// Receives one frame; waits for it.
pub fn receive<T: DeserializeOwned>(socket: impl AsFd) -> Result<Frame<T>, WireError> {
    let mut header = [0_u8; 4];
    let mut descriptors = Vec::new();
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = retry(|| {
        recvmsg(&socket, &mut [IoSliceMut::new(&mut header)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    if got.bytes == 0 {
        return Err(WireError::Closed);
    }
    fill(&socket, &mut header[got.bytes..])?;
    let length = u32::from_le_bytes(header) as usize;
    if length > LONGEST {
        return Err(WireError::TooLong(length));
    }
    let mut body = vec![0_u8; length];
    fill(&socket, &mut body)?;
    let message = serde_json::from_slice(&body).map_err(WireError::Malformed)?;
    Ok(Frame { message, descriptors })
}

fn fill(socket: &impl AsFd, mut rest: &mut [u8]) -> Result<(), WireError> {
    while !rest.is_empty() {
        let (got, _) = retry(|| rustix::net::recv(socket, &mut *rest, RecvFlags::empty()))?;
        if got == 0 {
            return Err(WireError::Closed);
        }
        rest = &mut rest[got..];
    }
    Ok(())
}

fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    rustix::io::retry_on_intr(&mut call)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_frame_arrives_with_its_descriptors_and_odd_bytes() {
        let (here, there) = UnixStream::pair().expect("a socket pair");
        let ask = Ask::Run(Command {
            argv: vec![OsString::from_vec(b"\xff\n".to_vec())],
            environment: vec![OsString::from("A=b")],
            directory: PathBuf::from("/"),
            stdio: Stdio::Descriptors,
            time_ms: Some(7),
        });
        send(&here, &ask, &[here.as_fd(), there.as_fd()]).expect("sent");
        let frame: Frame<Ask> = receive(&there).expect("received");
        assert_eq!(frame.message, ask);
        assert_eq!(frame.descriptors.len(), 2);
    }

    #[test]
    fn a_long_or_broken_frame_is_an_error() {
        use std::io::Write as _;
        let (mut here, there) = UnixStream::pair().expect("a socket pair");
        here.write_all(&u32::MAX.to_le_bytes()).expect("written");
        assert!(matches!(receive::<Ask>(&there), Err(WireError::TooLong(_))));
        here.write_all(&2_u32.to_le_bytes()).expect("written");
        here.write_all(b"{}").expect("written");
        assert!(matches!(receive::<Ask>(&there), Err(WireError::Malformed(_))));
        drop(here);
        assert!(matches!(receive::<Ask>(&there), Err(WireError::Closed)));
    }
}
