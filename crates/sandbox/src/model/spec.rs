//! What was asked: every setting of a sandbox as it was authored, each with its origin, nothing checked
//! against the machine yet.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::id::SandboxName;
use super::limits::Limits;
use super::setting::Setting;

/// Everything a user can ask of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    pub engine: Setting<EngineChoice>,
    pub profile: Setting<Profile>,
    /// The directory the command starts in; the repository around it is the source.
    pub directory: Setting<PathBuf>,
    pub name: Option<Setting<SandboxName>>,
    pub mode: Setting<WorkspaceMode>,
    pub mounts: Vec<Setting<MountRequest>>,
    pub network: Setting<Network>,
    pub limits: Limits,
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

choice! {
    /// Which engine is asked for.
    EngineChoice { Auto = "auto", Native = "native", Docker = "docker", Podman = "podman", Seatbelt = "seatbelt" }
}

choice! {
    /// A named bundle of settings.
    Profile { None = "none", Dev = "dev", Safe = "safe", Tight = "tight", Offline = "offline" }
}

choice! {
    /// How the workspace is kept apart from the source.
    WorkspaceMode { Auto = "auto", Overlay = "overlay" }
}

choice! {
    /// What may be done with a mount.
    MountAccess { Read = "ro", Write = "rw", Cow = "cow" }
}

choice! {
    /// Which network the sandbox sees. `Nat` belongs to profile `dev` and is refused by engines that cannot do it.
    Network { None = "none", Nat = "nat", Host = "host" }
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
