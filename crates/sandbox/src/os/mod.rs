//! What Linux and macOS are asked in different words: the one place of this crate, and of those
//! above it, that knows on which it stands.
//!
//! Both files have the same functions. On macOS there is no sandbox yet, so what only a running one needs answers that
//! there is no such call; `starts_sandboxes` says so long before anybody gets there.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(target_os = "linux")]
pub use linux::{Openings, REFERENCE, give_name, mode, set_mode, unnamed_file};
#[cfg(target_os = "macos")]
pub(crate) use macos::*;
#[cfg(target_os = "macos")]
pub use macos::{Openings, REFERENCE, give_name, mode, set_mode, unnamed_file};

/// Who is at the other end of a socket.
pub(crate) struct Peer {
    pub(crate) pid: rustix::process::Pid,
    pub(crate) uid: rustix::fs::Uid,
}

/// Whether a call that would have to wait waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Yes,
    No,
}

/// Whether sandboxes can be started on this system at all.
pub(crate) const fn starts_sandboxes() -> bool {
    cfg!(target_os = "linux")
}
