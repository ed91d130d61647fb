//! Switching the loopback device on.

use std::os::fd::{AsFd, AsRawFd as _};

use rustix::io::Result;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::check;

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
