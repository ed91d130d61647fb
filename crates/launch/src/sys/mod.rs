//! Every `unsafe` block of the workspace: thin, safe wrappers over the few system calls that rustix lacks.
//!
//! A wrapper does one call, turns its result into `rustix::io::Result` and decides nothing. Each block
//! says why it is sound. All of it runs in a process with one thread, or touches no memory of others.
#![expect(unsafe_code, reason = "this folder is the one address of unsafe code")]

pub(crate) mod memory;
pub(crate) mod mount;
pub(crate) mod network;
pub(crate) mod privilege;
pub(crate) mod probe;
pub(crate) mod process;
pub(crate) mod signal;

use rustix::io::{Errno, Result};

/// Turns the return value of a libc call into a result.
fn check(returned: libc::c_long) -> Result<libc::c_long> {
    if returned < 0 { Err(last_errno()) } else { Ok(returned) }
}

fn last_errno() -> Errno {
    let raw = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    Errno::from_raw_os_error(raw)
}
