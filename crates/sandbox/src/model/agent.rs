//! The caller's ssh-agent inside: the place it has there, and the ways its socket can take to get there.
//!
//! The agent signs with keys that never leave it; what goes in is a socket, never a key. Which way is taken is
//! decided from facts ([`Forwarding`] is data); engines carry it out.

use serde::{Deserialize, Serialize};

use super::mount::{Content, FileIdentity, MountTable};
use super::path::{BoxPath, HostPath};
use super::platform::Os;
use super::resolved::{EngineName, ResolvedSpec, Warning};
use super::setting::Setting;
use super::spec::SshAgent;

/// Where the agent's socket is inside, on every engine.
pub const SOCKET: &str = "/ssh-agent";
/// The variable that says so; outside it says where the caller's is.
pub const VARIABLE: &str = "SSH_AUTH_SOCK";

/// What was asked about the agent, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub asked: Setting<SshAgent>,
    /// None: there is no agent inside.
    pub forwarding: Option<Forwarding>,
}

impl Agent {
    /// Where the agent's socket is inside, if it is. Seatbelt shows the host's own files, so there it is where the
    /// host has it.
    pub fn place(&self, engine: EngineName) -> Option<BoxPath> {
        match (self.forwarding.as_ref()?, engine) {
            (Forwarding::Direct { socket, .. }, EngineName::Seatbelt) => Some(socket.same_inside()),
            _ => Some(BoxPath::new(SOCKET).expect("absolute")),
        }
    }
}

impl Default for Agent {
    /// What holds for sandboxes that were made before there was a choice.
    fn default() -> Self {
        Self { asked: Setting::default_value(SshAgent::Off), forwarding: None }
    }
}

/// Where a sandbox runs, as seen from the caller's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// On the same kernel.
    Near,
    /// In a virtual machine that Docker Desktop may have brought a socket into.
    DesktopMachine,
    /// In the virtual machine of Podman, which has none.
    TunnelMachine,
}

impl Distance {
    pub fn of(os: Os, engine: EngineName) -> Self {
        match (os, engine) {
            (Os::MacOs, EngineName::Docker) => Self::DesktopMachine,
            (Os::MacOs, EngineName::Podman) => Self::TunnelMachine,
            (Os::Linux, _) | (Os::MacOs, EngineName::Native | EngineName::Seatbelt) => Self::Near,
        }
    }
}

/// The way the agent takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "way", rename_all = "snake_case")]
pub enum Forwarding {
    /// The socket itself: it and the sandbox are on one kernel.
    Direct { socket: HostPath, identity: Option<FileIdentity> },
    /// A socket of ours, whose clients the supervisor connects: to the agent's own the workload is a stranger.
    Relayed { socket: HostPath },
    /// The socket that Docker Desktop shows in its virtual machine. That it is there is found out with the image,
    /// when that is.
    Desktop,
    /// A tunnel into the virtual machine of Podman, which no socket of the host reaches.
    Tunnel { socket: HostPath, ssh: HostPath, connection: Connection },
}

impl ResolvedSpec {
    /// Takes the agent out of a request, with the reason.
    pub fn without_agent(&mut self, why: Warning) {
        self.ssh_agent.forwarding = None;
        self.environment.remove(VARIABLE);
        let others = self.mounts.iter().filter(|mount| mount.content != Content::Agent).cloned().collect();
        self.mounts = MountTable::new(others).expect("a table without one of its mounts is a table");
        self.warnings.push(why);
    }
}

/// A way to log in to a virtual machine of Podman. Made by [`resolve`](crate::resolve), which has checked that no
/// part of it could be taken for an option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    pub name: String,
    pub user: String,
    /// A name or an address, without brackets.
    pub host: String,
    pub port: u16,
    /// The file with the key to log in with.
    pub identity: Option<HostPath>,
}
