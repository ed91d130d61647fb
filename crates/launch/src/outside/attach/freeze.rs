//! Holding a running sandbox still, from outside: everything in it is stopped while the guard lives. PID 1 ties
//! the freeze to the connection, so that whatever ends this process ends the freeze.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use sandtable_protocol::invocation::{FreezeError, Held};
use sandtable_protocol::wire::{Ask, FrozenBy, Tell, WireError};

use crate::transport;

/// How long PID 1 may take. It gives up on processes that do not stop long before.
const PATIENCE: Duration = Duration::from_secs(10);

/// A sandbox in which nothing moves. Dropping it lets everything go on.
#[derive(Debug)]
#[must_use = "it holds only while this lives"]
pub struct Frozen {
    socket: OwnedFd,
    by: FrozenBy,
    complete: bool,
}

/// Freezes the sandbox behind `socket`, a connection of its own to PID 1: by `group` if there is one, see
/// [`crate::outside::cgroup::cold`], else by signals.
pub fn freeze(socket: OwnedFd, group: Option<&[OwnedFd; 3]>) -> Result<Frozen, FreezeError> {
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE)).map_err(WireError::Io)?;
    let files: Vec<BorrowedFd<'_>> = group.into_iter().flatten().map(AsFd::as_fd).collect();
    transport::send(&socket, &Ask::Freeze, &files)?;
    loop {
        if let Tell::Frozen { by, complete } = transport::receive::<Tell>(&socket)?.message {
            return Ok(Frozen { socket, by, complete });
        }
    }
}

impl Frozen {
    /// How it is done.
    pub fn by(&self) -> FrozenBy {
        self.by
    }

    /// Whether really nothing moves. A process that waits for a disk may not have stopped yet.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Lets everything go on and says whether nothing moved until now.
    pub fn thaw(self) -> Held {
        let asked = transport::send(&self.socket, &Ask::Thaw, &[]);
        let answer = asked.and_then(|()| transport::receive::<Tell>(&self.socket));
        match answer.map(|frame| frame.message) {
            Ok(Tell::Thawed { unbroken: true }) => Held::Throughout,
            _ => Held::Broken,
        }
    }
}
