//! A command that is to run in a sandbox, and what may come of it, as its caller knows it.

use std::path::PathBuf;
use std::time::Instant;

use rustix::io::Errno;

use crate::wire::{StartStep, Status, WireError};

/// How a command of ours ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It ran.
    Ended(Status),
    /// It ran until its time was up, and was ended.
    TimedOut,
    /// It did not run.
    NotStarted { step: StartStep, cause: Errno },
}

/// Why the end of a command is not known.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error("the sandbox was lost while the command ran")]
    Lost(#[source] WireError),
    /// The sandbox was about to end and did not take the command. It has not run.
    #[error("the sandbox ended before it took the command")]
    NotTaken,
    /// It has not run.
    #[error(
        "too many descriptors of this user are under way in sockets, so the command could not be given any"
    )]
    Crowded(#[source] Errno),
    /// It has not run.
    #[error(
        "standard input, output or error is a directory, which would lead the command out of its sandbox"
    )]
    DirectoryStream,
    #[error("cannot prepare the command's streams")]
    Streams(#[source] Errno),
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Invocation {
    pub argv: Vec<std::ffi::OsString>,
    pub environment: Vec<std::ffi::OsString>,
    pub directory: PathBuf,
    pub carrier: Carrier,
    /// When it is ended, with everything else in the sandbox.
    pub deadline: Option<Instant>,
}

/// What a command talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The streams of this process.
    Caller(Terminal),
    /// A log at this path; there is nothing to read.
    Log(PathBuf),
    /// Two new files, for standard output and standard error; there is nothing to read.
    Files { out: PathBuf, err: PathBuf },
}

/// Whether the command gets a terminal of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Terminal {
    /// If the caller has one on standard input and output.
    #[default]
    Auto,
    Always,
    Never,
}

/// Whether a freeze held until its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    Throughout,
    /// Something let the sandbox go on before: its time was up, somebody stopped it, a process was killed.
    Broken,
}

/// Why a sandbox could not be held still. Everything in it goes on.
#[derive(Debug, thiserror::Error)]
#[error("cannot freeze the sandbox")]
pub struct FreezeError(#[from] WireError);

impl FreezeError {
    /// Whether the sandbox ended meanwhile, so that there is nothing to be held.
    pub fn has_ended(&self) -> bool {
        matches!(self.0, WireError::Closed | WireError::Io(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN))
    }
}
