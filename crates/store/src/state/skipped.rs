//! Entries that a state does not hold although they were there.

use std::fmt;

use crate::path::RelPath;

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
