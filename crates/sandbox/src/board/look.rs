//! Comparing states, and whether a path may be used.

use std::os::fd::AsFd as _;
use std::path::Path;

use sandtable_store::diff::{self, Diff};
use sandtable_store::dir::open_named;
use sandtable_store::object::ReadObjects;
use sandtable_store::safe::open_safe;
use sandtable_store::state::State;

use super::{Board, Error, Found};

impl Board {
    /// What differs between two snapshots of one store.
    pub fn diff_snapshots(&self, from: &Found, to: &Found) -> Result<Diff, Error> {
        let (old, new) = (from.state()?, to.state()?);
        Ok(diff::diff(from.store.objects(), &old, &new, &diff::Options::default())?)
    }
}

/// A difference as people read it: a unified diff, in colour or plain.
pub fn format_diff_for_display(
    objects: &dyn ReadObjects,
    found: &Diff,
    colour: diff::render::Colour,
) -> Result<String, Error> {
    Ok(diff::render::unified(objects, found, colour)?)
}

/// Whether `path` stays inside `root`, whatever links and mounts there are on the way. The answer holds for the
/// moment it is given; who wants to use the path keeps the handle that [`open_safe`] gives.
pub fn is_path_safe(path: &[u8], root: &Path) -> bool {
    open_named(root).is_ok_and(|root| open_safe(root.as_fd(), path).is_ok())
}

/// The two states, so that nobody mixes them up.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    pub from: &'a State,
    pub to: &'a State,
}
