//! Why a request cannot be met. Each error says whose move it is, has a stable code for scripts, and, where
//! there is one, names the way on.

use std::fmt;
use std::path::PathBuf;

use super::proxy::ProxyError;
use super::remedy::listed;
use super::ssh_agent::ConnectionError;
use super::tools::ToolRefusal;
use crate::facts::Failure;
use crate::model::container::Port;
use crate::model::diagnosis::{Diagnose, Fault};
use crate::model::image::ImageRef;
use crate::model::mount::MountError;
use crate::model::path::{HostPath, PathError};
use crate::model::resolved::EngineName;
use crate::model::seatbelt::Unsupported;
use crate::model::spec::EngineChoice;

/// Why there is no resolved request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    #[error("engine `{engine}` exists on macOS only")]
    EngineElsewhere { engine: EngineChoice },
    #[error("engine `{engine}` was asked for but is not installed: no `{engine}` on PATH")]
    EngineMissing { engine: EngineChoice, package: &'static str },
    #[error("engine `{engine}` needs an image, and none was named")]
    ImageUnnamed { engine: EngineName },
    #[error("engine `{engine}` cannot run the image `{image}`")]
    ImageElsewhere { engine: EngineName, image: ImageRef },
    #[error("variable `{variable}` names an engine on another machine: `{address}`")]
    EngineRemote { variable: &'static str, address: String },
    #[error("Docker does not answer: {said}")]
    EngineDown { said: String },
    #[error("Docker does not let you in: {said}")]
    EngineDenied { said: String },
    #[error("our own executable cannot be found, and it is what runs inside a container")]
    NoExecutable,
    #[error("option `{flag}` for the engine undoes the sandbox: {why}")]
    FlagDangerous { flag: String, why: &'static str },
    #[error("option `{flag}` for the engine is not known")]
    FlagUnknown { flag: String },
    #[error("option `{flag}` for the engine is not taken: {why}")]
    FlagOurs { flag: String, why: &'static str },
    #[error("option `{flag}` for the engine has no value")]
    FlagWithoutValue { flag: String },
    #[error("there is no recipe to build the image from: {}", listed(places))]
    NoRecipe { places: Vec<PathBuf> },
    #[error("`{what}` is for docker and podman, and this sandbox runs on `{engine}`")]
    ContainersOnly { what: &'static str, engine: EngineName },
    #[error(transparent)]
    Proxy(ProxyError),
    #[error("port `{port}` cannot be published: there is no network inside")]
    PortWithoutNetwork { port: Port },
    #[error("the engine cannot make an overlay over `{path}`: {why}")]
    OverlayEngine { path: HostPath, why: &'static str },
    #[error(
        "image `{image}` is a name, and the native engine runs a directory, a tar archive or an OCI layout"
    )]
    ImageNamed { image: String },
    #[error("the image `{path}` has not been unpacked")]
    ImageNotUnpacked { path: HostPath },
    #[error(transparent)]
    Unsupported(Unsupported),
    #[error("network `nat` needs a program that carries packets: there is no `slirp4netns` on PATH")]
    NetworkHelperMissing,
    #[error("network `nat` needs the device `{}`, which cannot be opened", path.display())]
    NetworkDevice { path: PathBuf },

    #[error("the ssh-agent is required, and there is none to bring in: {why}")]
    AgentUnavailable { why: String },
    #[error("the ssh-agent cannot be brought into Podman's machine")]
    AgentConnection(#[source] ConnectionError),
    #[error("variable `{name}` cannot be given to the command: {why}")]
    EnvReserved { name: String, why: &'static str },
    #[error("variable `{name}` is not set, and {origin} asks to pass it on")]
    EnvUnset { name: String, origin: String },
    #[error("variable `{name}` is not valid UTF-8 and cannot be passed on")]
    EnvNotText { name: String },
    #[error("there is nothing called `{name}` to expose")]
    ExposeUnknown { name: String },
    #[error("nothing of `{name}` is here to expose: {}", listed(looked))]
    ExposeNothing { name: String, looked: Vec<PathBuf> },
    #[error("no agent called `{name}` is known")]
    AgentUnknown { name: String },
    #[error("`{path}` cannot be an agent's home: {why}")]
    AgentHome { path: HostPath, why: &'static str },
    #[error("with mode `live` nothing of the source can be hidden, and `{what}` asks for it")]
    LiveHides { what: &'static str },
    #[error(
        "`{pattern}` cannot hide the git directory of a linked worktree: it is shared, and would still be shown at `{common}`"
    )]
    HideLinkedWorktree { pattern: String, common: HostPath },
    #[error("with mode `live` the workspace is the source itself, and `base = \"store\"` asks for another")]
    LiveBase,

    #[error("the directory `{}` cannot be used", path.display())]
    SourceMissing {
        path: PathBuf,
        #[source]
        why: Failure,
    },
    #[error("`{}` is not a directory", path.display())]
    SourceNotDirectory { path: PathBuf },
    #[error("the path `{}` is not valid UTF-8", path.display())]
    SourceNotUnicode { path: PathBuf },
    #[error("`{path}` is too wide to be a workspace: it {why}")]
    SourceTooWide { path: HostPath, why: Width },
    #[error("`{path}` holds no files but the kernel's own view")]
    SourcePseudo { path: HostPath },
    #[error("the workspace `{path}` contains the credential store `{}`", store.display())]
    SourceHoldsCredentials { path: HostPath, store: PathBuf },
    #[error("`{path}` contains Sandtable's own state at `{state}`")]
    SourceHoldsState { path: HostPath, state: HostPath },
    #[error("`{path}` lies in Sandtable's own state at `{state}`")]
    SourceInState { path: HostPath, state: HostPath },

    #[error("the list of mounts could not be read")]
    MountsUnknown {
        #[source]
        why: Failure,
    },
    #[error("an overlay cannot show what is mounted below `{path}`: {}", listed(below))]
    Submounts { path: HostPath, below: Vec<PathBuf> },
    #[error("`{path}` cannot be the lower part of an overlay: it is on {file_system}, and {reason}")]
    SourceFileSystem { path: HostPath, file_system: &'static str, reason: &'static str },
    #[error("the state directory `{path}` cannot be reached")]
    StateUnknown {
        path: HostPath,
        #[source]
        why: Failure,
    },
    #[error("the state directory `{path}` is on a read-only file system")]
    StateReadOnly { path: HostPath },
    #[error(
        "the state directory `{path}` cannot hold a sandbox's layer: it is on {file_system}, and {reason}"
    )]
    StateFileSystem { path: HostPath, file_system: &'static str, reason: &'static str },

    #[error("mount source `{}` cannot be used", path.display())]
    MountMissing {
        path: PathBuf,
        #[source]
        why: Failure,
    },
    #[error("mount source `{}` leads through a symbolic link to `{}`", written.display(), real.display())]
    MountSymlink { written: PathBuf, real: PathBuf },
    #[error("`{path}` cannot be mounted: {why}")]
    MountSource { path: HostPath, why: String },
    #[error("`{path}` cannot be mounted copy-on-write: it is not a directory")]
    MountCowFile { path: HostPath },
    #[error("nothing can be mounted at `{}`: {why}", path.display())]
    MountTarget { path: PathBuf, why: String },
    #[error(transparent)]
    Tool(ToolRefusal),
    #[error("the path of a mount is not usable")]
    MountPath(#[source] PathError),
    #[error("the mounts contradict each other")]
    Conflict(#[source] MountError),
}

/// In which way a directory is too wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Everything,
    Home,
    AboveHome,
    System,
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Everything => "is the root of the file system",
            Self::Home => "is the home directory",
            Self::AboveHome => "contains the home directory",
            Self::System => "is or contains a directory of the system",
        })
    }
}

impl Diagnose for ResolveError {
    fn fault(&self) -> Fault {
        match self {
            Self::Tool(refusal) => refusal.fault(),
            Self::EngineElsewhere { .. }
            | Self::EngineMissing { .. }
            | Self::EngineDown { .. }
            | Self::EngineDenied { .. }
            | Self::NoExecutable
            | Self::OverlayEngine { .. }
            | Self::ImageNotUnpacked { .. }
            | Self::NetworkHelperMissing
            | Self::NetworkDevice { .. }
            | Self::AgentUnavailable { .. }
            | Self::AgentConnection(_)
            | Self::MountsUnknown { .. }
            | Self::Submounts { .. }
            | Self::SourceFileSystem { .. }
            | Self::StateUnknown { .. }
            | Self::StateReadOnly { .. }
            | Self::StateFileSystem { .. } => Fault::Machine,
            Self::Unsupported(_)
            | Self::ImageUnnamed { .. }
            | Self::ImageElsewhere { .. }
            | Self::EngineRemote { .. }
            | Self::FlagDangerous { .. }
            | Self::FlagUnknown { .. }
            | Self::FlagOurs { .. }
            | Self::FlagWithoutValue { .. }
            | Self::PortWithoutNetwork { .. }
            | Self::Proxy(_)
            | Self::NoRecipe { .. }
            | Self::ContainersOnly { .. }
            | Self::ImageNamed { .. }
            | Self::EnvReserved { .. }
            | Self::EnvUnset { .. }
            | Self::EnvNotText { .. }
            | Self::ExposeUnknown { .. }
            | Self::ExposeNothing { .. }
            | Self::AgentUnknown { .. }
            | Self::AgentHome { .. }
            | Self::LiveHides { .. }
            | Self::HideLinkedWorktree { .. }
            | Self::LiveBase
            | Self::SourceMissing { .. }
            | Self::SourceNotDirectory { .. }
            | Self::SourceNotUnicode { .. }
            | Self::SourceTooWide { .. }
            | Self::SourcePseudo { .. }
            | Self::SourceHoldsCredentials { .. }
            | Self::SourceHoldsState { .. }
            | Self::SourceInState { .. }
            | Self::MountMissing { .. }
            | Self::MountSymlink { .. }
            | Self::MountSource { .. }
            | Self::MountCowFile { .. }
            | Self::MountTarget { .. }
            | Self::MountPath(_)
            | Self::Conflict(_) => Fault::Input,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::EngineElsewhere { .. } => "engine-elsewhere",
            Self::EngineMissing { .. } => "engine-missing",
            Self::Unsupported(_) => "engine-cannot",
            Self::ImageUnnamed { .. } => "image-unnamed",
            Self::ImageElsewhere { .. } => "image-elsewhere",
            Self::EngineRemote { .. } => "engine-remote",
            Self::EngineDown { .. } => "engine-down",
            Self::EngineDenied { .. } => "engine-denied",
            Self::NoExecutable => "no-executable",
            Self::FlagDangerous { .. } => "flag-dangerous",
            Self::FlagUnknown { .. } => "flag-unknown",
            Self::FlagOurs { .. } => "flag-ours",
            Self::FlagWithoutValue { .. } => "flag-without-value",
            Self::NoRecipe { .. } => "no-recipe",
            Self::ContainersOnly { .. } => "containers-only",
            Self::PortWithoutNetwork { .. } => "port-without-network",
            Self::Proxy(error) => error.code(),
            Self::OverlayEngine { .. } => "overlay-engine",
            Self::ImageNamed { .. } => "image-named",
            Self::ImageNotUnpacked { .. } => "image-not-unpacked",
            Self::NetworkHelperMissing => "network-helper-missing",
            Self::NetworkDevice { .. } => "network-device",
            Self::AgentUnavailable { .. } => "ssh-agent-unavailable",
            Self::AgentConnection(_) => "ssh-agent-connection",
            Self::EnvReserved { .. } => "env-reserved",
            Self::EnvUnset { .. } => "env-unset",
            Self::EnvNotText { .. } => "env-not-text",
            Self::ExposeUnknown { .. } => "expose-unknown",
            Self::ExposeNothing { .. } => "expose-nothing",
            Self::AgentUnknown { .. } => "agent-unknown",
            Self::AgentHome { .. } => "agent-home",
            Self::LiveHides { .. } => "live-hides",
            Self::HideLinkedWorktree { .. } => "hide-linked-worktree",
            Self::LiveBase => "live-base",
            Self::SourceMissing { .. } => "source-missing",
            Self::SourceNotDirectory { .. } => "source-not-directory",
            Self::SourceNotUnicode { .. } => "source-not-unicode",
            Self::SourceTooWide { .. } => "source-too-wide",
            Self::SourcePseudo { .. } => "source-pseudo",
            Self::SourceHoldsCredentials { .. } => "source-holds-credentials",
            Self::SourceHoldsState { .. } => "source-holds-state",
            Self::SourceInState { .. } => "source-in-state",
            Self::MountsUnknown { .. } => "mounts-unknown",
            Self::Submounts { .. } => "submounts",
            Self::SourceFileSystem { .. } => "source-file-system",
            Self::StateUnknown { .. } => "state-unknown",
            Self::StateReadOnly { .. } => "state-read-only",
            Self::StateFileSystem { .. } => "state-file-system",
            Self::MountMissing { .. } => "mount-missing",
            Self::MountSymlink { .. } => "mount-symlink",
            Self::MountSource { .. } => "mount-source",
            Self::MountCowFile { .. } => "mount-cow-file",
            Self::MountTarget { .. } => "mount-target",
            Self::Tool(refusal) => refusal.code(),
            Self::MountPath(_) => "mount-path",
            Self::Conflict(_) => "mount-conflict",
        }
    }

    fn remedy(&self) -> Option<String> {
        self.way_on()
    }
}
