//! What a sandbox that was made before means now, when it is launched again: the user's own small files may have
//! been written anew since, and the ssh-agent is another one with every login, as systemd's user manager is. Everything else stays as it was
//! recorded.

use super::error::ResolveError;
use super::gitconfig::FILES;
use super::ssh_agent::Surroundings;
use super::{environment, groups, ssh_agent};
use crate::facts::{Entry, Facts, Kind};
use crate::host::Host;
use crate::model::agent;
use crate::model::mount::{Content, FileIdentity, HostAccess, Mount, MountTable};
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::{ResolvedSpec, Warning};

/// Looks again at what may have changed since `resolved` was recorded.
pub fn renew(resolved: &mut ResolvedSpec, host: &Host, facts: &dyn Facts) -> Result<(), ResolveError> {
    let host = &beside(resolved, host);
    let warnings = &mut resolved.warnings;
    warnings.retain(|warning| warning.code != Warning::NO_AGENT);
    let surroundings = Surroundings {
        host,
        facts,
        os: resolved.platform.os,
        engine: resolved.engine,
        container: resolved.container.as_ref(),
    };
    let found = ssh_agent::decide(&resolved.ssh_agent.asked, &surroundings, warnings)?;
    resolved.environment.remove(agent::VARIABLE);
    resolved.environment.append(&mut environment::last(&found, resolved.engine));
    let is_agent = |mount: &Mount| matches!(mount.content, Content::Agent);
    let mut mounts: Vec<Mount> = resolved.mounts.iter().filter(|mount| !is_agent(mount)).cloned().collect();
    mounts.extend(ssh_agent::socket_mount(&found, resolved.engine));
    let sources = users_files(&mounts, &resolved.home);
    mounts.retain_mut(|mount| !sources.iter().any(|path| shows(mount, path)) || is_there(mount, facts));
    resolved.mounts = MountTable::new(mounts).map_err(ResolveError::Conflict)?;
    resolved.ssh_agent = found;
    resolved.systemd = groups::systemd(&resolved.limits, resolved.engine, host, facts);
    Ok(())
}

/// The caller, who may be anywhere now: nothing that the sandbox may have written works for us.
fn beside(resolved: &ResolvedSpec, host: &Host) -> Host {
    let mut host = host.clone();
    host.foreign.push(resolved.source.root.clone());
    host.foreign.extend(resolved.mounts.iter().filter_map(|mount| match &mount.content {
        Content::Host { source, access: HostAccess::Write, .. } => Some(source.clone()),
        _ => None,
    }));
    host
}

/// The files of the user that are shown because they are there.
fn users_files(mounts: &[Mount], home: &BoxPath) -> Vec<HostPath> {
    let names = FILES.iter().chain([&ssh_agent::KNOWN_HOSTS]);
    let places: Vec<BoxPath> = names.map(|name| home.join(name)).collect();
    let shown = mounts.iter().filter(|mount| places.contains(&mount.target));
    shown
        .filter_map(|mount| match &mount.content {
            Content::Host { source, .. } => Some(source.clone()),
            _ => None,
        })
        .collect()
}

fn shows(mount: &Mount, path: &HostPath) -> bool {
    matches!(&mount.content, Content::Host { source, .. } if source == path)
}

/// Whether a file of the user is still there. It may be another one by now: git and ssh replace theirs.
fn is_there(mount: &mut Mount, facts: &dyn Facts) -> bool {
    let Content::Host { source, identity, .. } = &mut mount.content else { return true };
    match facts.kind(source.as_path()) {
        Ok(Entry { kind: Kind::File, readable: true, device, inode, .. }) => {
            *identity = Some(FileIdentity { device, inode });
            true
        }
        _ => false,
    }
}
