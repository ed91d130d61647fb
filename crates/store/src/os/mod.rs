//! What Linux and macOS are asked in different words: the one place of this crate that knows on which it stands.
//!
//! Both files have the same functions. Linux is where everything works and is tested. On macOS what has no
//! counterpart answers with an error that its callers know (`EOPNOTSUPP` and its kin), and they do it another way or
//! say so; nothing here claims to have done what it did not.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(target_os = "macos")]
pub use macos::*;

/// What tells one mount from another.
#[derive(PartialEq, Eq)]
pub(crate) struct Mount {
    device: (u32, u32),
    /// Where the kernel numbers them.
    id: Option<u64>,
}

/// Whether the way may lead into another mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mounts {
    Refuse,
    /// For trees of the user, whose mounts are part of what was asked for.
    Cross,
}

/// Saturates in the year 2262; a modification time may be any number its owner likes.
fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
