//! What an earlier command left unfinished, carried to its end before the next one looks at anything.
//!
//! Every command calls [`recover`] first. It costs one look into a directory that is empty or not there, unless a
//! command was killed while it changed files of the user's, or one is at work on them: that one is left alone.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use sandtable_merge::{self as merge, GitLock, Means, Recovered};
use sandtable_sandbox::attention::Attention;
use sandtable_sandbox::board::{self, Board};
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::pending::Pending;
use sandtable_store::RelPath;
use sandtable_store::dir::{open_named, stat_fd};

/// Something that was interrupted and is not any more.
#[derive(Debug)]
pub struct Recovery {
    /// What it was, in a word.
    pub what: &'static str,
    pub target: PathBuf,
    pub outcome: Recovered,
    /// Paths that somebody changed, removed or committed since: they are as that left them.
    pub left_alone: Vec<RelPath>,
}

/// Device and inode, as records of directories have them.
type Which = ((u32, u32), u64);

/// Why something that was interrupted still is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot tell whether an earlier command was interrupted")]
    Look(#[source] std::io::Error),
    #[error(transparent)]
    Waits(merge::Error),
    #[error("an interrupted merge{} could be neither put back nor completed", in_words(target.as_deref()))]
    Merge { target: Option<PathBuf>, source: merge::Error },
    #[error("what was interrupted in a directory could be neither put back nor completed")]
    Board(#[source] Box<board::BoardError>),
    #[error("an interrupted {what} in `{}` waits for git: {lock}", target.display())]
    GitAtWork { what: &'static str, target: PathBuf, lock: GitLock },
    #[error("an interrupted {what} in `{}` could be neither put back nor completed", target.display())]
    Directory { what: &'static str, target: PathBuf, source: Box<board::rollback::RollbackError> },
    #[error(
        "an interrupted {what} in `{}` waits for that directory, which is not there, or is another one; if it is gone for good \
         remove `{}`",
        target.display(),
        record.display()
    )]
    Missing { what: &'static str, target: PathBuf, record: PathBuf, identity: Option<Which> },
    #[error("this version cannot read `{}`, the record of an interrupted operation", .0.display())]
    Unreadable(PathBuf),
}

impl Error {
    /// The directory that is half done, by the name that it had, if `directory` is that one or lies in it: by identity, since
    /// it may have been moved.
    pub fn concerns(&self, directory: &Path) -> Option<&Path> {
        let found = |is: &dyn Fn(&Path) -> bool| directory.ancestors().any(is);
        // By name where that is all that was written down.
        let (target, is_it) = match self {
            Self::Waits(
                merge::Error::Missing { target, identity, .. }
                | merge::Error::GitAtWork { target, identity, .. },
            ) => (target, identity.as_ref().map(|identity| found(&|path| identity.is(path)))),
            Self::Missing { target, identity, .. } => {
                let is = |identity: &Which| found(&|path| which(path).as_ref() == Some(identity));
                (target, identity.as_ref().map(is))
            }
            Self::Merge { target: Some(target), .. }
            | Self::Directory { target, .. }
            | Self::GitAtWork { target, .. } => (target, None),
            _ => return None,
        };
        is_it.unwrap_or_else(|| directory.starts_with(target)).then_some(target)
    }
}

fn which(path: &Path) -> Option<Which> {
    let meta = stat_fd(open_named(path).ok()?.as_fd()).ok()?;
    Some((meta.dev, meta.ino))
}

/// Carries everything to its end that an earlier command left, wherever that is. Signals wait meanwhile.
pub fn recover(
    data: &HostPath,
    means: &dyn Fn() -> Result<Means, merge::Error>,
) -> Vec<Result<Recovery, Error>> {
    let pending = Pending::beside(data.join("merges").as_path());
    let marks = match pending.names() {
        Ok(marks) if marks.is_empty() => return Vec::new(),
        Ok(marks) => marks,
        Err(error) => return vec![Err(Error::Look(error))],
    };
    let _attention = Attention::hold();
    let mut found = Vec::new();
    let board = Board::new(data);
    for mark in marks {
        match board::recover_marked(&board, &mark) {
            Ok(records) => {
                let journal = board::journal_of(&board, &mark);
                found.extend(records.into_iter().filter_map(|record| of_directory(record, &journal)));
            }
            Err(error) => found.push(Err(Error::Board(Box::new(error)))),
        }
        if !mark.starts_with("merge-") {
            continue;
        }
        let merge = means().and_then(|means| merge::recover_marked(&means, &mark));
        let failed = |error| match error {
            error @ (merge::Error::Missing { .. } | merge::Error::GitAtWork { .. }) => Error::Waits(error),
            source => Error::Merge { target: pending.target(&mark), source },
        };
        found.extend(merge.map_err(failed).transpose().map(|one| one.map(of_merge)));
    }
    found
}

fn in_words(target: Option<&Path>) -> String {
    target.map(|target| format!(" in `{}`", target.display())).unwrap_or_default()
}

fn of_merge(found: merge::Recovery) -> Recovery {
    let merge::Recovery { target, outcome, left_alone } = found;
    Recovery { what: "merge", target, outcome, left_alone }
}

/// Nothing is said of the directory of a checkout that is gone.
fn of_directory(found: board::rollback::Recovered, journal: &Path) -> Option<Result<Recovery, Error>> {
    let board::rollback::Recovered { id, what, target, identity, result, left_alone } = found;
    let record = journal.join(id);
    let outcome = match result {
        Ok(board::rollback::Recovery::Finished) => Recovered::Finished,
        Ok(board::rollback::Recovery::Undone) => Recovered::Undone,
        Ok(board::rollback::Recovery::Gone) => return None,
        Ok(board::rollback::Recovery::Missing) => {
            return Some(Err(Error::Missing { what, target, record, identity }));
        }
        Err(board::rollback::RollbackError::Unreadable) if target.as_os_str().is_empty() => {
            return Some(Err(Error::Unreadable(record)));
        }
        Err(board::rollback::RollbackError::GitAtWork) => {
            let lock = GitLock::found(target.join(".git/index.lock"));
            return Some(Err(Error::GitAtWork { what, target, lock }));
        }
        Err(error) => return Some(Err(Error::Directory { what, target, source: Box::new(error) })),
    };
    Some(Ok(Recovery { what, target, outcome, left_alone }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_identity_a_half_done_directory_is_known_by_its_name() {
        let (target, none) = (PathBuf::from("/no/such"), || PathBuf::from("/none"));
        let waits = [
            Error::Missing { what: "rollback", target: target.clone(), record: none(), identity: None },
            Error::Waits(merge::Error::Missing { target: target.clone(), journal: none(), identity: None }),
            Error::Waits(merge::Error::GitAtWork {
                target: target.clone(),
                lock: GitLock::found(none()),
                identity: None,
            }),
        ];
        for error in waits {
            for directory in ["/no/such", "/no/such/below"] {
                assert_eq!(error.concerns(Path::new(directory)), Some(&*target), "{error}");
            }
            assert_eq!(error.concerns(Path::new("/no")), None, "{error}");
        }
    }

    #[test]
    fn with_one_it_is_known_by_that_alone() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let missing = |identity| {
            let (what, target, record) = ("rollback", here.path().to_owned(), PathBuf::from("/none"));
            Error::Missing { what, target, record, identity }
        };
        let moved = missing(which(there.path()));
        assert_eq!(moved.concerns(&there.path().join("below")), Some(here.path()));
        assert_eq!(moved.concerns(here.path()), None, "another directory has its name now");
    }
}
