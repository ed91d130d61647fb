//! Why something on the board could not be done.

use std::io;
use std::path::{Path, PathBuf};

use sandtable_store::full::{is_full, is_read_only};
use sandtable_store::id::ObjectId;
use sandtable_store::meta::MetaError;
use sandtable_store::object::WriteError;
use sandtable_store::path::RelPath;
use sandtable_store::snapshot::{OnboardError, SnapshotError};
use sandtable_store::source::repository::RepositoryError;
use sandtable_store::state::StateError;
use sandtable_store::store::{FormatFault, StoreError};
use sandtable_store::{checkout, diff, rollback};

use crate::model::diagnosis::{Diagnose, Fault};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    #[error("cannot list the stores")]
    Stores(#[source] io::Error),
    #[error(transparent)]
    Store(StoreError),
    #[error("no snapshot and no sandbox is called `{0}`")]
    Unknown(String),
    #[error("`{text}` may be any of {} snapshots", .candidates.len())]
    Ambiguous { text: String, candidates: Vec<String> },
    #[error("nothing was recorded of `{}` yet", .0.display())]
    NoStates(PathBuf),
    #[error("snapshot `{0}` was made on no state of its source")]
    NoBase(ObjectId),
    #[error("nothing of `{subject}` can be {done}")]
    NothingTo { subject: String, done: &'static str },
    #[error("cannot use `{}`", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("`{}` is not a directory", .0.display())]
    NotDirectory(PathBuf),
    #[error("`{}` is not empty and no state was written into it before", .0.display())]
    NotManaged(PathBuf),
    #[error("`{}` is a source, and nothing is written into one", .0.display())]
    IsSource(PathBuf),
    #[error("cannot record the state of `{}`", path.display())]
    Snapshot { path: PathBuf, source: Box<OnboardError> },
    #[error("interrupted while the state of `{}` was recorded; nothing is kept of it", .0.display())]
    Cancelled(PathBuf),
    #[error("cannot read the repository in `{}`", path.display())]
    Repository { path: PathBuf, source: RepositoryError },
    #[error("cannot write the state into `{}`", path.display())]
    Checkout { path: PathBuf, source: checkout::CheckoutError },
    #[error("`{}` was changed since its state was recorded", .paths.first().map(RelPath::display_escaped).unwrap_or_default())]
    Changed { root: PathBuf, paths: Vec<RelPath> },
    #[error("the state `{0}` that this needs was removed from the store")]
    Collected(ObjectId),
    #[error("cannot bring `{}` to that state", path.display())]
    Rollback { path: PathBuf, source: rollback::RollbackError },
    #[error("`{}` is in its new state, but the last steps are left to the next command", path.display())]
    Incomplete { path: PathBuf, source: rollback::RollbackError },
    #[error("signal {signal} came, and `{}` is as it was", path.display())]
    Interrupted { path: PathBuf, signal: i32 },
    #[error("signal {signal} came too late to put `{}` back: it is in its new state", path.display())]
    InterruptedLate { path: PathBuf, signal: i32 },
    #[error("cannot compare the two states")]
    Diff(#[from] diff::DiffError),
    #[error("the state is damaged")]
    State(#[from] StateError),
}

impl From<StoreError> for BoardError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Meta(error) => error.into(),
            error => Self::Store(error),
        }
    }
}

impl From<MetaError> for BoardError {
    fn from(error: MetaError) -> Self {
        match error {
            MetaError::Unknown(text) => Self::Unknown(text),
            MetaError::Ambiguous { text, candidates } => {
                Self::Ambiguous { text, candidates: candidates.iter().map(ToString::to_string).collect() }
            }
            MetaError::NoMove { subject, direction } => Self::NothingTo { subject, done: direction.done() },
            error => Self::Store(StoreError::Meta(error)),
        }
    }
}

/// The way out where there is no room.
pub(crate) const FULL: &str = "the disk is full, or your share of it: make room there, and call it again";

const READ_ONLY: &str = "what is recorded can be looked at, but nothing can be written there: make it writable, or let \
                         `XDG_DATA_HOME` name another directory";

/// The way out where a store is of no use any more.
fn set_aside(store: &Path) -> String {
    let store = store.display();
    format!(
        "set the store aside: `mv {store} {store}.damaged`; sandboxes keep their work, and the next command records anew what \
         they stand on"
    )
}

impl BoardError {
    /// A state that was not recorded.
    pub(super) fn of_snapshot(path: &Path, source: OnboardError) -> Self {
        match source {
            OnboardError::Snapshot(SnapshotError::Cancelled) => Self::Cancelled(path.to_owned()),
            source => Self::Snapshot { path: path.to_owned(), source: Box::new(source) },
        }
    }

