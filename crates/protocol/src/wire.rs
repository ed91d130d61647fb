//! What PID 1 and its clients say to each other, in frames ([`crate::frame`]) with descriptors attached.
//!
//! The supervisor is one client, `exec` and `stop` are others. Nothing of the workload speaks this protocol,
//! but a client may be wrong or old: a frame that is too long or does not parse ends the connection.

use std::ffi::OsString;
use std::path::PathBuf;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::report::Report;
use crate::step::Step;
use crate::terms::Terms;

/// From a client to PID 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// Idmapped mounts, in the order of `Plan::idmapped`, attached as descriptors. Only during set-up.
    Mounts,
    /// What the supervisor found to hold beside what PID 1 reported: a control group, and the ids of a container,
    /// can be seen from outside only. From the supervisor, before its command.
    Limits(Report),
    /// What a container is like, with the socket for further clients and the lock of the layer attached. From
    /// the supervisor, before anything else.
    Adopt(Terms),
    /// Run a command. With `Stdio::Descriptors` three descriptors are attached.
    Run(Command),
    /// Send a signal to the command of this connection, to its whole process group.
    Signal { number: i32 },
    /// End everything: `SIGTERM` now, `SIGKILL` when the grace is over.
    Stop { grace_ms: u64 },
    /// Hold everything still until `Thaw`, or until this connection ends. Three descriptors may be attached, of a
    /// control group to put everything into: `cgroup.procs`, `cgroup.freeze`, `cgroup.events`.
    Freeze,
    /// Let everything go on, as far as this connection is concerned.
    Thaw,
}

/// From PID 1 to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tell", rename_all = "snake_case")]
pub enum Tell {
    /// The user and the network namespace, attached as descriptors: once PID 1 is sealed nobody outside can
    /// open them any more. Only with a way out.
    Namespaces,
    /// The user namespace exists and waits for its id map (root only).
    NeedsIds,
    /// A step of the set-up failed. PID 1 ends after this.
    Failed(Failure),
    /// The set-up is done; this is what holds.
    Ready(Report),
    /// The command runs, in a sandbox of which this holds. With `Stdio::Terminal` the master end is attached.
    Started(Report),
    /// The command could not be started.
    NotStarted { step: StartStep, errno: i32 },
    /// The command of this connection was stopped, as by Ctrl-Z. `Ask::Signal` with `SIGCONT` lets it go on.
    Stopped,
    /// The command ended.
    Ended(Status),
    /// How many commands of other connections still run, after this one's ended.
    Others { running: usize },
    /// Everything is held still.
    Frozen {
        by: FrozenBy,
        /// Whether really nothing moves.
        complete: bool,
    },
    /// It goes on.
    Thawed {
        /// Whether nothing moved until now.
        unbroken: bool,
    },
}

/// How a sandbox is held still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrozenBy {
    /// All but its first process are in a control group that is frozen.
    ControlGroup,
    /// Its first process stopped all others.
    Signals,
}

/// A step of the set-up that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("cannot {step}")]
pub struct Failure {
    pub step: Step,
    pub errno: i32,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    pub argv: Vec<OsString>,
    /// `NAME=value` pairs: the whole environment.
    pub environment: Vec<OsString>,
    pub directory: PathBuf,
    pub stdio: Stdio,
    /// How long the sandbox may last, from its supervisor: PID 1 ends it then, should nobody else do.
    pub time_ms: Option<u64>,
    /// How many descriptors the client may have: the command gets fewer. See `inside/init/spawn.rs` of `launch`.
    #[serde(default)]
    pub descriptors: Option<u64>,
}

/// What the command talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stdio", rename_all = "snake_case")]
pub enum Stdio {
    /// Three descriptors of the client.
    Descriptors,
    /// A new terminal inside the sandbox. One descriptor may be attached: standard error.
    Terminal { rows: u16, columns: u16 },
}

/// What went wrong before a command ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartStep {
    /// Its directory could not be entered.
    Directory,
    /// It could not be executed.
    Program,
    /// No process or terminal could be made for it.
    Process,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Status {
    Exited { code: i32 },
    Signalled { number: i32 },
}

/// Why a frame could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("the other end closed the connection")]
    Closed,
    #[error("a frame of {0} bytes is too long")]
    TooLong(usize),
    #[error("a frame is not understood")]
    Malformed(#[source] serde_json::Error),
    #[error("the connection failed")]
    Io(#[from] Errno),
}
