//! The native sandbox: a list of operations ([`op`]) and the Linux code that executes it.

pub mod attach;
pub mod cgroup;
mod confine;
pub mod container;
pub mod detach;
mod failpoint;
pub mod follow;
mod host;
mod init;
pub mod interrupt;
mod landlock;
pub mod log;
mod mount;
pub mod op;
pub mod probe;
pub mod relay;
pub mod report;
mod seccomp;
mod setup;
mod step;
pub mod supervisor;
mod sys;
mod verify;
pub mod wire;

pub use landlock::abi as landlock_abi;
