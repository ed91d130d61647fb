//! The kernel: its version, user namespaces, Landlock, overlays.

use super::{Patient, nesting};
use crate::facts::Failure;
use crate::model::check::Check;

/// Landlock came with it, and overlays in user namespaces before.
const OLDEST: (u32, u32) = (5, 13);
/// Idmapped mounts as the lower part of an overlay came with it.
const OLDEST_FOR_ROOT: (u32, u32) = (5, 19);

/// How our own AppArmor profile is put in its place.
const LOAD_PROFILE: &str = "sandtable doctor --apparmor-profile | sudo tee /etc/apparmor.d/sandtable >/dev/null && \
                            sudo apparmor_parser -r /etc/apparmor.d/sandtable";

pub(super) fn version(patient: Patient<'_>) -> Check {
    let (id, what) = ("kernel.version", "Linux version");
    let release = patient.facts.kernel().unwrap_or_default();
    let wanted = if patient.host.uid == 0 { OLDEST_FOR_ROOT } else { OLDEST };
    if numbers(&release) >= wanted {
        return Check::ok(id, what, release);
    }
    let (major, minor) = wanted;
    let who = if patient.host.uid == 0 { "a sandbox of root" } else { "a sandbox" };
    Check::fail(id, what, format!("`{release}`, and {who} needs {major}.{minor} or newer"))
        .mend("install a newer kernel and reboot")
}

pub(super) fn user_namespaces(patient: Patient<'_>) -> Check {
    let (id, what) = ("kernel.user-namespaces", "user namespaces");
    let is = |name: &str, value: &str| patient.facts.setting(name).is_ok_and(|set| set == value);
    let ordinary = patient.host.uid != 0;
    if patient.facts.kind("/proc/self/ns/user") == Err(Failure::Missing) {
        return Check::fail(id, what, "this kernel was built without them")
            .mend("install your distribution's kernel");
    }
    if is("user/max_user_namespaces", "0") {
        let where_ = if nesting::is_initial(patient) { "" } else { ", in the namespace this runs in" };
        return Check::fail(
            id,
            what,
            format!("`user.max_user_namespaces` is 0{where_}: nobody may make one"),
        )
        .mend("sudo sysctl -w user.max_user_namespaces=15000");
    }
    if ordinary && is("kernel/unprivileged_userns_clone", "0") {
        return Check::fail(id, what, "`kernel.unprivileged_userns_clone` is 0: only root may make one")
            .mend("sudo sysctl -w kernel.unprivileged_userns_clone=1");
    }
    if ordinary && is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        return restricted(patient);
    }
    Check::ok(id, what, "no setting forbids them")
}

/// Ubuntu's rule: a program without a profile gets a user namespace in which it may do nothing.
fn restricted(patient: Patient<'_>) -> Check {
    let (id, what) = ("kernel.user-namespaces", "user namespaces");
    let current = ["/proc/self/attr/apparmor/current", "/proc/self/attr/current"]
        .iter()
        .find_map(|path| patient.facts.read_small(path, 4096).ok());
    let profile = current.as_deref().map_or("unconfined", |text| text.trim_end_matches(['\0', '\n']));
    if profile == "unconfined" {
        let why =
            "`kernel.apparmor_restrict_unprivileged_userns` is 1, and no AppArmor profile allows them to us";
        return Check::fail(id, what, why).mend(LOAD_PROFILE);
    }
    Check::ok(id, what, format!("restricted by AppArmor, and left to our profile `{profile}`"))
}

pub(super) fn landlock(patient: Patient<'_>) -> Check {
    let (id, what) = ("kernel.landlock", "Landlock");
    match patient.facts.landlock() {
        Ok(version) => Check::ok(id, what, format!("version {version} of its interface")),
        Err(why) => {
            Check::fail(id, what, format!("this kernel does not have it, or it is switched off: {why}"))
                .mend("add `landlock` to the `lsm=` line of the kernel's command line and reboot")
        }
    }
}

pub(super) fn overlay(patient: Patient<'_>) -> Check {
    let (id, what) = ("kernel.overlay", "overlay file system");
    let known = patient.facts.read_small("/proc/filesystems", 1 << 16).unwrap_or_default();
    if known.lines().any(|line| line.trim_start_matches("nodev").trim() == "overlay") {
        return Check::ok(id, what, "the kernel has it, and from 5.11 on in user namespaces too");
    }
    Check::warn(id, what, "not loaded; the first use may load it").mend("sudo modprobe overlay")
}

fn numbers(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
