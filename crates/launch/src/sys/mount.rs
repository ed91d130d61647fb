//! `mount_setattr`, which rustix does not have.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use rustix::io::Result;

use super::check;

/// What to change about a mount.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes<'fd> {
    /// `MOUNT_ATTR_*` flags to set.
    pub(crate) set: u64,
    /// Shift owners by the id map of this user namespace.
    pub(crate) id_map: Option<BorrowedFd<'fd>>,
}

/// Whether mounts below are changed as well.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Depth {
    One,
    All,
}

/// Changes attributes of the (detached) mount behind `mount`, and makes it private: a copy of a mount that is
/// shared, as all are where systemd runs, is of the same group, and what is mounted on it would be mounted on the
/// host as well.
pub(crate) fn set_attributes(mount: impl AsFd, attributes: Attributes<'_>, depth: Depth) -> Result<()> {
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        userns: u64,
    }
    let id_map =
        attributes.id_map.map_or(0, |fd| fd.as_raw_fd().try_into().expect("descriptors are not negative"));
    let set = attributes.set | attributes.id_map.map_or(0, |_| libc::MOUNT_ATTR_IDMAP);
    let request = MountAttr { set, clear: 0, propagation: libc::MS_PRIVATE, userns: id_map };
    let flags = libc::AT_EMPTY_PATH
        | match depth {
            Depth::One => 0,
            Depth::All => libc::AT_RECURSIVE,
        };
    // SAFETY: the path is an empty C string, `request` is laid out as `mount_attr` and its size is given;
    // the kernel only reads both.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const request,
            size_of::<MountAttr>(),
        )
    };
    check(returned).map(drop)
}
