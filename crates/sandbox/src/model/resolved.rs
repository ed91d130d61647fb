//! What the request means on this machine: absolute, checked, complete. Lowering it to a plan needs no
//! further look at the machine.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::agent::Agent;
use super::choice::choice;
use super::container::Container;
use super::hide::HidePattern;
use super::image::ResolvedImage;
use super::limits::Limits;
use super::mount::{FileIdentity, MountTable};
use super::path::{BoxPath, HostPath};
use super::platform::Platform;
use super::seatbelt::SeatbeltProfile;
use super::secret::REDACTED;
use super::setting::{Origin, Setting};
use super::spec::{Base, Lifetime, Network, Secrets, Strictness, WorkspaceMode};
use super::tool::ProvidedDep;

/// A request, checked against facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedSpec {
    pub engine: EngineName,
    /// Why this engine.
    pub engine_reason: String,
    #[serde(default)]
    pub platform: Platform,
    /// What the sandbox sees as its system, where that is not the host's.
    #[serde(default)]
    pub image: Option<ResolvedImage>,
    /// The container engine here, when one runs the sandbox.
    #[serde(default)]
    pub container: Option<Container>,
    /// The profile of macOS's own sandbox, when that runs the sandbox.
    #[serde(default)]
    pub seatbelt: Option<SeatbeltProfile>,
    pub source: Source,
    pub mode: Mode,
    /// How the repository's own configuration is seen.
    #[serde(default, skip_serializing_if = "RepositoryConfig::is_as_it_is")]
    pub repository_config: RepositoryConfig,
    /// What the workspace stands on.
    #[serde(default = "source")]
    pub base: Setting<Base>,
    pub identity: Identity,
    pub home: BoxPath,
    /// Where a command starts.
    pub directory: BoxPath,
    pub mounts: MountTable,
    /// Tools of ours that are among the mounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ProvidedDep>,
    /// Files of the caller that are copied into the private home when the sandbox is made.
    pub seeds: Vec<Seed>,
    /// What of the workspace is not shown, besides secrets.
    pub hide: Vec<Setting<HidePattern>>,
    /// The whole environment of a command, but for the sandbox's name, which the session adds.
    pub environment: BTreeMap<String, Variable>,
    pub network: Setting<Network>,
    /// The program that gives a sandbox its way out, when it has one.
    pub network_helper: Option<NetworkHelper>,
    #[serde(default)]
    pub limits: Limits,
    /// Whom the native engine asks for a control group, where systemd runs and something is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub systemd: Option<Systemd>,
    #[serde(default)]
    pub ssh_agent: Agent,
    pub secrets: Setting<Secrets>,
    pub strictness: Setting<Strictness>,
    pub lifetime: Setting<Lifetime>,
    pub warnings: Vec<Warning>,
}

fn source() -> Setting<Base> {
    Setting::default_value(Base::Source)
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

/// How the configuration in a git directory is seen inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepositoryConfig {
    #[default]
    AsItIs,
    WithoutPasswords,
}

impl RepositoryConfig {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
    fn is_as_it_is(&self) -> bool {
        *self == Self::AsItIs
    }
}

/// How the workspace is kept apart from the source, and why so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mode {
    /// Never `Auto`.
    pub value: WorkspaceMode,
    pub reason: String,
}

/// A file of the caller for the private home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seed {
    pub source: HostPath,
    /// Where below the home directory it goes.
    pub place: PathBuf,
    pub identity: Option<FileIdentity>,
    /// Why it is there, for people.
    pub reason: String,
}

/// A program that carries packets between a sandbox and the host's network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkHelper {
    pub kind: HelperKind,
    pub program: HostPath,
}

choice! {
    /// The program we know how to use.
    HelperKind { Slirp4netns = "slirp4netns" }
}

/// A systemd that hands out control groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Systemd {
    pub kind: SystemdKind,
    /// Its private socket.
    pub socket: HostPath,
}

choice! {
    /// Whom a systemd works for.
    SystemdKind { System = "system", User = "user" }
}

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub uid: u32,
    pub gid: u32,
}

/// One environment variable of the command.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredVariable", into = "StoredVariable")]
pub struct Variable {
    pub value: String,
    pub origin: Origin,
    pub secrecy: Secrecy,
}

choice! {
    /// Whether a value may be shown and written down.
    Secrecy { Open = "open", Concealed = "concealed" }
}

/// How a variable is written down: a concealed one without its value, wherever that happens.
#[derive(Serialize, Deserialize)]
struct StoredVariable {
    value: Option<String>,
    origin: Origin,
}

impl Variable {
    /// A variable that may be shown.
    pub fn open(value: impl Into<String>, origin: Origin) -> Self {
        Self { value: value.into(), origin, secrecy: Secrecy::Open }
    }

    /// A variable whose value is nobody's business but the command's.
    pub fn concealed(value: impl Into<String>, origin: Origin) -> Self {
        Self { value: value.into(), origin, secrecy: Secrecy::Concealed }
    }
}

impl From<Variable> for StoredVariable {
    fn from(variable: Variable) -> Self {
        let value = (variable.secrecy == Secrecy::Open).then_some(variable.value);
        Self { value, origin: variable.origin }
    }
}

impl From<StoredVariable> for Variable {
    fn from(stored: StoredVariable) -> Self {
        match stored.value {
            Some(value) => Self::open(value, stored.origin),
            None => Self::concealed(String::new(), stored.origin),
        }
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.secrecy == Secrecy::Open { &self.value } else { REDACTED };
        f.debug_struct("Variable").field("value", &value).field("origin", &self.origin).finish()
    }
}

/// Something the user should know although the run goes on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Warning {
    /// Stable, for scripts.
    pub code: String,
    pub text: String,
}

impl Warning {
    /// The code for an agent that was wanted and is not there.
    pub const NO_AGENT: &'static str = "ssh-agent-unavailable";

    /// An agent that was wanted and is not there.
    pub fn no_agent(why: &str) -> Self {
        let text = format!("there is no ssh-agent inside: {why}; `--ssh-agent off` says that none is wanted");
        Self::new(Self::NO_AGENT, text)
    }

    pub fn new(code: &str, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), text: text.into() }
    }
}

choice! {
    /// The engine that runs a sandbox.
    EngineName { Native = "native", Docker = "docker", Podman = "podman", Seatbelt = "seatbelt" }
}

impl EngineName {
    /// What makes tools where no image is asked for.
    pub const WITHOUT_IMAGE: Self = Self::Native;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_concealed_value_is_never_written_down() {
        let variable = Variable::concealed("hunter2", Origin::Default);
        let text = serde_json::to_string(&variable).unwrap();
        assert_eq!(text, r#"{"value":null,"origin":{"from":"default"}}"#);
        assert!(!format!("{variable:?}").contains("hunter2"));
        let back: Variable = serde_json::from_str(&text).unwrap();
        assert_eq!((back.value.as_str(), back.secrecy), ("", Secrecy::Concealed));
        let open = Variable::open("x", Origin::Default);
        assert_eq!(serde_json::from_str::<Variable>(&serde_json::to_string(&open).unwrap()).unwrap(), open);
    }
}
