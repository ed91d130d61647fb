//! Single paths, shown as they were.

use std::os::fd::BorrowedFd;

use super::mark::Made;
use super::upper::{Merge, Writing};
use super::{Error, Options, Outcome};
use crate::dir::{Kind, open_below, stat_at};
use crate::object::ReadObjects;
use crate::path::RelPath;
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
    options: &Options<'_>,
) -> Result<Outcome, Error> {
    let (layer, paths) = pins;
    let mut pinning =
        Pinning { objects, base, layer, writing: Writing::new(objects, layer, options), options };
    for path in paths {
        pinning.one(path)?;
    }
    let mut outcome = pinning.writing.outcome;
    outcome.skipped.sort_unstable();
    outcome.skipped.dedup();
    Ok(outcome)
}

struct Pinning<'a> {
    objects: &'a dyn ReadObjects,
    base: &'a State,
    layer: BorrowedFd<'a>,
    writing: Writing<'a>,
    options: &'a Options<'a>,
}

impl Pinning<'_> {
    fn one(&mut self, path: &RelPath) -> Result<(), Error> {
        let mut way = RelPath::root();
        for name in path.components() {
            way.push(name).expect("a component of a path is a name");
            let is_last = way == *path;
            match self.base.lookup(self.objects, &way)? {
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

    fn put(&mut self, path: &RelPath, node: &Node) -> Result<(), Error> {
        if self.has(path) {
            return Ok(());
        }
        match &node.what {
            What::Directory(_) => {
                let below = self.options.lower.is_some_and(|lower| open_below(lower, path).is_ok());
                if below { self.merge(path, node) } else { self.whole(path, node) }
            }
            What::Gitlink(_) => Ok(()),
            What::File(_) | What::Symlink(_) => self.writing.entry(path, node),
        }
    }

    fn merge(&mut self, path: &RelPath, node: &Node) -> Result<(), Error> {
        if self.writing.directory(path, Merge::Below)? == Made::New {
            self.writing.settle_one(path, node)?;
        }
        Ok(())
    }

    /// A directory with everything in it.
    fn whole(&mut self, path: &RelPath, node: &Node) -> Result<(), Error> {
        self.writing.directory(path, Merge::Nothing)?;
        let mut found = vec![(path.clone(), node.clone())];
        let mut at = 0;
        while let Some((path, node)) = found.get(at).cloned() {
            at += 1;
            let What::Directory(directory) = &node.what else { continue };
            for entry in directory.read(self.objects)? {
                let path = path.join(&entry.name).expect("a state has names only");
                if entry.node.as_directory().is_some() {
                    self.writing.directory(&path, Merge::Nothing)?;
                    found.push((path, entry.node));
                } else {
                    self.writing.entry(&path, &entry.node)?;
                }
            }
            if found.len() as u64 > self.options.limits.entries {
                return Err(StateError::TooMany.into());
            }
        }
        found.iter().rev().try_for_each(|(path, node)| self.writing.settle_one(path, node))
    }

    fn has(&self, path: &RelPath) -> bool {
        self.kind(path).is_some()
    }

    fn has_directory(&self, path: &RelPath) -> bool {
        self.kind(path) == Some(Kind::Directory)
    }

    fn kind(&self, path: &RelPath) -> Option<Kind> {
        let parent = open_below(self.layer, &path.parent()?).ok()?;
        stat_at(std::os::fd::AsFd::as_fd(&parent), path.name()?).ok().map(|meta| meta.kind)
    }
}
