//! What a launch is given and what it hands out: descriptors and addresses, the same on every system.

use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// Handles of the sandbox's namespaces, for a program that gives it a network.
#[derive(Debug)]
pub struct Namespaces {
    pub user: OwnedFd,
    pub network: OwnedFd,
}

/// Descriptors of the supervisor that PID 1 goes on using.
#[derive(Debug)]
pub struct Handles<'fd> {
    /// Where PID 1 takes further clients from: a listening Unix socket.
    pub listener: BorrowedFd<'fd>,
    /// Kept open as long as PID 1 lives: the lock of the layer.
    pub lock: BorrowedFd<'fd>,
}

/// The socket at the other end of a relay.
#[derive(Clone, Debug)]
pub enum Far {
    Unix(PathBuf),
    /// A socket in a directory that others can write: a link in its place leads nowhere.
    Foreign(PathBuf),
    Tcp(SocketAddr),
}
