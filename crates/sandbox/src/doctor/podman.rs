//! What Podman needs of the machine for somebody who is not root, found out without calling it: whatever it is
//! asked, it makes directories and leaves a process behind.

use std::path::PathBuf;

use super::Patient;
use crate::model::check::Check;
use crate::resolve::helper;

/// The ranges of ids that users may give away.
const RANGES: [&str; 2] = ["/etc/subuid", "/etc/subgid"];
const TUNNEL: &str = "/dev/net/tun";

/// Ids, network and limits of a caller without root. Root has all of them.
pub(super) fn checks(patient: Patient<'_>) -> Vec<Check> {
    if patient.host.uid == 0 { Vec::new() } else { vec![ids(patient), network(patient), limits(patient)] }
}

/// Whether Podman has ever run for this caller.
pub(super) fn has_storage(patient: Patient<'_>) -> bool {
    let below = |base: PathBuf| base.join("containers/storage");
    let data = patient.host.environment.get("XDG_DATA_HOME").filter(|value| !value.is_empty());
    let home = patient.host.home.as_ref().map(|home| PathBuf::from(home.join(".local/share")));
    let place = match (patient.host.uid, data.map(PathBuf::from).or(home)) {
        (0, _) => Some("/var/lib".into()),
        (_, base) => base,
    };
    place.is_some_and(|base| patient.facts.kind(below(base)).is_ok())
}

fn ids(patient: Patient<'_>) -> Check {
    let (id, what) = ("podman.ids", "ids for containers");
    if helper("newuidmap", patient.host, patient.facts).is_none() {
        return Check::fail(id, what, "there is no `newuidmap`").mend("sudo apt-get install uidmap");
    }
    let name = patient.host.environment.get("USER").map_or("", String::as_str);
    let uid = patient.host.uid.to_string();
    let listed = |path: &&str| {
        let text = patient.facts.read_small(path, 1 << 20).unwrap_or_default();
        text.lines().filter_map(|line| line.split(':').next()).any(|owner| owner == uid || owner == name)
    };
    match RANGES.iter().find(|path| !listed(path)) {
        None => Check::ok(id, what, "a range of your own"),
        Some(path) => Check::fail(id, what, format!("`{path}` has no range for you"))
            .mend("sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER"),
    }
}

fn network(patient: Patient<'_>) -> Check {
    let (id, what) = ("podman.network", "a way out");
    if helper("slirp4netns", patient.host, patient.facts).is_none() {
        return Check::warn(id, what, "there is no `slirp4netns`: no network but `none` and `host`")
            .mend("sudo apt-get install slirp4netns");
    }
    match patient.facts.kind(TUNNEL) {
        Ok(device) if device.readable => Check::ok(id, what, "`slirp4netns` and its device are here"),
        _ => Check::warn(id, what, format!("`{TUNNEL}` cannot be opened: no network but `none` and `host`"))
            .mend(format!("sudo modprobe tun && sudo chmod 666 {TUNNEL}")),
    }
}

fn limits(patient: Patient<'_>) -> Check {
    let (id, what) = ("podman.limits", "limits");
    let mounts = patient.facts.mounts().unwrap_or_default();
    let old = mounts.iter().any(|mount| mount.file_system == "cgroup");
    if old || !mounts.iter().any(|mount| mount.file_system == "cgroup2") {
        return Check::warn(
            id,
            what,
            "without root they need control groups of version 2 alone; one that is named ends with 125",
        );
    }
    Check::ok(id, what, "control groups of version 2; those that your login delegates can be limited")
}
