//! Control groups: which kind the machine has, whether we may make one of our own in them, and who would give us
//! one. Only told; what a limit needs is the business of whoever sets it.

use std::path::PathBuf;

use super::Patient;
use crate::facts::MountPoint;
use crate::model::check::{Check, Status};
use crate::model::resolved::SystemdKind;
use crate::resolve;

/// What there is on a machine that systemd has started.
const BOOTED: &str = "/run/systemd/system";

/// Hands every controller that a limit needs on to the systemd of each user.
const DELEGATE: &str = "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu memory pids\\n' \
     | sudo tee /etc/systemd/system/user@.service.d/sandtable.conf && sudo systemctl daemon-reload";

pub(super) fn control_groups(patient: Patient<'_>) -> Check {
    let (id, what) = ("machine.cgroups", "control groups");
    let mounts = patient.facts.mounts().unwrap_or_default();
    let of =
        |kind: &str| mounts.iter().filter(|mount| mount.file_system == kind).collect::<Vec<&MountPoint>>();
    let (new, old) = (of("cgroup2"), of("cgroup"));
    let kind = match (new.is_empty(), old.is_empty()) {
        (false, true) => "version 2",
        (true, false) => "version 1",
        (false, false) => "hybrid: version 1 with version 2 beside it",
        (true, true) => return Check::warn(id, what, "none are mounted"),
    };
    let own = own(patient);
    let places = new.iter().map(|mount| place(mount, &own, "")).chain(old.iter().map(|mount| {
        let name = mount.target.file_name().map(|name| name.to_string_lossy().into_owned());
        place(mount, &own, &name.unwrap_or_default())
    }));
    let (mut writable, mut count) = (0, 0);
    for place in places {
        count += 1;
        writable += usize::from(patient.facts.writable(&place) == Ok(true));
    }
    let why = format!("{kind}; our own group can be written in {writable} of {count} hierarchies");
    let found = if writable > 0 { Check::ok(id, what, why) } else { Check::warn(id, what, why) };
    // Where version 1 has the controllers systemd has none to give.
    match new.first().filter(|_| old.is_empty()) {
        Some(unified) => with_systemd(patient, unified, found),
        None => found,
    }
}

/// The same where systemd has the groups: what it would give us.
fn with_systemd(patient: Patient<'_>, unified: &MountPoint, found: Check) -> Check {
    let Some(manager) = resolve::systemd_socket(patient.host) else { return found };
    if patient.facts.accepts(manager.socket.as_path()) != Ok(true) {
        return without_systemd(patient, found);
    }
    let lacking = match manager.kind {
        SystemdKind::System => Vec::new(),
        SystemdKind::User => lacking(patient, unified),
    };
    let why = format!("{}; systemd gives a sandbox with limits one of its own", found.why);
    if lacking.is_empty() {
        return Check { status: Status::Ok, why, ..found };
    }
    let why = format!("{why}, but without {}", lacking.join(" and "));
    Check { status: Status::Warn, why, ..found }.mend(DELEGATE)
}

/// Nobody can be asked. A user of a machine with systemd who is not logged in has no manager.
fn without_systemd(patient: Patient<'_>, found: Check) -> Check {
    let systemd = patient.facts.kind(BOOTED).is_ok();
    if found.status == Status::Ok || !systemd || patient.host.uid == 0 {
        return found;
    }
    let why =
        format!("{}; there is no systemd of yours that could give us one: you are not logged in", found.why);
    let mend = format!("sudo loginctl enable-linger {}", patient.host.uid);
    Check { why, ..found }.mend(mend)
}

/// The controllers of limits that the systemd of a user has not got itself. What cannot be seen is not said to lack.
fn lacking(patient: Patient<'_>, unified: &MountPoint) -> Vec<&'static str> {
    let uid = patient.host.uid;
    let group = format!("user.slice/user-{uid}.slice/user@{uid}.service/cgroup.controllers");
    let Ok(text) = patient.facts.read_small(unified.target.join(group), 4096) else { return Vec::new() };
    let has = |name: &&str| text.split_ascii_whitespace().any(|word| word == *name);
    ["cpu", "memory", "pids"].into_iter().filter(|name| !has(name)).collect()
}

/// The lines of `/proc/self/cgroup`: controllers (none for version 2) and the path of our group.
fn own(patient: Patient<'_>) -> Vec<(String, String)> {
    let text = patient.facts.read_small("/proc/self/cgroup", 1 << 16).unwrap_or_default();
    let parts = text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    parts.map(|(controllers, path)| (controllers.to_owned(), path.to_owned())).collect()
}

fn place(mount: &MountPoint, own: &[(String, String)], controller: &str) -> PathBuf {
    let ours = own.iter().find(|(controllers, _)| {
        controllers.split(',').any(|name| name.trim_start_matches("name=") == controller)
    });
    let path = ours.map_or("", |(_, path)| path.trim_start_matches('/'));
    if path.is_empty() { mount.target.clone() } else { mount.target.join(path) }
}
