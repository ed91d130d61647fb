//! Whether this already runs inside something: another sandbox, a container, a user namespace. Much that fails
//! on a machine that looks healthy fails for this reason.

use std::path::PathBuf;

use super::Patient;
use crate::model::check::Check;
use crate::resolve::CARD;

/// A container in which sandboxes can be made. Its root would lack a capability, so nobody is root in it.
const OPEN_CONTAINER: &str = "docker run --user 1000:1000 --security-opt systempaths=unconfined \
                              --security-opt seccomp=unconfined --security-opt apparmor=unconfined IMAGE";

/// Directories of `/proc` that exist to be mounted on; a mount there covers nothing.
const MEANT_FOR_MOUNTS: [&str; 2] = ["/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd"];

pub(super) fn container(patient: Patient<'_>) -> Check {
    let (id, what) = ("machine.container", "inside of something");
    let is_there = |path: &str| patient.facts.kind(path).is_ok();
    let inside = if is_there(CARD) {
        "a sandbox of Sandtable, in which no other can be made"
    } else if is_there("/.dockerenv") {
        "a Docker container"
    } else if is_there("/run/.containerenv") {
        "a Podman container"
    } else if patient.host.environment.get("container").is_some_and(|value| !value.is_empty()) {
        "a container, as the variable `container` says"
    } else if !is_initial(patient) {
        "a user namespace"
    } else {
        return Check::ok(id, what, "no: this is a machine of its own, as far as can be seen");
    };
    Check::warn(id, what, format!("this runs in {inside}"))
}

/// Whether this is the user namespace the machine started with.
pub(super) fn is_initial(patient: Patient<'_>) -> bool {
    let map = patient.facts.read_small("/proc/self/uid_map", 1 << 16).unwrap_or_default();
    map.is_empty() || map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// The kernel gives a new namespace a `/proc` only if nothing of the one that is there is covered.
pub(super) fn proc(patient: Patient<'_>) -> Check {
    let (id, what) = ("machine.proc", "a `/proc` without covers");
    let mounts = match patient.facts.mounts() {
        Ok(mounts) => mounts,
        Err(why) => {
            return Check::fail(id, what, format!("the list of mounts cannot be read: {why}"))
                .mend("mount -t proc proc /proc");
        }
    };
    let covers: Vec<PathBuf> = mounts
        .into_iter()
        .map(|mount| mount.target)
        .filter(|target| target.starts_with("/proc") && target.as_os_str() != "/proc")
        .filter(|target| !MEANT_FOR_MOUNTS.iter().any(|place| target.starts_with(place)))
        .collect();
    let Some(first) = covers.first() else { return Check::ok(id, what, "nothing of it is covered") };
    let why = format!(
        "`{}` and {} more are covered, as in most containers; the kernel then allows no new `/proc` in a user namespace",
        first.display(),
        covers.len() - 1
    );
    Check::fail(id, what, why).mend(OPEN_CONTAINER)
}
