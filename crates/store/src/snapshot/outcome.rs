//! What a snapshot yields besides the state.

use std::fmt;

use super::file::Given;
use crate::id::ObjectId;
use crate::path::RelPath;
use crate::state::State;

/// A state and how it came about.
#[derive(Clone, Debug)]
pub struct SnapshotOutcome {
    pub state: State,
    pub counts: Counts,
    /// What is not in the state; sorted by path. The list is bounded, [`Counts::skipped`] is not.
    pub skipped: Vec<Skipped>,
    pub changed: Changed,
    /// Ids taken from the git index, and of trees that git has too, whose objects are in no pack of the store yet; sorted.
    pub borrowed: Vec<ObjectId>,
    /// The rules of the repository about ignored files that are not in the tree.
    pub exclude: Vec<u8>,
}

/// How much there was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries that were looked at.
    pub entries: u64,
    /// Files whose bytes were read.
    pub files_read: u64,
    pub bytes_read: u64,
    /// Files whose id came from the stat cache or from git's index.
    pub files_known: u64,
    /// Ignored entries that were left out as asked; what lies below an ignored directory is not counted.
    pub ignored: u64,
    pub skipped: u64,
    /// The latest change time of any entry, in nanoseconds since 1970; what lies below an ignored directory has no part in it.
    pub newest_ns: i64,
}

impl Counts {
    /// Counts a file that was read, now or under another name.
    pub(crate) const fn add(&mut self, given: &Given) {
        if given.read == 0 && given.meta.size > 0 {
            self.files_known += 1;
        } else {
            self.files_read += 1;
        }
        self.bytes_read += given.read;
    }
}

/// What changed while it was read. Without any, the state is that of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    pub count: u64,
    /// The first of them.
    pub paths: Vec<RelPath>,
}

/// An entry that is not in the state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    pub path: RelPath,
    pub why: SkipReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    Fifo,
    Socket,
    Device,
    /// Something else is mounted there.
    Mount,
    Unreadable,
    TooLarge,
    /// The holes of all files together are more than a state takes.
    Holes,
    /// The further names of all files together stand for more than a state takes.
    Names,
    /// It never held still, and what was read has no length.
    Torn,
    /// It was gone or another when it was looked at again.
    Moved,
    /// Git does not allow the name, so that no tree can hold it.
    Name,
    /// The git directory of a repository within.
    Repository,
    /// The files of another repository, of which the state names the commit.
    Submodule,
    /// That it was removed: the state that this one is made on does not have it.
    Removal,
    /// Its attributes are too large; the entry itself is there.
    Attributes,
    /// The ignore rules in it are too many and are not obeyed; the file itself is there.
    Rules,
}

impl SkipReason {
    pub const ALL: [Self; 16] = [
        Self::Fifo,
        Self::Socket,
        Self::Device,
        Self::Mount,
        Self::Unreadable,
        Self::TooLarge,
        Self::Holes,
        Self::Names,
        Self::Torn,
        Self::Moved,
        Self::Name,
        Self::Repository,
        Self::Submodule,
        Self::Removal,
        Self::Attributes,
        Self::Rules,
    ];

    /// The word for it in a store, and for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::Device => "device",
            Self::Mount => "mount",
            Self::Unreadable => "unreadable",
            Self::TooLarge => "too-large",
            Self::Holes => "holes",
            Self::Names => "names",
            Self::Torn => "torn",
            Self::Moved => "moved",
            Self::Name => "name",
            Self::Repository => "repository",
            Self::Submodule => "submodule",
            Self::Removal => "removal",
            Self::Attributes => "attributes",
            Self::Rules => "rules",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether the entry itself is in the state all the same.
    pub const fn is_there(self) -> bool {
        matches!(self, Self::Attributes | Self::Rules)
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "is a named pipe",
            Self::Socket => "is a socket",
            Self::Device => "is a device",
            Self::Mount => "is a mount point",
            Self::Unreadable => "may not be read",
            Self::TooLarge => "is larger than 4 GiB, the most for one file",
            Self::Holes => "is sparse, and a state takes 256 MiB of holes in all files",
            Self::Names => "is a further hard link to a file, and a state takes 1 GiB of further hard links",
            Self::Torn => "was written to all the time",
            Self::Moved => "was exchanged while it was read",
            Self::Name => "has a name that git does not allow",
            Self::Repository => "is the git directory of a repository within",
            Self::Submodule => "holds the files of another repository",
            Self::Removal => "was removed here, but the state of the source does not have it",
            Self::Attributes => "has attributes that are too large",
            Self::Rules => "has too many rules, which are not obeyed",
        })
    }
}
