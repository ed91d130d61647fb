//! What a container engine will be told, as data: the words of its command line in order, each with where it
//! came from, and what has to be there before.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use sandtable_protocol::op::{Beneath, Limits, Network, SetIds};
use serde::{Deserialize, Serialize};

use super::Dialect;
use crate::engine::ssh_agent::Setup;
use crate::model::container::EngineRights;
use crate::model::resolved::{Secrecy, Variable};
use crate::model::secret::REDACTED;
use crate::model::setting::Origin;

/// One container, before it exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerPlan {
    pub dialect: Dialect,
    pub rights: EngineRights,
    pub program: PathBuf,
    /// Exactly the variables the program gets.
    pub variables: BTreeMap<String, Variable>,
    /// The sandbox's own directory.
    pub directory: PathBuf,
    /// Our own executable.
    pub init: PathBuf,
    /// The image as it was named.
    pub image: String,
    /// Where people are sent when it cannot be had.
    pub support: String,
    /// What the container is called.
    pub name: String,
    /// Overlays that the engine mounts by name: made before the container, removed after it.
    pub volumes: Vec<Volume>,
    /// Directories that show two as one: mounted before the container, in the engine's own namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grounds: Vec<Ground>,
    /// A network of this sandbox alone, where the engine has networks.
    #[serde(default)]
    pub network_name: Option<String>,
    /// The container beside it that is its way out.
    #[serde(default)]
    pub proxy: Option<Proxy>,
    /// Small files that are shown inside: written before the container starts.
    pub files: Vec<OwnFile>,
    /// Directories of overlays in which the kernel leaves files that may not be the caller's.
    pub works: Vec<PathBuf>,
    /// Places of mounts in directories that a command of the sandbox may have changed: looked at before the engine is
    /// asked for anything.
    #[serde(default)]
    pub points: Vec<Point>,
    /// A directory in which PID 1 finds its supervisor once.
    pub door: PathBuf,
    /// Where Landlock lets the workload do what.
    pub landlock: Vec<Beneath>,
    #[serde(default)]
    pub set_ids: SetIds,
    pub network: Network,
    /// Directories of tools, which come before those of the image on PATH.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    /// What the engine is asked to limit; read back from outside.
    pub limits: Option<Limits>,
    /// What the ssh-agent needs outside, while the container is there.
    #[serde(default)]
    pub agent: Setup,
    /// The words behind the program.
    pub argv: Vec<Arg>,
    /// Variables that reach the command without being seen by the engine.
    pub concealed: Vec<String>,
}

/// One word for the engine.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arg {
    pub value: String,
    /// Which part of the call it belongs to.
    pub part: Part,
    pub origin: Origin,
    pub secrecy: Secrecy,
}

/// The parts of a call, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Base,
    Flags,
    Limits,
    Network,
    Mounts,
    SshAgent,
    Ports,
    Environment,
    Identity,
    Image,
    Command,
}

/// A container with a program of the image that connects the sandbox with the world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proxy {
    /// What the container is called.
    pub name: String,
    /// The command, for people.
    pub command: String,
    /// The directory in which it meets its supervisor.
    pub directory: PathBuf,
    /// The words behind the engine's program.
    pub argv: Vec<Arg>,
}

/// A copy-on-write view that the engine mounts under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    pub name: String,
    /// The kernel's mount options.
    pub options: String,
}

/// What an overlay of the engine stands on, where that takes more directories than the engine has words for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ground {
    /// Where it is mounted.
    pub place: PathBuf,
    /// The layer of pins.
    pub above: PathBuf,
    pub below: PathBuf,
}

impl Ground {
    /// The directory that the engine is told.
    pub fn shown(&self) -> PathBuf {
        self.place.join("all")
    }
}

/// A place where something is mounted, as the host has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Inside.
    pub target: PathBuf,
    /// The directories of the host that the mount above it shows, the uppermost first.
    pub layers: Vec<PathBuf>,
    /// Where it is in them.
    pub below: PathBuf,
    pub kind: PointKind,
    pub missing: Missing,
}

/// What has to be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointKind {
    Directory,
    File,
    /// What is mounted there is.
    Like(PathBuf),
}

/// What is done if it is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// It is made. The engine would make it with its own rights, and the caller could not remove it.
    Make,
    /// It is left to the engine, in whose view of the layers it is missing.
    Leave,
}

/// A file of ours for the inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnFile {
    pub path: PathBuf,
    pub contents: String,
}

impl Arg {
    /// The word, unless it is nobody's business.
    pub fn shown(&self) -> &str {
        if self.secrecy == Secrecy::Open { &self.value } else { REDACTED }
    }
}

impl fmt::Debug for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({:?}, {})", self.shown(), self.part, self.origin)
    }
}
