//! Reading back what holds in a container. The questions are those of the native engine; some have other
//! right answers here, since an engine masks and maps in its own way.

use std::os::fd::BorrowedFd;

use fs_err as fs;
use rustix::fs::{FileType, StatVfsMountFlags, stat, statvfs};
use sandtable_protocol::report::{Control, Observed, Report};
use sandtable_protocol::terms::Terms;

use super::confine::{Confined, Keyring};
use crate::inside::mount;
use crate::inside::verify::{
    Sealed, common, descriptors, field, filters, minimal_dev, no_sets, read, root_view, session,
};
use crate::namespaces::{NAMESPACES, namespaces};

/// Devices and links that engines add to the few of ours, none of them of the host.
const ENGINES_OWN: &[&str] = &["mqueue", "console", "core"];

/// Every control, observed.
pub(super) fn observe(terms: &Terms, confined: &Confined, keep: &[BorrowedFd<'_>]) -> Report {
    let status = read("/proc/self/status");
    let mut controls = common(&status, &Sealed { forgotten: confined.forgotten });
    let host = &terms.host;
    let ours = namespaces().unwrap_or(host.namespaces);
    for (((control, _, _), ours), theirs) in NAMESPACES.into_iter().zip(ours).zip(host.namespaces) {
        controls.insert(control, Observed::when(ours != theirs, "the namespace is the host's"));
    }
    if !terms.network.is_own() {
        let why = "the host's network was asked for".to_owned();
        controls.insert(Control::NetworkNamespace, Observed::Absent { why });
    }
    controls.insert(Control::RootView, root_view(host));
    let read_only = statvfs("/").is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY));
    controls.insert(Control::ReadOnlySystem, Observed::when(read_only, "the image can be written"));
    controls.insert(Control::ProcMasks, proc_masks());
    controls.insert(Control::MinimalDev, minimal_dev(ENGINES_OWN));
    let own_keyring = match confined.keyring {
        Keyring::None => true,
        Keyring::Number(number) => Some(number) != host.keyring,
    };
    controls.insert(Control::Keyring, Observed::when(own_keyring, "the session keyring is the host's"));
    controls.insert(Control::Session, session());
    controls.insert(Control::Descriptors, descriptors(keep));
    controls.insert(Control::NoCapabilities, no_sets(&status));
    controls.insert(Control::Landlock, confined.landlock.clone());
    let filtered = field(&status, "Seccomp") == Some("2") && filters(&status) != Some(confined.filters);
    controls.insert(Control::Seccomp, Observed::when(filtered, "no system call filter of ours is in force"));
    Report { controls }
}

/// Engines cover what shows the host with a null device or an empty directory, and mount settings read-only.
fn proc_masks() -> Observed {
    let writable = mount::READ_ONLY_PARTS.iter().chain(&["sysrq-trigger"]).find(|part| {
        statvfs(format!("/proc/{part}")).is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::RDONLY))
    });
    let shown = mount::MASKED_PARTS.iter().filter(|part| **part != "sysrq-trigger").find(|part| {
        let path = format!("/proc/{part}");
        let Ok(found) = stat(&path) else { return false };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => fs::read(&path).is_ok_and(|bytes| !bytes.is_empty()),
            FileType::Directory => fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_some()),
            _ => false,
        }
    });
    match writable.or(shown) {
        None => Observed::Enforced,
        Some(part) => Observed::Absent { why: format!("`/proc/{part}` is not masked") },
    }
}
