//! The devices of a sandbox: the harmless ones of the host, private terminals, private shared memory.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, mkdirat, mknodat, symlinkat};
use rustix::mount::MountAttrFlags;
use sandtable_protocol::report::Control;
use sandtable_protocol::step::Step;

use super::scratch::Scratch;
use super::target::{Kind, prepare};
use super::{Done, READ_ONLY, attach, file_system, open_source, tmpfs};
use crate::failpoint::skips;
use crate::step::Context as _;
use crate::sys::mount::{Attributes, Depth, set_attributes};

/// Devices of the host that every program may have.
pub(crate) const NODES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// How many pseudo-terminals a sandbox can have. The machine has 4,096 for all of them; some are kept for the host, none
/// for other sandboxes.
const TERMINALS: &str = "256";

/// Links that programs expect.
pub(crate) const LINKS: &[(&str, &str)] = &[
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Directories with a mount of their own.
pub(crate) const DIRECTORIES: &[&str] = &["pts", "shm"];

pub(super) fn mount(root: &OwnedFd, target: &Path, scratch: &mut Scratch) -> Done {
    let what = || Step::Mount(target.into());
    if skips(Control::MinimalDev) {
        let host = open_source(Path::new("/dev"), None, Depth::All)?;
        return prepare(root, target, Kind::Directory)?.attach(&host);
    }
    let devices = tmpfs(&[("mode", "0755"), ("size", "64k")]).context(what)?;
    prepare(root, target, Kind::Directory)?.attach(&devices)?;
    for node in NODES {
        let device = open_source(&Path::new("/dev").join(node), None, Depth::One)?;
        let wanted = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;
        set_attributes(&device, Attributes { set: wanted, id_map: None }, Depth::One).context(what)?;
        mknodat(&devices, *node, FileType::RegularFile, Mode::RUSR, 0).context(what)?;
        attach(&device, devices.as_fd(), Path::new(node)).context(what)?;
    }
    for (name, to) in LINKS {
        symlinkat(*to, &devices, *name).context(what)?;
    }
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let options = [("mode", "0620"), ("ptmxmode", "0666"), ("max", TERMINALS)];
    let terminals = file_system("devpts", &options, flags).context(what)?;
    let memory = scratch.part(0o1777).context(what)?;
    for (name, mount) in [("pts", terminals), ("shm", memory)] {
        mkdirat(&devices, name, Mode::RWXU).context(what)?;
        attach(&mount, devices.as_fd(), Path::new(name)).context(what)?;
    }
    set_attributes(&devices, Attributes { set: READ_ONLY, id_map: None }, Depth::One).context(what)
}
