//! Whether the caller's ssh-agent is seen inside, and by which way.
//!
//! An agent that is asked for by default and is not there is said once and the launch goes on; one that is
//! required stops it. Nothing is guessed: the socket is the one the caller's variable names, and it must accept
//! a connection.

use super::case::Case;
use super::error::Error;
use super::source::Workspace;
use super::warnings;
use crate::facts::{Facts, Failure, Kind};
use crate::host::Host;
use crate::model::agent::{Agent, Forwarding, SOCKET, VARIABLE};
use crate::model::mount::{Content, FileIdentity, HostAccess, Mount, Ownership};
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::Warning;
use crate::model::setting::Setting;
use crate::model::spec::SshAgent;

/// Host keys that the caller trusts. Without them a server's key would have to be trusted blindly inside.
pub(super) const KNOWN_HOSTS: &str = ".ssh/known_hosts";

/// The agent, as far as it is wanted and there.
pub(super) fn find(case: &Case<'_>, found: &mut Vec<Warning>) -> Result<Agent, Error> {
    decide(&case.spec.ssh_agent, case.host, case.facts, found)
}

/// The same for a setting that was recorded with a sandbox.
pub(super) fn decide(
    asked: &Setting<SshAgent>,
    host: &Host,
    facts: &dyn Facts,
    found: &mut Vec<Warning>,
) -> Result<Agent, Error> {
    let agent = |forwarding| Agent { asked: asked.clone(), forwarding };
    if asked.value == SshAgent::Off {
        return Ok(agent(None));
    }
    match direct(host, facts) {
        Ok(forwarding) => Ok(agent(Some(forwarding))),
        Err(why) if asked.value == SshAgent::Required => Err(Error::AgentUnavailable { why }),
        Err(why) => {
            found.push(warnings::agent_unavailable(&why));
            Ok(agent(None))
        }
    }
}

/// The socket and what belongs to it.
pub(super) fn mounts(case: &Case<'_>, workspace: &Workspace, agent: &Agent) -> Vec<Mount> {
    if agent.forwarding.is_none() {
        return Vec::new();
    }
    let socket = socket_mount(agent);
    let known = known_hosts(case, workspace).map(|(target, content)| Mount {
        target,
        content,
        reason: "the servers that the user knows".to_owned(),
        origin: agent.asked.origin.clone(),
    });
    std::iter::once(socket).chain(known).collect()
}

/// The socket at its place.
pub(super) fn socket_mount(agent: &Agent) -> Mount {
    Mount {
        target: BoxPath::new(SOCKET).expect("absolute"),
        content: Content::Agent,
        reason: "the user's ssh-agent, which signs without giving its keys away".to_owned(),
        origin: agent.asked.origin.clone(),
    }
}

/// The socket of the caller, on the sandbox's own kernel.
fn direct(host: &Host, facts: &dyn Facts) -> Result<Forwarding, String> {
    let socket = socket(host, facts)?;
    let entry = facts.kind(&socket).map_err(|why| unusable(&socket, &why.to_string()))?;
    let identity = Some(FileIdentity { device: entry.device, inode: entry.inode });
    Ok(Forwarding::Direct { socket, identity })
}

/// The socket that the caller's variable names: there, a socket, and alive.
fn socket(host: &Host, facts: &dyn Facts) -> Result<HostPath, String> {
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
