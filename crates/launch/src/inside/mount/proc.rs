//! The process file system of a sandbox: its own processes, and nothing of the host that could be changed.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};
use sandtable_protocol::report::Control;
use sandtable_protocol::step::Step;

use super::target::{Kind, prepare};
use super::{Done, HARMLESS, READ_ONLY, attach, cover, file_system};
use crate::failpoint::skips;
use crate::step::Context as _;
use crate::sys::mount::{Attributes, Depth, set_attributes};

/// Directories of settings: readable, since programs look at them, but not writable.
pub(crate) const READ_ONLY_PARTS: &[&str] = &["sys", "irq", "bus", "fs"];

/// What shows the host's memory, keys or timers, or commands the kernel.
pub(crate) const MASKED_PARTS: &[&str] =
    &["sysrq-trigger", "kcore", "keys", "timer_list", "acpi", "scsi", "asound", "kmsg", "latency_stats"];

pub(super) fn mount(root: &OwnedFd, target: &Path) -> Done {
    let what = || Step::Mount(target.into());
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let processes = file_system("proc", &[], flags).context(what)?;
    prepare(root, target, Kind::Directory)?.attach(&processes)?;
    if skips(Control::ProcMasks) {
        return Ok(());
    }
    for part in READ_ONLY_PARTS {
        let flags = OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::OPEN_TREE_CLONE;
        let copy = match open_tree(&processes, *part, flags) {
            Err(Errno::NOENT) => continue,
            copy => copy.context(what)?,
        };
        let wanted = Attributes { set: READ_ONLY | HARMLESS | libc::MOUNT_ATTR_NOEXEC, id_map: None };
        set_attributes(&copy, wanted, Depth::One).context(what)?;
        attach(&copy, processes.as_fd(), Path::new(part)).context(what)?;
    }
    for part in MASKED_PARTS {
        let kind = match statat(&processes, *part, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            found => Kind::of(found.context(what)?.st_mode),
        };
        attach(&cover(kind).context(what)?, processes.as_fd(), Path::new(part)).context(what)?;
    }
    Ok(())
}
