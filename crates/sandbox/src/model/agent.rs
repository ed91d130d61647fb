//! The caller's ssh-agent inside: the place it has there, and the ways its socket can take to get there.
//!
//! The agent signs with keys that never leave it; what goes in is a socket, never a key. Which way is taken is
//! decided from facts ([`Forwarding`] is data); engines carry it out.

use serde::{Deserialize, Serialize};

use super::mount::FileIdentity;
use super::path::HostPath;
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

impl Default for Agent {
    /// What holds for sandboxes that were made before there was a choice.
    fn default() -> Self {
        Self { asked: Setting::default_value(SshAgent::Off), forwarding: None }
    }
}

/// The way the agent takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "way", rename_all = "snake_case")]
pub enum Forwarding {
    /// The socket itself: it and the sandbox are on one kernel.
    Direct { socket: HostPath, identity: Option<FileIdentity> },
}
