//! Comparing states, and whether a path may be used.

use std::os::fd::AsFd as _;
use std::path::Path;

use sandtable_store::diff::{self, Diff, render};
use sandtable_store::dir::open_named;
use sandtable_store::object::ReadObjects;
use sandtable_store::safe::open_safe;

use super::{Board, BoardError, Found};

impl Board {
    /// What differs between two snapshots of one store.
    pub fn diff_snapshots(&self, from: &Found, to: &Found) -> Result<Diff, BoardError> {
        let (old, new) = (from.state()?, to.state()?);
        Ok(diff::diff(from.store.objects(), &old, &new, &diff::DiffOptions::default())?)
    }
}

/// A difference as people read it: a unified diff, in colour or plain.
pub fn format_diff_for_display(
    objects: &dyn ReadObjects,
    found: &Diff,
    colour: render::Colour,
) -> Result<String, render::RenderError> {
    let mut out = Vec::new();
    render::unified(
        &mut out,
        objects,
        found,
        &render::RenderOptions { colour, ..render::RenderOptions::default() },
    )?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Whether `path` stays inside `root`, whatever links and mounts there are on the way. The answer holds for the
/// moment it is given; who wants to use the path keeps the handle that [`open_safe`] gives.
pub fn is_path_safe(path: &[u8], root: &Path) -> bool {
    open_named(root).is_ok_and(|root| open_safe(root.as_fd(), path).is_ok())
}
