//! The life of a sandbox: made, run, looked at, removed. The only module that knows all the others.
//!
//! There is no daemon. Everything is on disk, and a file lock says what runs: whoever holds the lock of a
//! sandbox supervises it, and when that process dies the kernel releases the lock and ends the sandbox.

mod capture;
mod create;
mod directory;
mod error;
mod exec;
mod files;
mod furnish;
mod live;
mod manage;
pub mod record;
mod run;

use std::ffi::OsString;

pub use directory::Sandboxes;
pub use error::Error;
pub use exec::{ExecRequest, exec};
pub use furnish::{CopyNews, Notify};
pub use manage::{Entry, Inspection, Listing, Running, State, inspect, list, remove, stop};
pub use run::{Request, preview, run};

/// The words of a command for people: bytes that are not UTF-8 are replaced.
fn readable(command: &[OsString]) -> Vec<String> {
    command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}
