//! What an entry is, from `statx` without opening it.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, Statx, StatxAttributes, StatxFlags, StatxTimestamp, statx};
use rustix::io::Result;

/// The kinds of entries a directory can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    Character,
    Block,
}

impl Kind {
    /// `None` where the file system did not say.
    pub(super) const fn known(kind: FileType) -> Option<Self> {
        Some(match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice => Self::Character,
            FileType::BlockDevice => Self::Block,
            FileType::Unknown => return None,
        })
    }
}

/// Everything about an entry that can be known without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    pub kind: Kind,
    /// Permission bits with set-uid, set-gid and sticky.
    pub mode: u16,
    pub size: u64,
    /// Nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Nanoseconds since 1970.
    pub ctime_ns: i64,
    pub ino: u64,
    /// How many names it has.
    pub links: u32,
    pub dev: (u32, u32),
    /// Major and minor number, of a device.
    pub rdev: (u32, u32),
    pub uid: u32,
    pub gid: u32,
    /// Whether something else is mounted here.
    pub is_mount: bool,
}

impl Meta {
    /// The form in which an overlay marks a removed name.
    pub fn is_null_device(&self) -> bool {
        self.kind == Kind::Character && self.rdev == (0, 0)
    }
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

/// Saturates in the year 2262; a modification time may be any number its owner likes.
fn nanoseconds(stamp: &StatxTimestamp) -> i64 {
    stamp.tv_sec.saturating_mul(1_000_000_000).saturating_add(i64::from(stamp.tv_nsec))
}
