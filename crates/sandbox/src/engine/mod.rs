//! What runs sandboxes. An engine lowers a resolved request to a plan, without asking the machine anything,
//! and launches that plan. Outside this folder no code knows what kind of engine it has.

pub mod enforcement;
mod nat;
pub mod native;
pub mod oci;
pub mod seatbelt;
pub mod ssh_agent;

use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Instant;

use sandtable_launch::outside::attach::{self, Frozen};
use sandtable_launch::outside::supervisor::one_thread;
use sandtable_protocol::invocation::{AttachError, Ending, FreezeError, Invocation};
use sandtable_protocol::report::Report;
use serde::{Deserialize, Serialize};

pub use nat::NetworkError;

use crate::model::diagnosis::{Diagnose, Fault};
use crate::model::id::SandboxName;
use crate::model::observe::Observer;
use crate::model::path::HostPath;
use crate::model::resolved::{EngineName, ResolvedSpec, Warning};
use crate::os;
use crate::process::CliError;
use oci::ContainerError;

/// Where a sandbox keeps its state, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub directory: HostPath,
    pub name: SandboxName,
    /// First id of the private range, for sandboxes of root.
    pub id_base: Option<u32>,
    /// The process that supervises it, and when it began, in seconds since 1970.
    pub pid: u32,
    pub started: u64,
}

/// What an engine will do: inert, printable, comparable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "engine", rename_all = "snake_case")]
pub enum Plan {
    Native(Box<sandtable_protocol::op::Plan>),
    Container(Box<oci::ContainerPlan>),
    Seatbelt(seatbelt::SeatbeltPlan),
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native(plan) => native::describe(plan, f),
            Self::Container(plan) => oci::describe(plan, f),
            Self::Seatbelt(plan) => seatbelt::describe(plan, f),
        }
    }
}

/// Descriptors a running sandbox goes on using.
#[derive(Debug)]
pub struct Handles<'fd> {
    /// A listening socket for further commands.
    pub control: BorrowedFd<'fd>,
    /// The lock of the sandbox's layer.
    pub lock: BorrowedFd<'fd>,
}

