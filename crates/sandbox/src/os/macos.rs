//! In the words of macOS. It is type-checked (`scripts/check-macos`) and was never run.

use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, Stat, openat, statfs};
use rustix::io::{Errno, FdFlags, Result, fcntl_setfd, ioctl_fionbio};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, socket};

use super::{Peer, Waiting};

/// Opens for reading: there are no bare references.
pub const REFERENCE: OFlags = OFlags::RDONLY;

/// Permission bits, with set-uid, set-gid and sticky.
pub fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(u16::try_from(bits & 0o7777).expect("twelve bits"))
}

/// Sets the permission bits of what was opened as a reference.
pub fn set_mode(reference: &OwnedFd, bits: u32) -> Result<()> {
    rustix::fs::fchmod(reference, mode(bits))
}

/// The permission bits of a file, and its device.
pub(crate) fn mode_and_device(stat: &Stat) -> (u32, u64) {
    (u32::from(stat.st_mode & 0o7777), u64::from(stat.st_dev.cast_unsigned()))
}

/// The number by which the kernel knows the kind of a file system. Those of Linux mean nothing here.
pub(crate) fn file_system(path: &Path) -> Result<u64> {
    statfs(path).map(|found| found.f_type.into())
}

/// Bytes that nobody can guess.
pub(crate) fn random_bytes() -> [u8; 8] {
    let mut bytes = [0; 8];
    let read = fs_err::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.expect("the kernel has randomness");
    bytes
}

/// There is no such call for another process; its time is limited all the same.
pub(crate) const fn limit_memory(_pid: rustix::process::Pid, _bytes: u64) {}

/// There are none; only who starts a container needs one.
pub(crate) fn memory_file(_name: &str) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

/// Every file has a name here.
pub fn unnamed_file(_folder: &Path, _bits: u32) -> Result<OwnedFd> {
    Err(Errno::OPNOTSUPP)
}

pub fn give_name(_file: impl AsFd, _path: &Path) -> Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// Only who gives a sandbox its network needs one.
pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    Err(Errno::NOSYS)
}

/// Only who has a sandbox at the other end needs to know.
pub(crate) fn peer(_socket: impl AsFd) -> Result<Peer> {
    Err(Errno::NOSYS)
}

pub(crate) fn stream_socket(waiting: Waiting) -> Result<OwnedFd> {
    let made = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    fcntl_setfd(&made, FdFlags::CLOEXEC)?;
    ioctl_fionbio(&made, waiting == Waiting::No)?;
    Ok(made)
}

/// The address of the socket at `path`, and a handle of the directory it is in. A path that is longer than an address
/// can be is an error.
pub(crate) fn address_of(path: &Path) -> Result<(OwnedFd, SocketAddrUnix)> {
    let name = path.file_name().and_then(|name| name.to_str()).ok_or(Errno::INVAL)?;
    address_in(path.parent().unwrap_or(Path::new("/")), name)
}

/// The same for the socket `name` in a directory, which need not be there yet.
pub(crate) fn address_in(directory: &Path, name: &str) -> Result<(OwnedFd, SocketAddrUnix)> {
    let address = SocketAddrUnix::new(directory.join(name))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok((openat(CWD, directory, flags, Mode::empty())?, address))
}

/// Watches directories for files in them that are opened: macOS tells nobody.
#[derive(Debug)]
pub enum Openings {}

impl Openings {
    pub fn watch() -> Option<Self> {
        None
    }

    pub fn add(&self, _directory: &Path) -> Option<i32> {
        match *self {}
    }

    pub fn each(&self, _seen: impl FnMut(i32)) {
        match *self {}
    }
}
