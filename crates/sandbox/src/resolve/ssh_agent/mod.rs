//! Whether the caller's ssh-agent is seen inside, and by which way.
//!
//! An agent that is asked for by default and is not there is said once and the launch goes on; one that is
//! required stops it. Nothing is guessed: the socket is the one the caller's variable names, and it must accept
//! a connection.

mod podman;

use super::case::Case;
use super::error::ResolveError;
use super::source::Workspace;
use crate::facts::{Facts, Failure, Kind};
use crate::host::Host;
use crate::model::agent::{Agent, Distance, Forwarding, VARIABLE};
use crate::model::container::Container;
use crate::model::engine::Maker;
use crate::model::mount::{Content, FileIdentity, HostAccess, Mount, Ownership};
use crate::model::path::{BoxPath, HostPath};
use crate::model::platform::Os;
use crate::model::resolved::{EngineName, Warning};
use crate::model::setting::Setting;
use crate::model::spec::SshAgent;

pub use podman::ConnectionError;

/// What Docker calls the system that it runs on, and the call that asks for it.
const DESKTOP: &str = "Docker Desktop";
const SYSTEM: &[&str] = &["info", "--format", "{{.OperatingSystem}}"];
/// Host keys that the caller trusts. Without them a server's key would have to be trusted blindly inside.
pub(super) const KNOWN_HOSTS: &str = ".ssh/known_hosts";

/// The way on for whoever can do without the agent.
const WITHOUT: &str = "`SANDTABLE_SSH_AGENT=off` goes on without the agent";

/// What the way depends on.
pub(super) struct Surroundings<'a> {
    pub(super) host: &'a Host,
    pub(super) facts: &'a dyn Facts,
    pub(super) os: Os,
    pub(super) engine: EngineName,
    /// The container engine, when one runs the sandbox.
    pub(super) container: Option<&'a Container>,
}

/// The agent, as far as it is wanted and there. A container engine in a virtual machine that cannot be reached is
/// an error in any case but `off`: whoever has an agent there would find it missing only inside.
pub(super) fn decide(
    asked: &Setting<SshAgent>,
    around: &Surroundings<'_>,
    found: &mut Vec<Warning>,
) -> Result<Agent, ResolveError> {
    let agent = |forwarding| Agent { asked: asked.clone(), forwarding };
    if asked.value == SshAgent::Off {
        return Ok(agent(None));
    }
    match way(around) {
        Ok(forwarding) => Ok(agent(Some(forwarding))),
        Err(Obstacle::Connection(error)) => Err(ResolveError::AgentConnection(error)),
        Err(Obstacle::Unavailable(why)) if asked.value == SshAgent::Required => {
            Err(ResolveError::AgentUnavailable { why })
        }
        Err(Obstacle::Unavailable(why)) => {
            found.push(Warning::no_agent(&why));
            Ok(agent(None))
        }
    }
}

/// Why there is no way.
enum Obstacle {
    Unavailable(String),
    Connection(ConnectionError),
}

impl From<String> for Obstacle {
    fn from(why: String) -> Self {
        Self::Unavailable(why)
    }
}

/// One way for each kind of machine and engine.
fn way(around: &Surroundings<'_>) -> Result<Forwarding, Obstacle> {
    let socket = socket(around.host, around.facts)?;
    match Distance::of(around.os, around.engine) {
        Distance::DesktopMachine => {
            desktop(around)?;
            Ok(Forwarding::Desktop)
        }
        Distance::TunnelMachine => {
            if socket.to_string().contains([':', '%', '$']) {
                return Err(Obstacle::Connection(ConnectionError::Socket { path: socket }));
            }
            let (ssh, connection) = podman::connection(around).map_err(Obstacle::Connection)?;
            Ok(Forwarding::Tunnel { socket, ssh, connection })
        }
        Distance::Near => direct(around, socket),
    }
}

