//! Carrying out the way that the caller's ssh-agent takes into a sandbox.
//!
//! The way was decided before ([`Forwarding`]); here it becomes words for a container engine and a [`Setup`],
//! both data, and then a [`Guard`]: what it started ends, and what it made is removed, once, when it is
//! dropped. No way makes up for another: one that fails says so.

mod desktop;
pub(super) mod relay;
#[cfg(test)]
mod tests;
mod tunnel;

use sandtable_protocol::op;
use serde::{Deserialize, Serialize};

pub use relay::RelayError;
pub use tunnel::{Tunnel, TunnelError};

use super::Place;
use super::oci::Dialect;
use super::oci::plan::{Arg, Part};
use crate::model::agent::{Forwarding, SOCKET};
use crate::model::layout;
use crate::model::resolved::{ResolvedSpec, Secrecy, Warning};
use crate::model::spec::SshAgent;

/// What a container engine is told, and what has to be set up first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lowered {
    pub args: Vec<Arg>,
    pub setup: Setup,
}

/// What has to be there before the engine is called, until the sandbox is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "way", rename_all = "snake_case")]
pub enum Setup {
    #[default]
    Nothing,
    Relay(op::Relay),
    Tunnel(Box<Tunnel>),
}

/// Holds what was set up.
#[derive(Debug)]
pub enum Guard {
    Nothing,
    Relay(relay::Guard),
    Tunnel(Box<tunnel::Open>),
}

impl Guard {
    /// The command runs.
    pub fn start(&self) {
        if let Self::Relay(relay) = self {
            relay.start();
        }
    }
}

/// Why the agent does not get in. The launch stops.
#[derive(Debug, thiserror::Error)]
pub enum SshAgentError {
    #[error("the ssh-agent is required, and there is none to bring in: {why}")]
    Unavailable { why: String },
    #[error("cannot bring the ssh-agent in")]
    Relay(#[from] RelayError),
    #[error("the ssh-agent cannot be brought into Podman's machine")]
    Tunnel(#[from] TunnelError),
}

impl SshAgentError {
    /// What the user can do about it; the last line is the way on without the agent.
    pub fn remedy(&self) -> String {
        let without = "`SANDTABLE_SSH_AGENT=off` goes on without the agent";
        match self {
            Self::Unavailable { .. } | Self::Relay(_) => without.to_owned(),
            Self::Tunnel(error) => format!("{}\n{without}", error.remedy()),
        }
    }
}

/// Finds out what only a container of the image can tell. An agent that turns out not to be there is taken out
/// of `spec`, or stops the launch if it is required.
pub(super) fn check(spec: &mut ResolvedSpec) -> Result<(), SshAgentError> {
    if spec.ssh_agent.forwarding != Some(Forwarding::Desktop) {
        return Ok(());
    }
    match desktop::check(spec) {
        Ok(()) => Ok(()),
        Err(why) if spec.ssh_agent.asked.value == SshAgent::Required => {
            Err(SshAgentError::Unavailable { why })
        }
        Err(why) => {
            spec.without_agent(Warning::no_agent(&why));
            Ok(())
        }
    }
}

/// The agent of `spec` in the words of a container engine. The variable is part of the environment.
pub fn lower(spec: &ResolvedSpec, dialect: Dialect, place: &Place) -> Lowered {
    let word = |value: String| Arg {
        value,
        part: Part::SshAgent,
        origin: spec.ssh_agent.asked.origin.clone(),
        secrecy: Secrecy::Open,
    };
    // Without the label SELinux keeps containers of this kernel from the socket.
    let label = if dialect == Dialect::Podman { ":z" } else { "" };
    let (volume, setup) = match &spec.ssh_agent.forwarding {
        None => return Lowered::default(),
        Some(Forwarding::Direct { socket, .. }) => (format!("{socket}:{SOCKET}{label}"), Setup::Nothing),
        Some(Forwarding::Relayed { socket }) => {
            let at = place.directory.join(layout::SSH_AGENT);
            let volume = format!("{at}:{SOCKET}{label}");
            let to = socket.as_path().to_owned();
            (volume, Setup::Relay(op::Relay { at: at.into(), to, owner: op::Owner::Everybody }))
        }
        Some(Forwarding::Desktop) => (format!("{}:{SOCKET}", desktop::MAGIC_SOCKET), Setup::Nothing),
        Some(Forwarding::Tunnel { socket, ssh, connection }) => {
            let tunnel = tunnel::plan(ssh, connection, socket, place);
            (format!("{}:{SOCKET}", tunnel.far), Setup::Tunnel(Box::new(tunnel)))
        }
    };
    Lowered { args: vec![word("--volume".to_owned()), word(volume)], setup }
}

/// Sets up what has to be there before the engine is called.
pub fn set_up(setup: &Setup) -> Result<Guard, SshAgentError> {
    match setup {
        Setup::Nothing => Ok(Guard::Nothing),
        Setup::Relay(relay) => Ok(Guard::Relay(relay::Guard::prepare(relay)?)),
        Setup::Tunnel(tunnel) => Ok(Guard::Tunnel(Box::new(tunnel::Open::new(tunnel)?))),
    }
}
