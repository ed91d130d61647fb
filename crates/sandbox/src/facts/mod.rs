//! Everything the library knows about the machine, asked for in one place.
//!
//! A [`Question`] has one [`Answer`]; both are plain data. [`MachineFacts`] asks the real machine,
//! [`Recorder`] remembers what was asked, and [`Replay`] answers from such a record, so that what another
//! machine would get can be tested here. Nothing is asked ahead of need, and no question changes anything.

mod answer;
#[cfg(test)]
pub(crate) mod fake;
mod machine;
mod mount_list;
mod mountinfo;
mod record;
mod recorded;

use std::path::{Path, PathBuf};

use crate::model::platform::Platform;

pub use answer::{Answer, Entry, Failure, FileSystem, Kind, MountPoint, Owned, Question, Said};
pub use machine::MachineFacts;
pub use mount_list::parse_mount_list;
pub use mountinfo::parse_mountinfo;
pub use record::{Asked, Recorder, Replay, Transcript};
pub use recorded::Recorded;

/// Somebody who knows the machine.
pub trait Facts {
    fn ask(&self, question: &Question) -> Answer;
}

/// Takes the expected kind of answer. Any other kind is a fact base that is wrong in itself, which no
/// caller could handle.
macro_rules! expected {
    ($facts:expr, $question:expr, $variant:ident) => {{
        let question = $question;
        match $facts.ask(&question) {
            Answer::$variant(value) => Ok(value),
            Answer::Failed(failure) => Err(failure),
            other => panic!("{question:?} was answered with {other:?}"),
        }
    }};
}

impl dyn Facts + '_ {
    /// What is at `path`; a symbolic link is not followed.
    pub fn kind(&self, path: impl AsRef<Path>) -> Result<Entry, Failure> {
        expected!(self, Question::Kind { path: path.as_ref().to_owned() }, Kind)
    }

    /// `path` without symbolic links, `.` and `..`.
    pub fn real_path(&self, path: impl AsRef<Path>) -> Result<PathBuf, Failure> {
        expected!(self, Question::RealPath { path: path.as_ref().to_owned() }, Path)
    }

    /// What the symbolic link at `path` says.
    pub fn read_link(&self, path: impl AsRef<Path>) -> Result<PathBuf, Failure> {
        expected!(self, Question::ReadLink { path: path.as_ref().to_owned() }, Path)
    }

    /// The text of a regular file of at most `limit` bytes.
    pub fn read_small(&self, path: impl AsRef<Path>, limit: u64) -> Result<String, Failure> {
        expected!(self, Question::ReadSmall { path: path.as_ref().to_owned(), limit }, Text)
    }

    /// Every mount of this process.
    pub fn mounts(&self) -> Result<Vec<MountPoint>, Failure> {
        expected!(self, Question::Mounts, Mounts)
    }

    /// The file system that holds `path`.
    pub fn file_system(&self, path: impl AsRef<Path>) -> Result<FileSystem, Failure> {
        expected!(self, Question::FileSystem { path: path.as_ref().to_owned() }, FileSystem)
    }

    /// Direct entries of a directory, at most `limit`, by name.
    pub fn top_level(&self, path: impl AsRef<Path>, limit: usize) -> Result<Vec<Owned>, Failure> {
        expected!(self, Question::TopLevel { path: path.as_ref().to_owned(), limit }, TopLevel)
    }

    /// Where the program `name` is, looked for in the directories of `search`.
    pub fn program(&self, name: &str, search: &[PathBuf]) -> Result<PathBuf, Failure> {
        expected!(self, Question::Program { name: name.to_owned(), search: search.to_vec() }, Path)
    }

    /// What tells the file at `path` from a changed one.
    pub fn stamp(&self, path: impl AsRef<Path>) -> Result<String, Failure> {
        expected!(self, Question::Stamp { path: path.as_ref().to_owned() }, Text)
    }

    /// What kind of machine this is.
    pub fn platform(&self) -> Result<Platform, Failure> {
        expected!(self, Question::Platform, Platform)
    }

    /// What `program` says when it is run with `arguments` and exactly `variables`. Only for questions: nothing
    /// that changes anything is asked this way.
    pub fn output(
        &self,
        program: impl AsRef<Path>,
        arguments: &[&str],
        variables: &[(String, String)],
    ) -> Result<Said, Failure> {
        let question = Question::Output {
            program: program.as_ref().to_owned(),
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            variables: variables.to_vec(),
        };
        expected!(self, question, Output)
    }

    /// The release of the running kernel, as in `6.8.0-41-generic`.
    pub fn kernel(&self) -> Result<String, Failure> {
        expected!(self, Question::Kernel, Text)
    }

    /// The text of a file below `/proc/sys`, without white space at its ends.
    pub fn setting(&self, name: &str) -> Result<String, Failure> {
        expected!(self, Question::Setting { name: name.to_owned() }, Text)
    }

    /// The version of the kernel's Landlock.
    pub fn landlock(&self) -> Result<u32, Failure> {
        expected!(self, Question::Landlock, Version)
    }

    /// Whether this process may write to `path`.
    pub fn writable(&self, path: impl AsRef<Path>) -> Result<bool, Failure> {
        expected!(self, Question::Writable { path: path.as_ref().to_owned() }, Truth)
    }

    /// Whether the socket at `path` accepts a connection of this process. Nothing is said over it.
    pub fn accepts(&self, path: impl AsRef<Path>) -> Result<bool, Failure> {
        expected!(self, Question::Accepts { path: path.as_ref().to_owned() }, Truth)
    }

    /// The supplementary groups of this process.
    pub fn groups(&self) -> Result<Vec<u32>, Failure> {
        expected!(self, Question::Groups, Groups)
    }
}