    /// The signal that ended it.
    pub const fn signal(&self) -> Option<i32> {
        match self {
            Self::Interrupted { signal, .. } | Self::InterruptedLate { signal, .. } => Some(*signal),
            _ => None,
        }
    }
}

impl Diagnose for BoardError {
    fn fault(&self) -> Fault {
        match self {
            Self::Unknown(_)
            | Self::Ambiguous { .. }
            | Self::NoStates(_)
            | Self::NoBase(_)
            | Self::NothingTo { .. }
            | Self::NotDirectory(_)
            | Self::NotManaged(_)
            | Self::IsSource(_) => Fault::Input,
            _ => Fault::Machine,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown-state",
            Self::Ambiguous { .. } => "ambiguous-state",
            Self::NoStates(_) | Self::NoBase(_) => "no-states",
            Self::NothingTo { .. } => "nothing-to-undo",
            Self::NotDirectory(_) => "not-a-directory",
            Self::NotManaged(_) => "not-empty",
            Self::IsSource(_) => "is-a-source",
            Self::Changed { .. } => "changed-since",
            Self::Collected(_) => "state-collected",
            Self::Stores(_) | Self::Store(_) => "store",
            Self::Directory { .. } => "directory",
            Self::Snapshot { .. } | Self::Repository { .. } => "snapshot",
            Self::Checkout { .. } => "checkout",
            Self::Rollback { .. } => "rollback",
            Self::Incomplete { .. } => "incomplete",
            Self::Interrupted { .. } | Self::InterruptedLate { .. } | Self::Cancelled(_) => "interrupted",
            Self::Diff(_) => "diff",
            Self::State(_) => "damaged",
        }
    }

    fn remedy(&self) -> Option<String> {
        if is_full(self) || matches!(self, Self::Store(StoreError::Write(WriteError::NoSpace { .. }))) {
            return Some(FULL.to_owned());
        }
        if matches!(self, Self::Store(error) if is_read_only(error)) {
            return Some(READ_ONLY.to_owned());
        }
        Some(match self {
            Self::Unknown(_) => {
                "`sandtable log` lists the snapshots, `sandtable ls` the sandboxes".to_owned()
            }
            Self::Ambiguous { candidates, .. } => {
                format!(
                    "write more of it: {}",
                    candidates.iter().take(5).cloned().collect::<Vec<_>>().join(", ")
                )
            }
            Self::NoStates(_) => {
                "`sandtable onboard` records its state, and so does `sandtable run`".to_owned()
            }
            Self::NotManaged(_) | Self::IsSource(_) => {
                "name an empty directory, or one that does not exist".to_owned()
            }
            Self::Changed { .. } => "record what is there first: `sandtable snapshot`".to_owned(),
            Self::Collected(_) => {
                "your files are unchanged; edit them by hand, or with git where there is one".to_owned()
            }
            Self::State(_) | Self::Store(StoreError::Read(_)) => {
                "`sandtable store fsck --deep` names everything that is damaged".to_owned()
            }
            Self::Store(StoreError::Meta(
                error @ (MetaError::Damaged { path, .. } | MetaError::Database { path, .. }),
            )) if error.is_damage() => set_aside(path.parent().unwrap_or(path)),
            Self::Store(StoreError::Format { dir, fault: FormatFault::Other(_) }) => {
                format!("use the newer version of Sandtable that made it, or {}", set_aside(dir))
            }
            Self::Store(StoreError::Meta(MetaError::Format { path, .. })) => {
                let aside = set_aside(path.parent().unwrap_or(path));
                format!("use the newer version of Sandtable that made it, or {aside}")
            }
            Self::Store(StoreError::Format { dir, .. } | StoreError::Source(dir)) => set_aside(dir),
            Self::Store(StoreError::Write(WriteError::Quota { .. })) => {
                "`sandtable store gc` frees what no snapshot needs; `sandtable rm` lets go of sandboxes"
                    .to_owned()
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_full_disk_is_no_reason_to_set_a_store_aside() {
        let path = PathBuf::from("/d");
        for errno in [Errno::NOSPC, Errno::DQUOT] {
            let written = checkout::CheckoutError::Write { path: RelPath::root(), source: errno.into() };
            let journal =
                rollback::RollbackError::Journal(std::io::Error::other(StoreError::Io(errno.into())));
            for error in [
                BoardError::Checkout { path: path.clone(), source: written },
                BoardError::Rollback { path: path.clone(), source: journal },
                BoardError::Store(StoreError::Io(errno.into())),
                BoardError::Store(WriteError::NoSpace { free: 1, kept: 2 }.into()),
            ] {
                assert_eq!(error.remedy().as_deref(), Some(FULL), "{error:?}");
            }
            let read_only = BoardError::Store(StoreError::Io(Errno::ROFS.into()));
            assert_eq!(read_only.remedy().as_deref(), Some(READ_ONLY));
        }
    }
}
