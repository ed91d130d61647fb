//! Questions and answers as data.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::model::platform::Platform;

/// Something that can be asked about the machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    Kind {
        path: PathBuf,
    },
    RealPath {
        path: PathBuf,
    },
    ReadLink {
        path: PathBuf,
    },
    ReadSmall {
        path: PathBuf,
        limit: u64,
    },
    Mounts,
    FileSystem {
        path: PathBuf,
    },
    TopLevel {
        path: PathBuf,
        limit: usize,
    },
    Program {
        name: String,
        search: Vec<PathBuf>,
    },
    Kernel,
    /// What tells a file from a changed one: a text made of its device, inode, size and times.
    Stamp {
        path: PathBuf,
    },
    /// What kind of machine this is.
    Platform,
    /// What a program says when it is run with these arguments and exactly these variables.
    Output {
        program: PathBuf,
        arguments: Vec<String>,
        variables: Vec<(String, String)>,
    },
    Setting {
        name: String,
    },
    Groups,
    /// The version of the kernel's Landlock.
    Landlock,
    /// Whether the socket at `path` accepts a connection of this process.
    Accepts {
        path: PathBuf,
    },
    /// Whether this process may write to `path`.
    Writable {
        path: PathBuf,
    },
}

/// What the machine said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Kind(Entry),
    Path(PathBuf),
    Text(String),
    Platform(Platform),
    Output(Said),
    Mounts(Vec<MountPoint>),
    FileSystem(FileSystem),
    TopLevel(Vec<Owned>),
    Groups(Vec<u32>),
    Version(u32),
    Truth(bool),
    Failed(Failure),
}

/// What a program left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Its exit code; nothing when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    #[error("there is no such file or directory")]
    Missing,
    #[error("permission denied")]
    Denied,
    #[error("{0}")]
    Other(String),
}

/// One file, directory or other thing in the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub kind: Kind,
    /// Permission bits only.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub device: u64,
    pub inode: u64,
    /// Whether this process may read it, or what it points to.
    pub readable: bool,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    File,
    Directory,
    Symlink,
    Socket,
    /// A device or a named pipe.
    Special,
}

/// One line of `/proc/self/mountinfo`, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountPoint {
    pub target: PathBuf,
    /// Which directory of its file system is mounted.
    pub root: PathBuf,
    pub file_system: String,
    pub read_only: bool,
}

/// The file system at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// The number `statfs` gives for its type.
    pub magic: u64,
    pub read_only: bool,
}

/// A directory entry and whose it is. Bytes of the name that are not UTF-8 are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owned {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}
