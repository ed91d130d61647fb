//! What was asked: every setting of a sandbox as it was authored, each with its origin, nothing checked
//! against the machine yet.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::container::ContainerRequest;
use super::hide::HidePattern;
use super::id::SandboxName;
use super::image::ImageRef;
use super::limits::Limits;
use super::profile::Profile;
use super::seatbelt::SeatbeltProfile;
use super::secret::Secret;
use super::setting::Setting;
use super::tool::ToolRequest;

/// Everything a user can ask of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    pub engine: Setting<EngineChoice>,
    /// What the sandbox sees as its system, where that is not the host's.
    pub image: Option<Setting<ImageRef>>,
    pub container: ContainerRequest,
    /// The profile of macOS's own sandbox, where that is used.
    pub seatbelt_profile: Option<Setting<SeatbeltProfile>>,
    pub profile: Setting<Profile>,
    /// The directory the command starts in; the repository around it is the source.
    pub directory: Setting<PathBuf>,
    pub name: Option<Setting<SandboxName>>,
    pub mode: Setting<WorkspaceMode>,
    pub base: Setting<Base>,
    pub mounts: Vec<Setting<MountRequest>>,
    /// Paths, or names of bundles: shown read-only at their own places.
    pub expose: Vec<Setting<PathBuf>>,
    /// Tools that are shown read-only, with their programs on PATH.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Setting<ToolRequest>>,
    /// What of the workspace is not shown.
    pub hide: Vec<Setting<HidePattern>>,
    /// Paths, or names of agents: private copy-on-write views of their settings.
    pub agent_homes: Vec<Setting<PathBuf>>,
    /// Variables of the command, each name once.
    pub env: Vec<Setting<EnvRequest>>,
    pub network: Setting<Network>,
    pub limits: Limits,
    pub ssh_agent: Setting<SshAgent>,
    pub git_config: Setting<GitConfig>,
    pub secrets: Setting<Secrets>,
    pub source_guard: Setting<SourceGuard>,
    pub strictness: Setting<Strictness>,
    pub lifetime: Setting<Lifetime>,
}

/// A mount as written: `SRC[:DST[:ro|rw|cow]]`, paths not yet made absolute or checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountRequest {
    pub source: PathBuf,
    pub target: Option<PathBuf>,
    pub access: MountAccess,
}

/// A variable as written: `NAME=VALUE`, or `NAME` for the caller's own value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvRequest {
    pub name: String,
    pub value: EnvValue,
}

/// Where the value of a variable comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvValue {
    /// As written. It may be a secret, so it is never shown.
    Given(Secret),
    /// The caller's, which must have one.
    Caller,
    /// The caller's, if there is one.
    CallerIfSet,
}

choice! {
    /// Which engine is asked for.
    EngineChoice { Auto = "auto", Native = "native", Docker = "docker", Podman = "podman", Seatbelt = "seatbelt" }
}

choice! {
    /// How the workspace is kept apart from the source; `Live` does not keep it apart.
    WorkspaceMode { Auto = "auto", Overlay = "overlay", Copy = "copy", Live = "live" }
}

choice! {
    /// What an overlay stands on: the source itself, which is seen as it moves, or its recorded state.
    Base { Source = "source", Store = "store" }
}

choice! {
    /// What may be done with a mount.
    MountAccess { Read = "ro", Write = "rw", Cow = "cow" }
}

choice! {
    /// Which network the sandbox sees: none, only what a proxy lets through, a way out, or the host's.
    Network { None = "none", Proxied = "proxied", Nat = "nat", Host = "host" }
}

choice! {
    /// Whether the caller's ssh-agent is reachable inside: if there is one, with a word if there is none, never,
    /// or else nothing runs.
    SshAgent { Auto = "auto", On = "on", Off = "off", Required = "required" }
}

choice! {
    /// How much of the user's git configuration is seen inside.
    GitConfig { Literal = "literal", Sanitized = "sanitized", Off = "off" }
}

choice! {
    /// What happens to files of the source whose names say secret.
    Secrets { Warn = "warn", Mask = "mask" }
}

choice! {
    /// Whether `/`, the home directory and its parents may be a source.
    SourceGuard { Refuse = "refuse", Allow = "allow" }
}

choice! {
    /// Whether a required control that cannot be enforced stops the launch.
    Strictness { Strict = "strict", BestEffort = "best-effort" }
}

choice! {
    /// Whether the sandbox stays after its command.
    Lifetime { Keep = "keep", Discard = "discard" }
}
