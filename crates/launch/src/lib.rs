//! The native sandbox: the Linux code that executes a plan ([`sandtable_protocol::op`]).
//!
//! The words (what is to be done, what holds, how a command ended) are in `sandtable-protocol`, the same on every system.
//! What acts on them is for Linux; elsewhere `elsewhere` stands in its place, in which no sandbox can exist.

mod ends;
mod error;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{
    attach, cgroup, container, delegate, detach, host, interrupt, landlock_abi, relay, supervisor,
};

#[cfg(target_os = "linux")]
pub mod attach;
#[cfg(target_os = "linux")]
pub mod cgroup;
#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
pub mod container;
#[cfg(target_os = "linux")]
pub mod delegate;
#[cfg(target_os = "linux")]
pub mod detach;
#[cfg(target_os = "linux")]
mod failpoint;
#[cfg(target_os = "linux")]
pub mod host;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
pub mod interrupt;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod mount;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
pub mod probe;
#[cfg(target_os = "linux")]
pub mod relay;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod setup;
#[cfg(target_os = "linux")]
mod step;
#[cfg(target_os = "linux")]
pub mod supervisor;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
pub mod transport;
#[cfg(target_os = "linux")]
mod verify;

#[cfg(target_os = "linux")]
pub use landlock::abi as landlock_abi;
#[cfg(target_os = "linux")]
pub use sys::network::{Peer, peer};
