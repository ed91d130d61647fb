//! `SELinux`: whether it has a word in what a container may open.

use super::Patient;
use crate::model::check::Check;

/// Where the kernel says whether it enforces its rules.
const ENFORCE: &str = "/sys/fs/selinux/enforce";

pub(super) fn mode(patient: Patient<'_>) -> Check {
    let (id, what) = ("machine.selinux", "SELinux");
    match patient.facts.read_small(ENFORCE, 16).as_deref().map(str::trim) {
        Ok("1") => Check::warn(
            id,
            what,
            "enforcing: it may keep containers from your files, which are not relabelled; the native engine is not concerned",
        ),
        Ok(_) => Check::ok(id, what, "permissive: it only takes notes"),
        Err(_) => Check::ok(id, what, "none"),
    }
}
