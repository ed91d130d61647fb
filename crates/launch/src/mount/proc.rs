//! The process file system of a sandbox: its own processes, and nothing of the host that could be changed.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};

use super::target::{Kind, existing, prepare};
use super::{Done, HARMLESS, READ_ONLY, file_system, mask};
use crate::failpoint::skips;
use crate::report::Control;
use crate::step::Context as _;
use crate::sys::mount::{Attributes, Depth, set_attributes};

/// Directories of settings: readable, since programs look at them, but not writable.
pub(crate) const READ_ONLY_PARTS: &[&str] = &["sys", "irq", "bus", "fs"];

/// What shows the host's memory, keys or timers, or commands the kernel.
pub(crate) const MASKED_PARTS: &[&str] =
    &["sysrq-trigger", "kcore", "keys", "timer_list", "acpi", "scsi", "asound", "kmsg", "latency_stats"];

pub(super) fn mount(root: &OwnedFd, target: &Path) -> Done {
    let what = || format!("mount `{}`", target.display());
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let processes = file_system("proc", &[], flags).context(what)?;
    prepare(root, target, Kind::Directory)?.attach(&processes)?;
    if skips(Control::ProcMasks) {
        return Ok(());
    }
    for part in READ_ONLY_PARTS {
        let path = target.join(part);
        let Some(place) = existing(root.as_fd(), &path)? else { continue };
        let flags = OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::OPEN_TREE_CLONE;
        let part = open_tree(&processes, *part, flags).context(what)?;
        let wanted = Attributes { set: READ_ONLY | HARMLESS | libc::MOUNT_ATTR_NOEXEC, id_map: None };
        set_attributes(&part, wanted, Depth::One).context(what)?;
        place.attach(&part)?;
    }
    MASKED_PARTS.iter().try_for_each(|part| mask(root.as_fd(), &target.join(part)))
}