/// Whether the engine says that it is Docker Desktop.
fn desktop(around: &Surroundings<'_>) -> Result<(), Obstacle> {
    let container = around.container.ok_or_else(|| "there is no `docker` here".to_owned())?;
    let variables: Vec<(String, String)> =
        container.variables.iter().map(|(name, variable)| (name.clone(), variable.value.clone())).collect();
    let said = around.facts.output(&container.program, SYSTEM, &variables);
    match said {
        Ok(said) if said.code == Some(0) && said.stdout.contains(DESKTOP) => Ok(()),
        Ok(said) if said.code == Some(0) => {
            let other = format!("only {DESKTOP} can bring it in, and this is `{}`", said.stdout.trim());
            Err(Obstacle::Unavailable(other))
        }
        Ok(said) => {
            Err(Obstacle::Unavailable(format!("`docker info` does not answer: {}", said.stderr.trim())))
        }
        Err(why) => Err(Obstacle::Unavailable(format!("`docker info` does not answer: {why}"))),
    }
}

/// The socket and what belongs to it.
pub(super) fn mounts(
    case: &Case<'_>,
    workspace: &Workspace,
    agent: &Agent,
    engine: EngineName,
) -> Vec<Mount> {
    let Some(socket) = socket_mount(agent, engine) else { return Vec::new() };
    let known = known_hosts(case, workspace).map(|(target, content)| Mount {
        target,
        content,
        reason: "the servers that the user knows".to_owned(),
        origin: agent.asked.origin.clone(),
    });
    std::iter::once(socket).chain(known).collect()
}

/// The socket at its place.
pub(super) fn socket_mount(agent: &Agent, engine: EngineName) -> Option<Mount> {
    Some(Mount {
        target: agent.place(engine)?,
        content: Content::Agent,
        reason: "the user's ssh-agent, which signs without giving its keys away".to_owned(),
        origin: agent.asked.origin.clone(),
    })
}

/// The socket of the caller, on the sandbox's own kernel. In a container root has lost what lets it use the
/// socket of somebody else.
fn direct(around: &Surroundings<'_>, socket: HostPath) -> Result<Forwarding, Obstacle> {
    let contained = around.engine.traits().mounts == Maker::Engine;
    if contained && socket.to_string().contains(':') {
        return Err(Obstacle::Unavailable(unusable(
            &socket,
            "a container engine takes no path with a colon",
        )));
    }
    let entry = around.facts.kind(&socket).map_err(|why| unusable(&socket, &why.to_string()))?;
    let everybody = entry.mode & 0o002 != 0;
    if contained && entry.uid != around.host.uid && !everybody {
        return Ok(Forwarding::Relayed { socket });
    }
    let identity = Some(FileIdentity { device: entry.device, inode: entry.inode });
    Ok(Forwarding::Direct { socket, identity })
}

/// The socket that the caller's variable names: there, a socket, and alive.
pub fn socket(host: &Host, facts: &dyn Facts) -> Result<HostPath, String> {
    if host.odd_variables.iter().any(|name| name == VARIABLE) {
        return Err(format!("`{VARIABLE}` is not valid UTF-8"));
    }
    let written = host.environment.get(VARIABLE).filter(|value| !value.is_empty());
    let written = written.ok_or_else(|| format!("`{VARIABLE}` is not set"))?;
    let path =
        HostPath::new(written).map_err(|_| format!("`{VARIABLE}` is no absolute path: `{written}`"))?;
    let failed = |why: Failure| unusable(&path, &why.to_string());
    let real = facts.real_path(&path).map_err(failed)?;
    let real = HostPath::new(real).map_err(|error| unusable(&path, &error.to_string()))?;
    match facts.kind(&real).map_err(failed)?.kind {
        Kind::Socket => {}
        _ => return Err(unusable(&path, "it is no socket")),
    }
    if facts.accepts(&real).map_err(failed)? {
        Ok(real)
    } else {
        Err(unusable(&path, "nobody listens there"))
    }
}

fn unusable(path: &HostPath, why: &str) -> String {
    format!("`{VARIABLE}` names `{path}`, and {why}")
}

fn known_hosts(case: &Case<'_>, workspace: &Workspace) -> Option<(BoxPath, Content)> {
    let home = case.home.as_ref()?;
    let place = home.real.join(KNOWN_HOSTS);
    let real = case.facts.real_path(&place).ok()?;
    let entry = case.facts.kind(&real).ok().filter(|entry| entry.kind == Kind::File && entry.readable)?;
    let target = place.same_inside();
    if workspace.holds(&target) {
        return None;
    }
    let content = Content::Host {
        source: HostPath::new(real).ok()?,
        access: HostAccess::Read,
        ownership: Ownership::Caller,
        identity: Some(FileIdentity { device: entry.device, inode: entry.inode }),
    };
    Some((target, content))
}
