//! Whom to ask for a control group. Only where something is limited, and only whether somebody is there: what he
//! answers is found out when the sandbox is launched.

use crate::facts::Facts;
use crate::host::Host;
use crate::model::engine::Maker;
use crate::model::limits::Limits;
use crate::model::path::HostPath;
use crate::model::resolved::{EngineName, Systemd, SystemdKind};

/// The systemd that would give us a control group of version 2.
pub(super) fn systemd(
    limits: &Limits,
    engine: EngineName,
    host: &Host,
    facts: &dyn Facts,
) -> Option<Systemd> {
    let any = limits.cpus.is_some() || limits.memory.is_some() || limits.pids.is_some();
    if !any || engine.traits().groups != Maker::Sandtable {
        return None;
    }
    let version_two = facts.mounts().is_ok_and(|all| all.iter().any(|mount| mount.file_system == "cgroup2"));
    let found = socket(host).filter(|_| version_two)?;
    (facts.accepts(found.socket.as_path()) == Ok(true)).then_some(found)
}

/// Where that systemd listens, if it does: root's is that of the machine, everybody else has their own.
pub fn socket(host: &Host) -> Option<Systemd> {
    let (kind, directory) = if host.uid == 0 {
        (SystemdKind::System, "/run".to_owned())
    } else {
        let usual = || format!("/run/user/{}", host.uid);
        let named = host.environment.get("XDG_RUNTIME_DIR").filter(|path| path.starts_with('/'));
        (SystemdKind::User, named.cloned().unwrap_or_else(usual))
    };
    let socket = HostPath::new(format!("{directory}/systemd/private")).ok()?;
    Some(Systemd { kind, socket })
}
