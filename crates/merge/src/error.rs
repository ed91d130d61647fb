//! What can go wrong that is nobody's decision. A merge that must not happen is not an error but an outcome.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use sandtable_sandbox::attention::Interrupted;
use sandtable_sandbox::model::diagnosis::{Diagnose, Fault};
use sandtable_sandbox::repository;
use sandtable_store::lock::LockError;
use sandtable_store::path::PathError;
use sandtable_store::store::StoreError;

use super::git::GitError;
use super::whereabouts::Whereabouts;

/// Why an operation could not be carried to an outcome. Nothing was touched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("cannot prepare the merge")]
    Io(#[from] io::Error),
    #[error("cannot read `{path}`")]
    File { path: String, source: io::Error },
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("there is more than a merge takes: {limit}, up to `{path}`")]
    TooMuch { limit: String, path: String },
    #[error("`{}` is no regular file", .0.display())]
    NoFile(std::path::PathBuf),
    #[error("path `{path}` cannot be part of a tree")]
    Path { path: String, source: PathError },
    #[error("`{}` is not a journal this version understands", path.display())]
    Journal { path: std::path::PathBuf, source: serde_json::Error },
    #[error("`{}` has schema {found}, this version knows {known}", path.display())]
    Schema { path: std::path::PathBuf, found: u32, known: u32 },
    #[error(
        "an interrupted merge in `{}` waits for that directory, which is not there, or is another one; if it is gone for good \
         remove `{}`",
        target.display(),
        journal.display()
    )]
    Missing { target: std::path::PathBuf, journal: std::path::PathBuf, identity: Option<Box<Whereabouts>> },
    #[error("an interrupted merge in `{}` waits for git: {lock}", target.display())]
    GitAtWork { target: std::path::PathBuf, lock: GitLock, identity: Option<Box<Whereabouts>> },
    #[error("the log in `{}` cannot be written", store.display())]
    Log { store: std::path::PathBuf, source: Box<StoreError> },
    #[error("signal {0} came before anything was done")]
    Interrupted(i32),
}

/// A lock of git's that is in the way. Git removes its locks, unless it was killed: how old it is tells the two apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitLock {
    pub path: PathBuf,
    /// How old it was when it was found, if that is known.
    pub age: Option<Duration>,
}

impl GitLock {
    /// The lock at `path` as it is now.
    pub fn found(path: PathBuf) -> Self {
        let made = fs_err::symlink_metadata(&path).and_then(|meta| meta.modified());
        let age = made.ok().and_then(|made| SystemTime::now().duration_since(made).ok());
        Self { path, age }
    }
}

impl fmt::Display for GitLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lock, advice) = (self.path.display(), "If no git command is running there, delete it.");
        match self.age {
            Some(age) => write!(f, "`{lock}` was created {}. {advice}", ago(age.as_secs())),
            None => write!(f, "`{lock}` exists. {advice}"),
        }
    }
}

fn ago(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7200 => (seconds / 60, "minute"),
        7200..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" })
}

impl Diagnose for Error {
    fn fault(&self) -> Fault {
        Fault::Machine
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Git(GitError::Missing { .. }) => "git-missing",
            Self::Git(GitError::TooOld { .. }) => "git-too-old",
            Self::Git(_) => "git",
            Self::Io(_) | Self::File { .. } => "merge-io",
            Self::Lock(_) => "lock",
            Self::TooMuch { .. } => "too-much",
            Self::NoFile(_) => "git-directory",
            Self::Path { .. } => "unsafe-path",
            Self::Journal { .. } | Self::Schema { .. } => "journal",
            Self::Missing { .. } | Self::GitAtWork { .. } => "not-recovered",
            Self::Log { .. } => "log",
            Self::Interrupted(_) => "interrupted",
        }
    }
}

impl From<Interrupted> for Error {
    fn from(Interrupted(signal): Interrupted) -> Self {
        Self::Interrupted(signal)
    }
}

impl From<repository::RepositoryError> for Error {
    fn from(error: repository::RepositoryError) -> Self {
        match error {
            repository::RepositoryError::Io(error) => error.into(),
            repository::RepositoryError::TooMuch { limit, path } => Self::TooMuch { limit, path },
            repository::RepositoryError::Path { path, source } => Self::Path { path, source },
            repository::RepositoryError::Interrupted(interrupted) => interrupted.into(),
        }
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Io(errno.into())
    }
}

#[cfg(test)]
mod tests {
    use super::ago;

    #[test]
    fn ages_are_told_in_one_unit() {
        let told = [1, 119, 120, 7199, 7200, 172_799, 172_800].map(ago);
        let expected =
            ["1 second", "119 seconds", "2 minutes", "119 minutes", "2 hours", "47 hours", "2 days"];
        assert_eq!(told.to_vec(), expected.map(|age| format!("{age} ago")).to_vec());
    }
}
