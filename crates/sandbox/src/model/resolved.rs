//! What the request means on this machine: absolute, checked, complete. Lowering it to a plan needs no
//! further look at the machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::limits::Limits;
use super::mount::MountTable;
use super::path::{BoxPath, HostPath};
use super::setting::{Origin, Setting};
use super::spec::{Lifetime, Network, Secrets, Strictness};

/// A request, checked against facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedSpec {
    pub engine: EngineName,
    /// Why this engine.
    pub engine_reason: String,
    pub source: Source,
    pub identity: Identity,
    pub home: BoxPath,
    /// Where a command starts.
    pub directory: BoxPath,
    pub mounts: MountTable,
    /// The whole environment of a command, but for the sandbox's name, which the session adds.
    pub environment: BTreeMap<String, Variable>,
    pub network: Setting<Network>,
    #[serde(default)]
    pub limits: Limits,
    pub secrets: Setting<Secrets>,
    pub strictness: Setting<Strictness>,
    pub lifetime: Setting<Lifetime>,
    pub warnings: Vec<Warning>,
}

/// The directory a sandbox is a view of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub root: HostPath,
    pub kind: SourceKind,
}

/// What kind of directory it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SourceKind {
    /// The top of a git repository.
    Git,
    /// A linked worktree; the common git directory lies elsewhere and is brought in the same way.
    LinkedWorktree { common: HostPath },
    /// No repository that we could bring in.
    Plain,
}

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub uid: u32,
    pub gid: u32,
}

/// One environment variable of the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    pub value: String,
    pub origin: Origin,
}

/// Something the user should know although the run goes on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Warning {
    /// Stable, for scripts.
    pub code: String,
    pub text: String,
}

impl Warning {
    pub fn new(code: &str, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), text: text.into() }
    }
}

choice! {
    /// The engine that runs a sandbox.
    EngineName { Native = "native" }
}
