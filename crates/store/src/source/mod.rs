//! Looking at the user's source without opening a file of it.
//!
//! [`scan`] records what every entry looks like to `statx`; [`drift`] says what moved in the source while a
//! command ran on a copy-on-write view of it; [`find_secrets`] and [`find_chosen`] find names to hide before a start. None of
//! them follows a symlink or crosses into another mount, and none reads content.
//!
//! # Why looking at times is enough
//!
//! Drift is judged by the *change* time, which the kernel sets at every change of content, mode, owner, name
//! or link count and which no program can set back, unlike the modification time. It is as fine as a
//! clock tick, so a file can change twice without its change time moving. This is the well-known race of
//! stat caches, and it cannot bite here:
//!
//! - T0 is taken from the same coarse clock that the kernel stamps files with ([`Stamp::now`]). Whatever
//!   changes after T0 therefore has a change time of at least T0, and is reported for that alone.
//! - A scan starts after T0. A file that changed in the very tick in which it was scanned, the only one whose
//!   second change the scan could miss, has a change time of at least T0 as well.
//! - So the scan is needed only for what leaves no time behind: a name that is gone, and a file that came by
//!   rename from elsewhere with an old change time (a rename sets the time on most file systems, not on
//!   all). For a name that was gone before the scan came to its directory there is the change time of
//!   the directory: [`DriftKind::Contents`].
//!
//! What changed in the same tick just before T0 is reported too: better a change too many than one too few.
//! Some file systems store whole seconds only; a change time without a fraction is taken as anywhere in its
//! second. If the clock is set back while the command runs, only what differs from the scan is found.

pub mod attributes;
mod before;
pub(crate) mod cursor;
mod drift;
mod git;
pub mod index;
mod listing;
pub mod repository;
mod scan;
mod secrets;
mod sightings;
mod stamp;

use std::fmt;
use std::io;
use std::path::PathBuf;

pub use before::Before;
pub use drift::{Drift, DriftKind, compare, drift};
pub(crate) use git::GitState;
pub use listing::{Entry, Listing};
pub use scan::{scan, scan_with};
pub use secrets::{find_chosen, find_secrets, is_secret};
pub(crate) use sightings::Sighting;
pub use sightings::Sightings;
pub use stamp::{Moment, Stamp};

use crate::name_pattern::Pattern;
use crate::path::RelPath;

/// What a scan is to note besides the entries themselves.
#[derive(Clone, Copy)]
pub struct SourceOptions<'a> {
    /// Names that say *secret*.
    pub secrets: &'a [Pattern],
    /// Who may own entries; the others are noted. `None` asks nothing.
    pub owners: Option<Owners<'a>>,
    /// Asked before every entry; `true` ends the scan with [`SourceError::Cancelled`].
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// The users and groups that exist for the sandbox.
#[derive(Clone, Copy, Debug)]
pub struct Owners<'a> {
    pub users: &'a [u32],
    /// `None` asks nothing about groups.
    pub groups: Option<&'a [u32]>,
}

impl fmt::Debug for SourceOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceOptions").field("secrets", &self.secrets).finish_non_exhaustive()
    }
}

impl<'a> SourceOptions<'a> {
    /// Notes nothing besides the entries.
    pub const fn new(cancelled: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { secrets: &[], owners: None, cancelled }
    }
}

/// Why a source could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("cannot open `{}`", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot read `{}` in the source", path.display_escaped())]
    Read { path: RelPath, source: io::Error },
    #[error("the source has more entries than can be recorded")]
    TooMany,
    #[error("looking at the source was cancelled")]
    Cancelled,
}
