//! Control groups: which kind the machine has, and whether we may make one of our own in them. Only told; what
//! a limit needs is the business of whoever sets it.

use std::path::PathBuf;

use super::Patient;
use crate::facts::MountPoint;
use crate::model::check::Check;

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
    if writable > 0 { Check::ok(id, what, why) } else { Check::warn(id, what, why) }
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
