//! Single paths, shown as they were.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;

use super::mark::Made;
use super::upper::{Merge, Writing};
use super::{LayerWriteError, LayerWriteOptions, LayerWriteOutcome};
use crate::checkout::{Near, Way, write_error};
use crate::dir::{Kind, open_below, stat_at};
use crate::object::ReadObjects;
use crate::path::RelPath;
use crate::remove::remove_at;
use crate::state::{Node, State, StateError, What};

/// Makes the layer `pins` show each of `paths` as `base` has it: the file, or nothing.
///
/// What the layer has at a path already stays: it was pinned before, or hidden on purpose. A directory is pinned with
/// everything in it, unless the tree below (`options.lower`) still has a directory there; then only what it says of
/// itself is.
pub fn pin(
    objects: &dyn ReadObjects,
    base: &State,
    pins: (BorrowedFd<'_>, &[RelPath]),
    options: &LayerWriteOptions<'_>,
) -> Result<LayerWriteOutcome, LayerWriteError> {
    let (layer, paths) = pins;
    let mut pinning = Pinning { objects, base, writing: Writing::new(objects, layer, options), options };
    for path in paths {
        pinning.one(path)?;
    }
    let mut outcome = pinning.writing.outcome;
    outcome.skipped.sort_unstable();
    outcome.skipped.dedup();
    Ok(outcome)
}

/// What [`pin`] would make in the layer `pins`: for each of `paths` the first name on the way to it that is not there yet.
pub fn unpinned(pins: BorrowedFd<'_>, paths: &[RelPath]) -> Vec<RelPath> {
    let mut near = Near::new(pins);
    let mut missing: Vec<RelPath> = paths.iter().filter_map(|path| first_missing(&mut near, path)).collect();
    missing.sort_unstable();
    missing.dedup();
    missing
}

fn first_missing(near: &mut Near<'_>, path: &RelPath) -> Option<RelPath> {
    let mut way = Way::root();
    for name in path.components() {
        let parent = near.open(&way).ok()?;
        way = way.below(name);
        if stat_at(parent.as_fd(), name).is_err() {
            return Some(way.path());
        }
    }
    None
}

/// Takes out of the layer `pins` what a [`pin`] that was interrupted may have made half, as [`unpinned`] named it before.
pub fn unpin(pins: BorrowedFd<'_>, made: &[RelPath]) -> Result<(), LayerWriteError> {
    made.iter().try_for_each(|path| {
        let removed = open_below(pins, &path.parent().unwrap_or_default())
            .and_then(|parent| remove_at(parent.as_fd(), path.name().ok_or(Errno::INVAL)?));
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(write_error(path, errno).into()),
        }
    })
}

struct Pinning<'a> {
    objects: &'a dyn ReadObjects,
    base: &'a State,
    writing: Writing<'a>,
    options: &'a LayerWriteOptions<'a>,
}

impl Pinning<'_> {
    fn one(&mut self, path: &RelPath) -> Result<(), LayerWriteError> {
        let mut way = Way::root();
        let mut sought = RelPath::root();
        for name in path.components() {
            way = way.below(name);
            sought.push(name).expect("a component of a path is a name");
            let is_last = sought == *path;
            match self.base.lookup(self.objects, &sought)? {
                // Nothing of what lies below it was there.
                None => {
                    return if self.has(&way) { Ok(()) } else { self.writing.whiteout(&way) };
                }
                Some(node) if is_last => return self.put(&way, &node),
                Some(node) if node.as_directory().is_some() => {
                    if self.has(&way) && !self.has_directory(&way) {
                        return Ok(());
                    }
                    self.merge(&way, &node)?;
                }
                // The way led through what was no directory: that is what must be shown.
                Some(node) => return self.put(&way, &node),
            }
        }
        Ok(())
    }

    fn put(&mut self, way: &Arc<Way>, node: &Node) -> Result<(), LayerWriteError> {
        if self.has(way) {
            return Ok(());
        }
        match &node.what {
            What::Directory(_) => {
                let below = self.writing.below(way).is_some();
                if below { self.merge(way, node) } else { self.whole(way, node) }
            }
            What::Gitlink(_) => Ok(()),
            What::File(_) | What::Symlink(_) => self.writing.entry(way, node),
        }
    }

    fn merge(&mut self, way: &Arc<Way>, node: &Node) -> Result<(), LayerWriteError> {
        if self.writing.directory(way, Merge::Below)? == Made::New {
            self.writing.settle_one(way, &node.own)?;
        }
        Ok(())
    }

    /// A directory with everything in it.
    fn whole(&mut self, way: &Arc<Way>, node: &Node) -> Result<(), LayerWriteError> {
        self.writing.directory(way, Merge::Nothing)?;
        let mut found = vec![(Arc::clone(way), node.clone())];
        let mut at = 0;
        while let Some((way, node)) = found.get(at).cloned() {
            at += 1;
            let What::Directory(directory) = &node.what else { continue };
            for entry in directory.read(self.objects)? {
                let way = way.below(&entry.name);
                if entry.node.as_directory().is_some() {
                    self.writing.directory(&way, Merge::Nothing)?;
                    found.push((way, entry.node));
                } else {
                    self.writing.entry(&way, &entry.node)?;
                }
            }
            if found.len() as u64 > self.options.limits.entries {
                return Err(StateError::TooMany.into());
            }
        }
        found.iter().rev().try_for_each(|(way, node)| self.writing.settle_one(way, &node.own))
    }

    fn has(&self, way: &Way) -> bool {
        self.kind(way).is_some()
    }

    fn has_directory(&self, way: &Way) -> bool {
        self.kind(way) == Some(Kind::Directory)
    }

    fn kind(&self, way: &Way) -> Option<Kind> {
        let parent = self.writing.open(way.parent()?).ok()?;
        stat_at(parent.as_fd(), way.name()?).ok().map(|meta| meta.kind)
    }
}
