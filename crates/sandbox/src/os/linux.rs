//! In the words of Linux.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{
    AtFlags, CWD, MemfdFlags, Mode, OFlags, Stat, chmodat, linkat, memfd_create, openat, statfs,
};
use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use rustix::rand::{GetRandomFlags, getrandom};

use super::{Peer, Waiting};

/// Opens a bare reference, which takes no permission on the object itself.
pub const REFERENCE: OFlags = OFlags::PATH;

/// Permission bits, with set-uid, set-gid and sticky.
pub const fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(bits)
}

/// Sets the permission bits of what a bare reference leads to: it cannot be swapped for a link, and takes no permission to read.
pub fn set_mode(reference: &OwnedFd, bits: u32) -> Result<()> {
    chmodat(CWD, format!("/proc/self/fd/{}", reference.as_raw_fd()), mode(bits), AtFlags::empty())
}

/// The permission bits of a file, and its device.
pub(crate) const fn mode_and_device(stat: &Stat) -> (u32, u64) {
    (stat.st_mode & 0o7777, stat.st_dev)
}

/// The number by which the kernel knows the kind of a file system.
pub(crate) fn file_system(path: &Path) -> Result<u64> {
    statfs(path).map(|found| found.f_type.cast_unsigned())
}

/// Bytes that nobody can guess.
pub(crate) fn random_bytes() -> [u8; 8] {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty()).expect("the kernel has randomness");
    bytes
}

/// A file without a name, in memory.
pub(crate) fn memory_file(name: &str) -> Result<OwnedFd> {
    memfd_create(name, MemfdFlags::CLOEXEC)
}

/// A new file in a directory that has no name yet, and is gone with its last handle unless it gets one.
pub fn unnamed_file(folder: &Path, bits: u32) -> Result<OwnedFd> {
    openat(CWD, folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode(bits))
}

/// Gives such a file a name that nothing has.
pub fn give_name(file: impl AsFd, path: &Path) -> Result<()> {
    linkat(CWD, format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()), CWD, path, AtFlags::SYMLINK_FOLLOW)
}

/// Lets a process have so much memory of its own, beside what it maps of files. One that is gone already needs no limit.
pub(crate) fn limit_memory(pid: Pid, bytes: u64) {
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    let _gone = prlimit(Some(pid), Resource::Data, limit);
}

pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC)
}

/// The process at the other end; of a listening socket, the one that called `listen`.
pub(crate) fn peer(socket: impl AsFd) -> Result<Peer> {
    let found = sandtable_launch::outside::machine::peer(socket)?;
    // One that is not seen from here is as good as none.
    Ok(Peer { pid: found.pid.ok_or(Errno::SRCH)?, uid: found.uid })
}

pub(crate) fn stream_socket(waiting: Waiting) -> Result<OwnedFd> {
    let more = if waiting == Waiting::No { SocketFlags::NONBLOCK } else { SocketFlags::empty() };
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | more, None)
}

/// The address of the socket at `path`, good as long as the handle is there: the path itself may be longer than an
/// address can be.
pub(crate) fn address_of(path: &Path) -> Result<(OwnedFd, SocketAddrUnix)> {
    let handle = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
    Ok((handle, address))
}

/// The same for the socket `name` in a directory, which need not be there yet.
pub(crate) fn address_in(directory: &Path, name: &str) -> Result<(OwnedFd, SocketAddrUnix)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, directory, flags, Mode::empty())?;
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))?;
    Ok((directory, address))
}

/// Watches directories for files in them that are opened.
#[derive(Debug)]
pub struct Openings(OwnedFd);

impl Openings {
    /// `None` where the kernel has no watches left.
    pub fn watch() -> Option<Self> {
        inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok().map(Self)
    }

    /// The number by which [`Self::each`] names the directory.
    pub fn add(&self, directory: &Path) -> Option<i32> {
        inotify::add_watch(&self.0, directory, WatchFlags::OPEN | WatchFlags::ONLYDIR).ok()
    }

    /// Calls `seen` for each file that was opened since the last time, with the number of its directory.
    pub fn each(&self, mut seen: impl FnMut(i32)) {
        let mut buffer = [const { MaybeUninit::uninit() }; 1 << 14];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        while let Ok(event) = reader.next() {
            // Looking a tool over opens its directories too.
            if event.events().contains(ReadFlags::OPEN) && !event.events().contains(ReadFlags::ISDIR) {
                seen(event.wd());
            }
        }
    }
}
