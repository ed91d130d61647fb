//! What an entry is, as it is known without opening it.

use rustix::fs::FileType;

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
    pub(crate) const fn known(kind: FileType) -> Option<Self> {
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
