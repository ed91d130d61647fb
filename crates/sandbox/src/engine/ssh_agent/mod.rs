//! Carrying out the way that the caller's ssh-agent takes into a sandbox.
//!
//! The way was decided before ([`Forwarding`]); here it becomes words for a container engine and a
//! [`Preparation`], both data, and then a [`Guard`]: what it started ends, and what it made is removed, once,
//! when it is dropped. No way makes up for another: one that fails says so.

mod desktop;
pub(super) mod relay;
#[cfg(test)]
mod tests;
mod tunnel;

use serde::{Deserialize, Serialize};

pub use desktop::Probe;
pub use tunnel::{Tunnel, TunnelError};

use super::Place;
use super::oci::Dialect;
use super::oci::plan::{Arg, Part};
use crate::model::agent::{Forwarding, SOCKET};
use crate::model::resolved::{ResolvedSpec, Secrecy};

/// What a container engine is told, and what has to be done first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lowered {
    pub args: Vec<Arg>,
    pub preparation: Preparation,
}

/// What has to be done before the engine is called, and undone after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "way", rename_all = "snake_case")]
pub enum Preparation {
    #[default]
    Nothing,
    /// The socket of Docker Desktop has to be there.
    Probe(Probe),
    Tunnel(Tunnel),
}

/// Holds what a preparation made.
#[derive(Debug)]
pub enum Guard {
    Nothing,
    Tunnel(Box<tunnel::Open>),
}

/// Why the agent does not get in.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The launch can go on without it, unless it is required: the arguments of [`Part::SshAgent`] and the variable
    /// are left out.
    #[error("{why}")]
    Unavailable { why: String },
    /// The launch stops.
    #[error("the ssh-agent cannot be brought into Podman's machine")]
    Tunnel(#[from] TunnelError),
}

impl Error {
    /// What the user can do about it.
    pub fn remedy(&self) -> String {
        let without = "`SANDTABLE_SSH_AGENT=off` goes on without the agent";
        match self {
            Self::Unavailable { .. } => without.to_owned(),
            Self::Tunnel(error) => format!("{}\n{without}", error.remedy()),
        }
    }
}

/// The agent of `spec` in the words of a container engine. The variable is part of the environment.
pub fn lower(spec: &ResolvedSpec, dialect: Dialect, place: &Place) -> Lowered {
    let origin = &spec.ssh_agent.asked.origin;
    let volume = |source: String, label: &str| {
        let word = |value: String| Arg {
            value,
            part: Part::SshAgent,
            origin: origin.clone(),
            secrecy: Secrecy::Open,
        };
        vec![word("--volume".to_owned()), word(format!("{source}:{SOCKET}{label}"))]
    };
    match (&spec.ssh_agent.forwarding, dialect) {
        (None, _) => Lowered::default(),
        (Some(Forwarding::Direct { socket, .. }), dialect) => {
            // Without the label SELinux keeps containers from the socket.
            let label = if dialect == Dialect::Podman { ":z" } else { "" };
            Lowered { args: volume(socket.to_string(), label), preparation: Preparation::Nothing }
        }
        (Some(Forwarding::DockerDesktop), _) => Lowered {
            args: volume(desktop::MAGIC_SOCKET.to_owned(), ""),
            preparation: desktop::plan(spec).map_or(Preparation::Nothing, Preparation::Probe),
        },
        (Some(Forwarding::PodmanTunnel { socket, ssh, connection }), _) => {
            let tunnel = tunnel::plan(ssh, connection, socket, place);
            Lowered { args: volume(tunnel.far.clone(), ""), preparation: Preparation::Tunnel(tunnel) }
        }
    }
}

/// Does what has to be done before the engine is called.
pub fn prepare(preparation: &Preparation) -> Result<Guard, Error> {
    match preparation {
        Preparation::Nothing => Ok(Guard::Nothing),
        Preparation::Probe(probe) => {
            desktop::check(probe).map_err(|why| Error::Unavailable { why })?;
            Ok(Guard::Nothing)
        }
        Preparation::Tunnel(tunnel) => Ok(Guard::Tunnel(Box::new(tunnel::Open::new(tunnel)?))),
    }
}
