//! What a sandbox that was made before means now, when it is launched again: the user's own small files may have
//! been written anew since, and the ssh-agent is another one with every login. Everything else stays as it was
//! recorded.

use super::error::Error;
use super::gitconfig::FILES;
use super::ssh_agent::Surroundings;
use super::{environment, ssh_agent};
use crate::facts::{Entry, Facts, Kind};
use crate::host::Host;
use crate::model::agent;
use crate::model::mount::{Content, FileIdentity, Mount, MountTable};
use crate::model::resolved::ResolvedSpec;

/// Looks again at what may have changed since `resolved` was recorded.
pub fn renew(resolved: &mut ResolvedSpec, host: &Host, facts: &dyn Facts) -> Result<(), Error> {
    let warnings = &mut resolved.warnings;
    warnings.retain(|warning| warning.code != super::warnings::AGENT_UNAVAILABLE);
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
    let files: Vec<_> =
        FILES.iter().chain([&ssh_agent::KNOWN_HOSTS]).map(|name| resolved.home.join(name)).collect();
    mounts.retain_mut(|mount| !files.contains(&mount.target) || is_there(mount, facts));
    resolved.mounts = MountTable::new(mounts).map_err(Error::Conflict)?;
    resolved.ssh_agent = found;
    Ok(())
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
