//! In the words of macOS. It is type-checked (`scripts/check-macos`) and was never run.
//!
//! Less is there than on Linux: no bare references, so a directory that may not be read cannot be opened at all; no
//! way to resolve a whole path safely in one call, so it is always done one component at a time; no overlays.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, fchmod, fcntl_fullfsync, fstat, major, minor, statat,
};
use rustix::io::{Errno, Result};
use rustix::time::ClockId;

use super::{Mount, Mounts, nanoseconds};
use crate::entry::{Kind, Meta};

/// Opens for reading: there are no bare references.
pub(crate) const REFERENCE: OFlags = OFlags::RDONLY;
/// Nothing: the access time is touched.
pub(crate) const UNTOUCHED: OFlags = OFlags::empty();
/// The clock that the kernel stamps files with.
pub(crate) const FILE_CLOCK: ClockId = ClockId::Realtime;
/// There is no such attribute.
pub(crate) const NO_ATTRIBUTE: Errno = Errno::NOATTR;
/// What was to be unlinked is a directory, or may not be unlinked.
pub(crate) const UNLINKED_DIRECTORY: Errno = Errno::PERM;

pub(crate) const fn is_reference(_flags: OFlags) -> bool {
    false
}

/// Permission bits, with set-uid, set-gid and sticky.
pub fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(u16::try_from(bits & 0o7777).expect("twelve bits"))
}

/// Whether the kernel resolves whole paths for us here.
pub(crate) const fn resolves() -> bool {
    false
}

/// There is no such call; who asks [`resolves`] does not come here.
pub(crate) fn resolve(_: BorrowedFd<'_>, _: &[u8], _: OFlags, _: Mounts) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

/// Looks at `name` in `parent`; a symlink is looked at itself.
pub fn stat_at(parent: BorrowedFd<'_>, name: &[u8]) -> Result<Meta> {
    let found = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(meta(&found, found.st_dev != fstat(parent)?.st_dev))
}

/// When `name` in `parent` was made, in nanoseconds since 1970.
pub fn birth_at(parent: BorrowedFd<'_>, name: &[u8]) -> Option<i64> {
    let found = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(nanoseconds(found.st_birthtime, found.st_birthtime_nsec))
}

/// Looks at the object behind a handle.
pub fn stat_fd(fd: BorrowedFd<'_>) -> Result<Meta> {
    let found = fstat(fd)?;
    let above = statat(fd, "..", AtFlags::SYMLINK_NOFOLLOW);
    let is_mount = above.is_ok_and(|above| above.st_dev != found.st_dev || above.st_ino == found.st_ino);
    Ok(meta(&found, is_mount))
}

/// By its device only.
pub(crate) fn mount_of(fd: BorrowedFd<'_>) -> Result<Mount> {
    let found = fstat(fd)?;
    Ok(Mount { device: (major(found.st_dev), minor(found.st_dev)), id: None })
}

fn meta(found: &Stat, is_mount: bool) -> Meta {
    Meta {
        // A kind the kernel itself does not know is as foreign as a device and never opened.
        kind: Kind::known(FileType::from_raw_mode(found.st_mode)).unwrap_or(Kind::Block),
        mode: found.st_mode & 0o7777,
        size: found.st_size.cast_unsigned(),
        mtime_ns: nanoseconds(found.st_mtime, found.st_mtime_nsec),
        ctime_ns: nanoseconds(found.st_ctime, found.st_ctime_nsec),
        ino: found.st_ino,
        links: found.st_nlink.into(),
        dev: (major(found.st_dev), minor(found.st_dev)),
        rdev: (major(found.st_rdev), minor(found.st_rdev)),
        uid: found.st_uid,
        gid: found.st_gid,
        is_mount,
    }
}

/// Calls `each` for the names in a directory until it has had enough.
pub(crate) fn each_entry(
    dir: BorrowedFd<'_>,
    mut each: impl FnMut(&[u8], FileType) -> ControlFlow<()>,
) -> Result<()> {
    for entry in Dir::read_from(dir)? {
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
    let mut next = 0;
    each_entry(dir, |name, _| {
        next += 1;
        if next <= at { ControlFlow::Continue(()) } else { each(name, next) }
    })
}

/// Asks for everything to be written, and the drive to empty its buffers. That the first has come to its end is not
/// promised by macOS.
pub fn write_out(file: impl AsFd) -> Result<()> {
    rustix::fs::sync();
    fcntl_fullfsync(file)
}

/// A file can only be shared under a new name here.
pub(crate) fn share_content(_to: impl AsFd, _from: impl AsFd) -> Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// The bytes have to be carried.
pub(crate) fn copy_range(_: &OwnedFd, _: &OwnedFd, _: u64, _: usize) -> Result<usize> {
    Err(Errno::OPNOTSUPP)
}

/// There is no call that makes one in a directory given by a handle.
pub(crate) fn make_pipe(_parent: BorrowedFd<'_>, _name: &[u8], _bits: u16) -> Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// There are no overlays.
pub(crate) fn make_whiteout(_parent: BorrowedFd<'_>, _name: &[u8]) -> Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// None is known to be granted, so each is set afterwards.
pub(crate) const fn granted(_top: BorrowedFd<'_>, _bits: u16) -> u16 {
    0
}

/// Lets the owner into the directory behind a handle.
pub(crate) fn let_owner_in(directory: &OwnedFd) -> Result<()> {
    fchmod(directory, Mode::RWXU)
}
