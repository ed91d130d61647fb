//! Making a state from a directory.
//!
//! [`take`] looks at every entry by handle, reads what the stat cache or the git index cannot vouch for, and writes the
//! trees. The directory may be the work of a sandbox and may change while it is read. So nothing is followed,
//! nothing that could block is opened, a file that changes under the reader is read again, and what is left out in the end is
//! in [`SnapshotOutcome::skipped`] with its reason: nothing is dropped silently.
//!
//! The top-level `.git` is not part of a state and is not looked into.

mod content;
mod file;
mod found;
mod holes;
mod known;
mod linked;
mod list;
mod noticing;
mod onboard;
mod outcome;
mod queue;
mod sparing;
mod walk;

use std::io;
use std::os::fd::BorrowedFd;

pub use onboard::{IndexUse, OnboardError, Onboarded, Onboarding, Settings, onboard};
pub use outcome::{Changed, Counts, SnapshotOutcome};

pub(crate) use file::{FileReader, Nothing, attributes, judge, link};
pub(crate) use found::Findings;
pub(crate) use holes::Holes;
pub(crate) use linked::Linked;
pub(crate) use list::{Small, small_file};

use crate::ignore::Rules;
pub use crate::object::SizeOf;
use crate::object::{ReadObjects, WriteObjects};
use crate::path::RelPath;
use crate::source::attributes::Conversions;
use crate::source::index::Index;
use crate::source::{Moment, Sightings};
use crate::statcache::{self, StatCache};
use crate::state::StateError;
pub use crate::state::{Ignored, SkipReason, Skipped};

/// The largest file that states of sandboxes and sources hold. [`SkipReason::TooLarge`] names it to people.
pub const FILE_LIMIT: u64 = 4 << 30;

/// How to take a snapshot of a directory.
#[derive(Clone, Copy)]
pub struct SnapshotOptions<'a> {
    pub ignored: Ignored,
    /// The rules in force at the root, besides those in the tree: the user's list and `info/exclude`.
    pub rules: &'a Rules,
    /// Larger files are skipped.
    pub file_limit: u64,
    /// With more entries than this there is no snapshot.
    pub entry_limit: u64,
    /// When it was asked for, if that was earlier. What changes from then on may be taken for a change meanwhile.
    pub began: Option<Moment>,
    /// Asked before every entry and now and then in a large file; `true` ends it with [`SnapshotError::Cancelled`].
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
    /// Told now and then how far it is.
    pub progress: &'a (dyn Fn(&Counts) + Sync),
    /// What was seen the last time.
    pub cache: Option<&'a StatCache>,
    /// What git says of its own files.
    pub index: Option<&'a Known<'a>>,
    /// Where to put down what directories look like, for whoever wants to know that too.
    pub sightings: Option<&'a Sightings>,
}

/// What is known of a repository's files before they are looked at.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    pub index: &'a Index,
    /// The attributes in force at the root, besides those in the tree.
    pub conversions: &'a Conversions,
    /// The size of a blob in the user's own object store, where it can be told: what git may have converted is believed
    /// only if it has the size of the file.
    pub objects: Option<&'a dyn SizeOf>,
}

/// Where objects come from and go to.
#[derive(Clone, Copy)]
pub struct Store<'a> {
    pub objects: &'a dyn ReadObjects,
    pub sink: &'a dyn WriteObjects,
}

impl std::fmt::Debug for Store<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl std::fmt::Debug for SnapshotOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("ignored", &self.ignored).finish_non_exhaustive()
    }
}

impl<'a> SnapshotOptions<'a> {
    /// Everything, from nothing.
    pub const fn all(rules: &'a Rules, cancelled: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            ignored: Ignored::All,
            rules,
            file_limit: FILE_LIMIT,
            entry_limit: 20_000_000,
            began: None,
            cancelled,
            progress: &|_| {},
            cache: None,
            index: None,
            sightings: None,
        }
    }
}

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("cannot read `{}`", path.display_escaped())]
    Read { path: RelPath, source: io::Error },
    #[error(transparent)]
    State(#[from] StateError),
    #[error("cannot write what the files look like")]
    Cache(#[source] io::Error),
    #[error("the directory was moved while it was read")]
    Moved(#[from] crate::dir::Moved),
    #[error("there are more than {0} entries")]
    TooMany(u64),
    #[error("the snapshot was cancelled")]
    Cancelled,
}

/// Makes a state from the directory `root`; `cache` takes what its files look like.
pub fn take(
    root: BorrowedFd<'_>,
    store: Store<'_>,
    options: &SnapshotOptions<'_>,
    cache: Option<&mut statcache::Writer>,
) -> Result<SnapshotOutcome, SnapshotError> {
    walk::run(root, store, options, cache)
}
