//! Files that the host has in common with the sandbox: holding up their other users, and leaving programs among them
//! that give rights away.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{
    CWD, FileType, MemfdFlags, Mode, OFlags, ResolveFlags, memfd_create, mknodat, openat2, unlink,
};
use sandtable_protocol::report::Control::{self, Seccomp};

use super::finding::describe;
use super::{Attempt, Finding, Probe};
use crate::sys::probe::{directory_notification, lease};

pub(super) const PROBES: &[Probe] = &[
    probe("lease", &["box/P16"], |_| take_lease()),
    probe("directory-notify", &["box/P16"], |_| notify()),
    probe("set-id", &["box/F17"], set_id),
];

const fn probe(
    name: &'static str,
    attacks: &'static [&'static str],
    steps: fn(&[OsString]) -> Finding,
) -> Probe {
    const FILTER: &[Control] = &[Seccomp];
    Probe { name, attacks, claims: FILTER, attempt: Attempt::Steps(steps) }
}

/// On a file of its own: the kernel asks for the owner, whom a sandbox and its user have in common.
fn take_lease() -> Finding {
    let file = match memfd_create("probe", MemfdFlags::CLOEXEC) {
        Ok(file) => file,
        Err(errno) => return Finding::unsupported(describe(&errno.into())),
    };
    // A file that is open for writing has no lease for readers, so it is opened once more.
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    let reader = File::open(path);
    drop(file);
    match reader {
        Ok(reader) => Finding::of_call(lease(reader.as_fd()).map(|()| 0)),
        Err(error) => Finding::unsupported(describe(&error)),
    }
}

fn notify() -> Finding {
    match File::open("/etc") {
        Ok(directory) => Finding::of_call(directory_notification(directory.as_fd()).map(|()| 0)),
        Err(error) => Finding::unsupported(describe(&error)),
    }
}

/// A way to a file with a mode.
type Way = fn(&Path, u32) -> io::Result<()>;

/// `DIRECTORY…`: of the host, and writable. A file with a set-user-id bit is made in each way there is, and removed.
fn set_id(paths: &[OsString]) -> Finding {
    const WAYS: &[(&str, Way)] =
        &[("chmod", chmod), ("fchmod", fchmod), ("open", open), ("mknod", mknod), ("openat2", open_checked)];
    let mut found = Vec::new();
    for directory in paths {
        for (name, way) in WAYS {
            let file = Path::new(directory).join("probe-set-id");
            let made = way(&file, 0o4711);
            let bits = file.metadata().map(|data| data.mode() & 0o6000);
            unlink(&file).ok();
            if bits.is_ok_and(|bits| bits != 0) {
                found.push(format!("{name} in {}", directory.display()));
            } else if made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                return Finding::unsupported(format!("{} is not there", directory.display()));
            }
        }
    }
    Finding::leak_if_any(&found, format!("none of {} ways", WAYS.len()))
}

fn chmod(path: &Path, mode: u32) -> io::Result<()> {
    File::create(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

fn fchmod(path: &Path, mode: u32) -> io::Result<()> {
    File::create(path)?.set_permissions(std::fs::Permissions::from_mode(mode))
}

fn open(path: &Path, mode: u32) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map(drop)
}

fn mknod(path: &Path, mode: u32) -> io::Result<()> {
    Ok(mknodat(CWD, path, FileType::RegularFile, Mode::from_raw_mode(mode), 0)?)
}

fn open_checked(path: &Path, mode: u32) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let how = (flags, Mode::from_raw_mode(mode));
    Ok(openat2(CWD, path, how.0, how.1, ResolveFlags::empty()).map(drop)?)
}
