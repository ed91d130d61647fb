//! The life of a sandbox: made, run, looked at, removed. The only module that knows all the others.
//!
//! There is no daemon. Everything is on disk, and a file lock says what runs: whoever holds the lock of a
//! sandbox supervises it, and when that process dies the kernel releases the lock and ends the sandbox.

mod capture;
mod create;
mod directory;
mod disk;
mod error;
pub mod events;
mod exec;
mod files;
mod freeze;
mod furnish;
#[cfg(test)]
#[path = "tests/golden.rs"]
mod golden;
mod image;
mod live;
mod logs;
mod manage;
pub mod one_shot;
pub mod proof;
mod prune;
pub mod record;
mod removal;
mod run;
pub mod spawn;
pub mod states;
mod supervise;
mod task;

use std::ffi::OsString;

pub use directory::Sandboxes;
pub use error::SessionError;
pub use exec::{ExecRequest, exec};
pub use freeze::{Frozen, freeze};
pub use image::unpack_image;
pub use logs::Log;
pub use manage::{Inspection, LayerSize, ListedSandbox, Listing, State, inspect, list, newest, stop};
pub use prune::{Prune, Scope, prunable};
pub use removal::{Loss, Removal, Removed, remove};
pub use run::{Request, Streams, preview, run};

/// The words of a command for people: bytes that are not UTF-8 are replaced.
fn readable(command: &[OsString]) -> Vec<String> {
    command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}
