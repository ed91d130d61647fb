//! Why there is no sandbox. Every system knows the words.

use std::path::PathBuf;

use rustix::io::Errno;

use sandtable_protocol::step::Step;
use sandtable_protocol::wire::{Failure, WireError};

/// Why a sandbox could not be launched. Nothing has run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("a sandbox can be launched only by a process that has one thread, and this one has more")]
    Threads,
    #[error("cannot make the namespaces of a sandbox")]
    Namespaces(#[source] Errno),
    #[error("cannot {step}")]
    Step {
        step: Step,
        #[source]
        cause: Option<Errno>,
    },
    #[error("the sandbox ended before it was ready")]
    Lost(#[source] WireError),
}

impl From<Failure> for LaunchError {
    fn from(failure: Failure) -> Self {
        let cause = (failure.errno != 0).then(|| Errno::from_raw_os_error(failure.errno));
        Self::Step { step: failure.step, cause }
    }
}

/// Why nobody came through the door as expected.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    #[error("cannot make the socket `{}`", path.display())]
    Make {
        path: PathBuf,
        #[source]
        source: Errno,
    },
    #[error("cannot wait for the container")]
    Wait(#[source] Errno),
    #[error("the container's processes cannot be seen from here: its engine runs in another PID namespace")]
    Apart,
    #[error("the container has started another program as its first process")]
    Stranger(#[source] Option<Errno>),
    #[error("cannot {}", .0.step)]
    Step(Failure),
    #[error("the container ended before it was ready")]
    Lost(#[source] WireError),
}
