//! Writes layers: what an overlay needs to show one state on top of another.
//!
//! [`write_upper`] fills an empty directory so that, mounted above a tree in the state `base`, it shows exactly the
//! state `to`: whiteouts for what went, opaque directories for what is a directory now and was none, and files as they
//! shall be. That costs what differs. [`exchange_upper`] puts such a directory in the place of another at once, for a
//! sandbox that is stopped; nobody ever sees half of it. [`pin`] does the like for single paths, in a layer between: each
//! is shown as it was in `base`, whatever the source below has become.
//!
//! [`carry`] takes along what no state holds.
//!
//! The marks are those of an overlay mounted with `userxattr`, and all of this can be done by an ordinary user. The
//! top-level `.git` is not part of a state; its kept layer is written by [`write_git`].

mod carry;
mod exchange;
mod git;
pub(super) mod mark;
mod pin;
mod upper;

use std::io;
use std::os::fd::BorrowedFd;

pub use carry::{Layers, carry};
pub use exchange::exchange_upper;
pub use git::write_git;
pub use pin::{pin, unpin, unpinned};
pub use upper::write_upper;

use crate::checkout::{self, CheckoutSkipped, Times, Way};
use crate::path::RelPath;
use crate::state::{Limits, StateError};

/// How to write.
#[derive(Clone, Copy, Debug)]
pub struct LayerWriteOptions<'a> {
    pub times: Times,
    pub limits: Limits,
    /// To whom entries are given; whoever writes keeps them otherwise.
    pub owner: Option<(u32, u32)>,
    /// The tree below. Directories that merge with one of it take its owner, which an overlay would show otherwise.
    pub lower: Option<BorrowedFd<'a>>,
}

impl Default for LayerWriteOptions<'_> {
    fn default() -> Self {
        Self { times: Times::Recorded, limits: Limits::default(), owner: None, lower: None }
    }
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerWriteOutcome {
    pub files: u64,
    pub bytes: u64,
    pub whiteouts: u64,
    /// What will not be shown as the state has it, sorted by path.
    pub skipped: Vec<CheckoutSkipped>,
}

/// Why a layer could not be written.
#[derive(Debug, thiserror::Error)]
pub enum LayerWriteError {
    #[error(transparent)]
    Write(#[from] checkout::CheckoutError),
    #[error(transparent)]
    State(#[from] StateError),
    /// No state holds these, and something of the state to come stands in their place.
    #[error("`{}` is in no state, and would be replaced", .0.first().map(RelPath::display_escaped).unwrap_or_default())]
    InTheWay(Vec<RelPath>),
    #[error("cannot put the new layer in its place")]
    Exchange(#[source] io::Error),
}

fn at(way: &Way) -> impl Fn(rustix::io::Errno) -> LayerWriteError {
    move |errno| checkout::write_error(&way.path(), errno).into()
}
