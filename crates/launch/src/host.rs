//! How the host looks from the supervisor, read before the clone, so that the child can tell whether it
//! really stands somewhere else.

use rustix::fs::{AtFlags, Mode, OFlags, open, stat, statat};
use rustix::io::Result;
use serde::{Deserialize, Serialize};

use crate::report::Control;
use crate::sys::privilege::session_keyring;
use crate::verify::filters;

/// Namespaces, the file under `/proc/self/ns` that names each, and the control it stands for.
pub(crate) const NAMESPACES: [(Control, &str, u64); 7] = [
    (Control::UserNamespace, "user", libc::CLONE_NEWUSER as u64),
    (Control::MountNamespace, "mnt", libc::CLONE_NEWNS as u64),
    (Control::PidNamespace, "pid", libc::CLONE_NEWPID as u64),
    (Control::IpcNamespace, "ipc", libc::CLONE_NEWIPC as u64),
    (Control::UtsNamespace, "uts", libc::CLONE_NEWUTS as u64),
    (Control::CgroupNamespace, "cgroup", libc::CLONE_NEWCGROUP as u64),
    (Control::NetworkNamespace, "net", libc::CLONE_NEWNET as u64),
];

/// What identifies the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostView {
    /// Inode numbers, in the order of [`NAMESPACES`].
    pub(crate) namespaces: [u64; 7],
    /// Device and inode of the root directory.
    pub(crate) root: (u64, u64),
    pub(crate) keyring: Option<i32>,
    /// System call filters that the supervisor is under itself.
    pub(crate) filters: u64,
}

impl HostView {
    /// Looks at the process that calls.
    pub(crate) fn look() -> Result<Self> {
        let root = stat("/")?;
        Ok(Self {
            namespaces: namespaces()?,
            root: (root.st_dev, root.st_ino),
            keyring: session_keyring().ok(),
            filters: filters(&fs_err::read_to_string("/proc/self/status").unwrap_or_default()).unwrap_or(0),
        })
    }
}

/// The namespaces of the process that calls.
pub(crate) fn namespaces() -> Result<[u64; 7]> {
    let names = open("/proc/self/ns", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut found = [0; 7];
    for (inode, (_, name, _)) in found.iter_mut().zip(NAMESPACES) {
        *inode = statat(&names, name, AtFlags::empty())?.st_ino;
    }
    Ok(found)
}
