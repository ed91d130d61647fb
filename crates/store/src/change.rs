//! What happens to a path, and what a path is: in comparisons, layers, records and merges alike.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Added,
    Modified,
    Removed,
    /// Same content; permissions or attributes differ.
    ModeChanged,
    /// Another type of entry has its name now.
    TypeChanged,
    Renamed,
}

impl ChangeKind {
    pub const ALL: [Self; 6] =
        [Self::Added, Self::Modified, Self::Removed, Self::ModeChanged, Self::TypeChanged, Self::Renamed];

    /// The word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Removed => "removed",
            Self::ModeChanged => "mode_changed",
            Self::TypeChanged => "type_changed",
            Self::Renamed => "renamed",
        }
    }

    /// The letter for people, in every list.
    pub const fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Removed => 'D',
            Self::ModeChanged => 'P',
            Self::TypeChanged => 'T',
            Self::Renamed => 'R',
        }
    }
}

/// What a path on disk is now, or was before it was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryType {
    File,
    Directory,
    Symlink,
    /// A device, a named pipe or a socket.
    Special,
}

impl EntryType {
    /// The word for people and programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Special => "special",
        }
    }
}

impl fmt::Display for EntryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What happened to a path of a source while a command ran. What is below an added or removed directory is not listed again,
/// and everything in the top-level `.git` is one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriftKind {
    Added,
    /// Content, mode, owner or type changed, or something else has its name now.
    Modified,
    Removed,
    /// Names in this directory came, went or were replaced, and it cannot be said which.
    Contents,
}

impl DriftKind {
    /// What it is for the path alone.
    pub const fn change(self) -> ChangeKind {
        match self {
            Self::Added => ChangeKind::Added,
            Self::Modified | Self::Contents => ChangeKind::Modified,
            Self::Removed => ChangeKind::Removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer as _;
    use serde::de::value::Error;

    use super::*;

    #[test]
    fn programs_get_the_words_and_no_letter_means_two_things() {
        for kind in ChangeKind::ALL {
            assert_eq!(ChangeKind::deserialize(kind.word().into_deserializer()), Ok::<_, Error>(kind));
        }
        let letters: std::collections::BTreeSet<char> = ChangeKind::ALL.map(ChangeKind::letter).into();
        assert_eq!(letters.len(), ChangeKind::ALL.len());
    }
}
