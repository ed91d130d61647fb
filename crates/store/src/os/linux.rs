//! In the words of Linux.

use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, SeekFrom, Statx, StatxAttributes, StatxFlags,
    StatxTimestamp, chmodat, copy_file_range, fstat, ioctl_ficlone, mkfifoat, mknodat, openat, openat2, seek,
    statx,
};
use rustix::io::{Errno, Result};
use rustix::time::ClockId;

pub use rustix::fs::syncfs as write_out;

use super::{Mount, Mounts};
use crate::entry::{Kind, Meta};

/// Opens a bare reference, which takes no permission on the object itself.
pub(crate) const REFERENCE: OFlags = OFlags::PATH;
/// Opens without touching the access time, for who may.
pub(crate) const UNTOUCHED: OFlags = OFlags::NOATIME;
/// The clock that the kernel stamps files with.
pub(crate) const FILE_CLOCK: ClockId = ClockId::RealtimeCoarse;
/// There is no such attribute.
pub(crate) const NO_ATTRIBUTE: Errno = Errno::NODATA;
/// What was to be unlinked is a directory.
pub(crate) const UNLINKED_DIRECTORY: Errno = Errno::ISDIR;

pub(crate) fn is_reference(flags: OFlags) -> bool {
    flags.contains(REFERENCE)
}

/// Permission bits, with set-uid, set-gid and sticky.
pub const fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(bits)
}

/// Whether the kernel resolves whole paths for us here.
pub(crate) fn resolves() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let tried =
            openat2(CWD, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_MAGICLINKS);
        !matches!(tried, Err(Errno::NOSYS | Errno::PERM))
    })
}

/// Opens `path` beneath `parent` in one call, through no symlink and no magic link.
pub(crate) fn resolve(parent: BorrowedFd<'_>, path: &[u8], flags: OFlags, mounts: Mounts) -> Result<OwnedFd> {
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    if mounts == Mounts::Refuse {
        resolve |= ResolveFlags::NO_XDEV;
    }
    openat2(parent, path, flags, Mode::empty(), resolve)
}

/// Looks at `name` in `parent`; a symlink is looked at itself, an automount point is left alone.
pub fn stat_at(parent: BorrowedFd<'_>, name: &[u8]) -> Result<Meta> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    statx(parent, name, flags, StatxFlags::BASIC_STATS).map(|found| meta(&found))
}

/// When `name` in `parent` was made, in nanoseconds since 1970, where the file system knows.
pub fn birth_at(parent: BorrowedFd<'_>, name: &[u8]) -> Option<i64> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let found = statx(parent, name, flags, StatxFlags::BTIME).ok()?;
    let known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    known.then(|| nanoseconds(&found.stx_btime))
}

/// Looks at the object behind a handle.
pub fn stat_fd(fd: BorrowedFd<'_>) -> Result<Meta> {
    statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).map(|found| meta(&found))
}

pub(crate) fn mount_of(fd: BorrowedFd<'_>) -> Result<Mount> {
    let found = statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)?;
    let known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    Ok(Mount { device: (found.stx_dev_major, found.stx_dev_minor), id: known.then_some(found.stx_mnt_id) })
}

fn meta(found: &Statx) -> Meta {
    Meta {
        // A kind the kernel itself does not know is as foreign as a device and never opened.
        kind: Kind::known(FileType::from_raw_mode(found.stx_mode.into())).unwrap_or(Kind::Block),
        mode: found.stx_mode & 0o7777,
        size: found.stx_size,
        mtime_ns: nanoseconds(&found.stx_mtime),
        ctime_ns: nanoseconds(&found.stx_ctime),
        ino: found.stx_ino,
        links: found.stx_nlink,
        dev: (found.stx_dev_major, found.stx_dev_minor),
        rdev: (found.stx_rdev_major, found.stx_rdev_minor),
        uid: found.stx_uid,
        gid: found.stx_gid,
        is_mount: found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
    }
}

fn nanoseconds(stamp: &StatxTimestamp) -> i64 {
    super::nanoseconds(stamp.tv_sec, stamp.tv_nsec.into())
}

/// Calls `each` for the names in a directory until it has had enough. The handle's position is moved.
pub(crate) fn each_entry(
    dir: BorrowedFd<'_>,
    mut each: impl FnMut(&[u8], FileType) -> ControlFlow<()>,
) -> Result<()> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); 16 * 1024];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") && each(name, entry.file_type()).is_break() {
            break;
        }
    }
    Ok(())
}

/// Calls `each` for the names in a directory from the position `at` on, each with the position behind it, until it has
/// had enough. Zero is the beginning.
pub(crate) fn each_entry_from(
    dir: BorrowedFd<'_>,
    at: u64,
    mut each: impl FnMut(&[u8], u64) -> ControlFlow<()>,
) -> Result<()> {
    // Small, because a walk comes back to a directory behind each directory in it and reads on from there.
    let mut buffer = [MaybeUninit::<u8>::uninit(); 4 * 1024];
    seek(dir, SeekFrom::Start(at))?;
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") && each(name, entry.next_entry_cookie()).is_break() {
            break;
        }
    }
    Ok(())
}

/// Makes the new file `to` share the content of `from`, where the file system can.
pub(crate) fn share_content(to: impl AsFd, from: impl AsFd) -> Result<()> {
    ioctl_ficlone(to, from)
}

/// Lets the kernel copy some bytes at `at`, at most `length`, to the same place of `to`.
pub(crate) fn copy_range(from: &OwnedFd, to: &OwnedFd, at: u64, length: usize) -> Result<usize> {
    let (mut source, mut target) = (at, at);
    copy_file_range(from, Some(&mut source), to, Some(&mut target), length)
}

/// Makes a named pipe.
pub(crate) fn make_pipe(parent: BorrowedFd<'_>, name: &[u8], bits: u16) -> Result<()> {
    mkfifoat(parent, name, mode(bits.into()))
}

/// Makes what an overlay reads as a name that is gone.
pub(crate) fn make_whiteout(parent: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
    mknodat(parent, name, FileType::CharacterDevice, Mode::empty(), 0)
}

/// Which of `bits` a new file below `top` gets (umask, default access lists), tried on a file without a name.
pub(crate) fn granted(top: BorrowedFd<'_>, bits: u16) -> u16 {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let tried = openat(top, ".", flags, mode(bits.into())).and_then(fstat);
    tried.map_or(0, |found| u16::try_from(found.st_mode & u32::from(bits)).unwrap_or(0))
}

/// Lets the owner into the directory behind a handle, be it a bare reference.
pub(crate) fn let_owner_in(directory: &OwnedFd) -> Result<()> {
    let itself = format!("/proc/self/fd/{}", directory.as_raw_fd());
    chmodat(CWD, itself, Mode::RWXU, AtFlags::empty())
}