/// Why a plan could not be launched. Nothing has run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error(transparent)]
    Native(#[from] sandtable_launch::error::LaunchError),
    #[error(transparent)]
    Container(#[from] oci::ContainerError),
    #[error("engine `{engine}` starts sandboxes on {system} only")]
    Elsewhere { engine: EngineName, system: &'static str },
    #[error("sandboxes cannot be started on `{system}` yet")]
    NotHere { system: &'static str },
    #[error("cannot give the sandbox its network")]
    Network(#[from] nat::NetworkError),
    #[error(transparent)]
    Agent(#[from] ssh_agent::SshAgentError),
}

impl LaunchError {
    /// Whether the observer or a signal cancelled it.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Container(ContainerError::Call(CliError::Cancelled { .. })))
    }

    /// Whether a look at the machine may find the reason: not where a command of the sandbox stands in the way of the next.
    pub fn is_of_the_machine(&self) -> bool {
        !matches!(self, Self::Native(error) if native::is_spoilt(error))
    }
}

impl Diagnose for LaunchError {
    fn fault(&self) -> Fault {
        match self {
            Self::Container(error) => error.fault(),
            Self::Native(_)
            | Self::Network(_)
            | Self::Agent(_)
            | Self::Elsewhere { .. }
            | Self::NotHere { .. } => Fault::Machine,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Container(error) => error.code(),
            Self::Native(_)
            | Self::Network(_)
            | Self::Agent(_)
            | Self::Elsewhere { .. }
            | Self::NotHere { .. } => "launch",
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Native(error) => native::remedy(error),
            Self::Agent(error) => Some(error.remedy()),
            Self::Container(error) => error.remedy(),
            Self::Elsewhere { .. } => Some("leave out `--engine`".to_owned()),
            Self::NotHere { .. } => Some(
                "run this on Linux, in a virtual machine too; `--dry-run` shows here what would be done"
                    .to_owned(),
            ),
            Self::Network(_) => Some("use `--network none` or `--network host`".to_owned()),
        }
    }
}

/// Runs resolved requests in one kind of sandbox.
pub trait Engine: fmt::Debug {
    /// Its own kind of plan: an engine cannot get the plan of another one.
    type Plan;

    /// Does what takes long and is needed once: an image is there afterwards, and `spec` says which exactly.
    fn prepare(&self, _spec: &mut ResolvedSpec, _observer: &dyn Observer) -> Result<(), LaunchError> {
        Ok(())
    }

    /// Lowers `spec`. Pure: no look at the machine, the same on every operating system.
    fn plan(&self, spec: &ResolvedSpec, place: &Place) -> Self::Plan;

    /// Starts the plan and returns when the sandbox has reported what holds. No command runs yet.
    fn launch(&self, plan: &Self::Plan, handles: &Handles<'_>) -> Result<Box<dyn Running>, LaunchError>;

    /// Holds everything still in the running sandbox that keeps its state in `directory`, while the guard lives.
    /// `connection` is one to its first process and of this freeze only: so it can be asked for by any process,
    /// not just by the one that launched the sandbox, and ends with it.
    fn freeze(&self, connection: OwnedFd, _directory: &HostPath) -> Result<Frozen, FreezeError> {
        attach::freeze(connection, None)
    }
}

/// A sandbox that waits for its first command, or runs it. Dropping it ends everything inside.
pub trait Running: fmt::Debug {
    /// What holds, as the launched child read it back.
    fn report(&self) -> &Report;

    /// Runs the command on this process's streams; `started` is called once it runs.
    fn run(&self, invocation: Invocation, started: &mut dyn FnMut()) -> Result<Ending, AttachError>;

    /// The connection to PID 1. When it is shut down, everything inside ends.
    fn connection(&self) -> BorrowedFd<'_>;

    /// Begins to end everything inside, without waiting for it; dropping waits.
    fn end(&mut self);

    /// Waits until no `exec` has a command inside, or the time is up; `waiting` hears how many still have.
    fn wait_for_others(&self, deadline: Option<Instant>, waiting: &mut dyn FnMut(usize));

    /// Whether something inside was killed because the memory it may use had run out.
    fn ran_out_of_memory(&self) -> bool;

    /// What it goes without, which showed only when it was launched.
    fn warnings(&self) -> &[Warning] {
        &[]
    }
}

/// Refuses where this executable can make plans but start nothing, and in a process with several threads, before
/// anything is made.
pub fn can_start() -> Result<(), LaunchError> {
    if !os::starts_sandboxes() {
        return Err(LaunchError::NotHere { system: std::env::consts::OS });
    }
    Ok(one_thread()?)
}

/// Removes what a launch for the sandbox in `directory` left outside it when its supervisor was killed.
pub fn reap(directory: &HostPath) {
    native::reap(directory);
    oci::reap(directory);
}

/// Whether a launch for the sandbox in `directory` made something outside it that may still be there: what [`reap`]
/// would remove.
pub fn has_left(directory: &HostPath) -> bool {
    native::has_groups(directory) || oci::has_left(directory)
}

/// Any of the engines.
#[derive(Clone, Copy, Debug)]
pub enum AnyEngine {
    Native(native::Native),
    Container(oci::Oci),
    Seatbelt(seatbelt::Seatbelt),
}

/// The engine of that name.
pub fn engine(name: EngineName) -> AnyEngine {
    match name {
        EngineName::Native => AnyEngine::Native(native::Native),
        EngineName::Docker => AnyEngine::Container(oci::Oci { dialect: oci::Dialect::Docker }),
        EngineName::Podman => AnyEngine::Container(oci::Oci { dialect: oci::Dialect::Podman }),
        EngineName::Seatbelt => AnyEngine::Seatbelt(seatbelt::Seatbelt),
    }
}

impl AnyEngine {
    /// See [`Engine::prepare`].
    pub fn prepare(&self, spec: &mut ResolvedSpec, observer: &dyn Observer) -> Result<(), LaunchError> {
        match self {
            Self::Native(engine) => engine.prepare(spec, observer),
            Self::Container(engine) => engine.prepare(spec, observer),
            Self::Seatbelt(engine) => engine.prepare(spec, observer),
        }
    }

    /// See [`Engine::plan`].
    pub fn plan(&self, spec: &ResolvedSpec, place: &Place) -> Plan {
        match self {
            Self::Native(engine) => Plan::Native(Box::new(engine.plan(spec, place))),
            Self::Container(engine) => Plan::Container(Box::new(engine.plan(spec, place))),
            Self::Seatbelt(engine) => Plan::Seatbelt(engine.plan(spec, place)),
        }
    }

    /// See [`Engine::freeze`].
    pub fn freeze(&self, connection: OwnedFd, directory: &HostPath) -> Result<Frozen, FreezeError> {
        match self {
            Self::Native(engine) => engine.freeze(connection, directory),
            Self::Container(engine) => engine.freeze(connection, directory),
            Self::Seatbelt(engine) => engine.freeze(connection, directory),
        }
    }
}

impl Plan {
    /// Launches it on the engine that made it. See [`Engine::launch`].
    pub fn launch(&self, handles: &Handles<'_>) -> Result<Box<dyn Running>, LaunchError> {
        match self {
            Self::Native(plan) => native::Native.launch(plan, handles),
            Self::Container(plan) => oci::Oci { dialect: plan.dialect }.launch(plan, handles),
            Self::Seatbelt(plan) => seatbelt::Seatbelt.launch(plan, handles),
        }
    }
}

/// A short stand-in for a path (FNV-1a): the same in every version, and no secret is behind it.
fn fingerprint(path: &Path) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    path.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix)
}
