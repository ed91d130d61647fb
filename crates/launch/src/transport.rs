//! Frames on their way over a Unix stream socket. Descriptors are attached to the length.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recvmsg, sendmsg, socket_with,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use serde::de::DeserializeOwned;

use sandtable_protocol::frame::{self, HEADER};
use sandtable_protocol::wire::WireError;

/// Descriptors one frame can carry; the kernel's limit is 253.
const MOST_DESCRIPTORS: usize = 253;

/// A frame and the descriptors that came with it.
#[derive(Debug)]
pub struct Frame<T> {
    pub message: T,
    pub descriptors: Vec<OwnedFd>,
}

/// Connects to the socket at `path`.
pub fn connect(path: &Path) -> Result<OwnedFd, Errno> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Sends one frame.
pub fn send<T: Serialize>(
    socket: impl AsFd,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), WireError> {
    let bytes = frame::encode(message)?;
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(
            ancillary.push(SendAncillaryMessage::ScmRights(descriptors)),
            "at most {MOST_DESCRIPTORS} descriptors"
        );
    }
    let mut first =
        || retry(|| sendmsg(&socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL));
    let mut sent = match first() {
        Err(Errno::TOOMANYREFS) => with_all_descriptors(first)?,
        sent => sent?,
    };
    while sent < bytes.len() {
        sent += retry(|| rustix::net::send(&socket, &bytes[sent..], SendFlags::NOSIGNAL))?;
    }
    Ok(())
}

/// Receives one frame; waits for it.
pub fn receive<T: DeserializeOwned>(socket: impl AsFd) -> Result<Frame<T>, WireError> {
    let mut header = [0_u8; HEADER];
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
    let mut body = vec![0_u8; frame::length(header)?];
    fill(&socket, &mut body)?;
    Ok(Frame { message: frame::decode(&body)?, descriptors })
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

/// Sends with the highest limit this process may have: the kernel holds all descriptors of the user that are under way against
/// the limit of whoever sends the next one.
fn with_all_descriptors<T>(call: impl FnOnce() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before })?;
    let answer = call();
    setrlimit(Resource::Nofile, before)?;
    answer
}

fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    rustix::io::retry_on_intr(&mut call)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    use super::*;
    use sandtable_protocol::wire::{Ask, Command, Stdio};

    #[test]
    fn a_frame_arrives_with_its_descriptors_and_odd_bytes() {
        let (here, there) = UnixStream::pair().expect("a socket pair");
        let ask = Ask::Run(Command {
            argv: vec![OsString::from_vec(b"\xff\n".to_vec())],
            environment: vec![OsString::from("A=b")],
            directory: PathBuf::from("/"),
            stdio: Stdio::Descriptors,
            time_ms: Some(7),
            descriptors: Some(9),
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
