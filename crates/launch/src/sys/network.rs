//! Switching the loopback device on, and who is at the other end of a socket.

use std::os::fd::{AsFd, AsRawFd as _};

use rustix::fs::Uid;
use rustix::io::Result;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use rustix::process::Pid;

use super::check;

/// The process at the other end of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Nothing if it is in a PID namespace that cannot be seen from here.
    pub pid: Option<Pid>,
    pub uid: Uid,
}

/// Who connected a Unix socket; of a listening one, who called `listen`.
///
/// Rustix has this with a number that cannot be zero. The kernel says zero of a process in another PID namespace
/// (`cred_to_ucred`, net/core/sock.c), and then its result is not valid.
pub fn peer(socket: impl AsFd) -> Result<Peer> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of_val(&found)).expect("three numbers");
    // SAFETY: the kernel writes at most `length` bytes to a structure of that size, which is plain data and outlives the
    // call.
    let returned = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    check(returned.into())?;
    Ok(Peer { pid: Pid::from_raw(found.pid), uid: Uid::from_raw(found.uid) })
}

/// Sets the loopback device of the current network namespace up.
pub(crate) fn loopback_up() -> Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: the structure is plain data, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::try_from(*from).expect("an ASCII letter");
    }
    let up = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(up).expect("two low bits");
    // SAFETY: the request is a complete `ifreq` that outlives the call.
    let returned = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    check(returned.into()).map(drop)
}
