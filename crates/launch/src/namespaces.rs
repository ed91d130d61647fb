//! The namespaces of a process, as inode numbers.

use rustix::fs::{AtFlags, Mode, OFlags, open, statat};
use rustix::io::Result;

use sandtable_protocol::report::Control;

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

/// The namespaces of the process that calls.
pub(crate) fn namespaces() -> Result<[u64; 7]> {
    let names = open("/proc/self/ns", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut found = [0; 7];
    for (inode, (_, name, _)) in found.iter_mut().zip(NAMESPACES) {
        *inode = statat(&names, name, AtFlags::empty())?.st_ino;
    }
    Ok(found)
}
