//! Whether what is about to be touched is what it is believed to be.

use std::collections::HashSet;
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::io::{Errno, Result};

use super::disk::{self, Known};
use super::plan::{Plan, Step};
use crate::dir::{Kind, Meta, names, open_below, open_dir, open_file, stat_at};
use crate::id::ObjectId;
use crate::object::ReadObjects;
use crate::object::name::git_refuses;
use crate::path::RelPath;
use crate::snapshot::FILE_LIMIT;
use crate::state::{Node, What};

/// How far the caller vouches for what is on the disk.
#[derive(Clone, Copy)]
pub enum Verify<'a> {
    /// The state to leave was taken from the disk just now. Only what no state has is looked for.
    Trust,
    /// Every touched path is compared, by what the function knows of its content (a stat cache), else by reading it.
    Check(&'a (dyn Fn(&RelPath, &Meta) -> Option<ObjectId> + Sync)),
}

impl std::fmt::Debug for Verify<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Trust => "Trust",
            Self::Check(_) => "Check",
        })
    }
}

/// At which moment it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Nothing was touched yet.
    Before,
    /// Some steps may have been done: each path may be what it was, what it shall be, or gone.
    Between,
}

pub(super) struct Verifier<'a> {
    pub(super) objects: &'a dyn ReadObjects,
    pub(super) root: BorrowedFd<'a>,
    pub(super) verify: Verify<'a>,
    pub(super) moment: Moment,
}

/// As many paths as are named in an error.
pub(super) const MOST: usize = 100;

impl Verifier<'_> {
    /// The paths that are something else, about so many at most; an empty list is good news.
    pub(super) fn changed(&self, plan: &Plan, most: usize) -> Result<Vec<RelPath>> {
        let touched: HashSet<&RelPath> = plan.steps.iter().map(|step| &step.path).collect();
        let mut changed = Vec::new();
        for step in plan.steps.iter().filter(|step| !step.path.is_root()) {
            if changed.len() >= most {
                break;
            }
            if !self.fits(step)? || self.has_lost_its_place(step, &touched) {
                changed.push(step.path.clone());
            }
            changed.extend(self.strangers(step, &touched)?);
        }
        Ok(changed)
    }

    fn fits(&self, step: &Step) -> Result<bool> {
        let Some((parent, name)) = disk::parent(self.root, &step.path)? else {
            // Not even its directory is there.
            return Ok(self.may_be_absent(step));
        };
        let place = (parent.as_fd(), name);
        let Some(meta) = disk::look(place.0, name)? else { return Ok(self.may_be_absent(step)) };
        if self.moment == Moment::Between && meta.kind == Kind::Directory {
            let is_directory = |node: &Option<Node>| node.as_ref().is_some_and(is_directory);
            if is_directory(&step.pre) || is_directory(&step.post) {
                return Ok(true);
            }
        }
        let known: Known<'_> = &|meta| match self.verify {
            Verify::Trust => None,
            Verify::Check(known) => known(&step.path, meta),
        };
        // What stands there may be what shall come: the state to leave was recorded without it.
        let may_have_come = self.moment == Moment::Between || step.pre.is_none();
        if step.pre.is_none() && meta.kind == Kind::Directory && step.post.as_ref().is_some_and(is_directory)
        {
            return Ok(true);
        }
        let is = |node: &Option<Node>| match node {
            Some(node) => match disk::is(self.objects, place, node, known) {
                // Of one that may not be read nobody can say that it is the same.
                Err(Errno::ACCESS | Errno::PERM) => Ok(false),
                is => is,
            },
            None => Ok(false),
        };
        Ok(match self.verify {
            Verify::Trust if self.moment == Moment::Before => {
                step.pre.as_ref().is_some_and(|pre| kind(pre) == meta.kind)
                    || (may_have_come && is(&step.post)?)
            }
            _ => is(&step.pre)? || (may_have_come && is(&step.post)?),
        })
    }

    /// Whether something is to come into a directory that was there, and that somebody removed.
    fn has_lost_its_place(&self, step: &Step, touched: &HashSet<&RelPath>) -> bool {
        let above = step.path.parent().unwrap_or_default();
        let stood = step.post.is_some() && !above.is_root() && !touched.contains(&above);
        stood && self.moment == Moment::Between && open_below(self.root, &above).is_err()
    }

    /// Whether nobody else need have removed it. What is replaced by one of its kind is never absent on the way.
    fn may_be_absent(&self, step: &Step) -> bool {
        match (&step.pre, &step.post) {
            (None, _) => true,
            (Some(pre), Some(post)) if is_directory(pre) == is_directory(post) => false,
            _ => self.moment == Moment::Between,
        }
    }

    /// Entries that no state knows, in a directory that must go.
    fn strangers(&self, step: &Step, touched: &HashSet<&RelPath>) -> Result<Vec<RelPath>> {
        let goes = step.pre.as_ref().is_some_and(|pre| pre.as_directory().is_some());
        let comes = step.post.as_ref().map(is_directory);
        let matters = match comes {
            Some(true) => false,
            // It cannot be replaced as long as they are in it.
            Some(false) => true,
            // Otherwise it may stay, with them in it, if the caller knows of them.
            None => matches!((self.verify, self.moment), (Verify::Check(_), Moment::Before)),
        };
        if !goes || !matters {
            return Ok(Vec::new());
        }
        let Ok(directory) = open_below(self.root, &step.path) else { return Ok(Vec::new()) };
        // What no state can hold may stay, and its directory with it; anything else is somebody's new work.
        let stays = |name: &[u8]| comes.is_none() && !is_recordable(directory.as_fd(), name);
        let found = names(directory.as_fd())?.into_iter().filter(|name| !stays(&name.bytes));
        let found = found.filter_map(|name| step.path.join(&name.bytes).ok());
        Ok(found.filter(|path| !touched.contains(path)).collect())
    }
}

/// Whether a state could hold the entry.
fn is_recordable(directory: BorrowedFd<'_>, name: &[u8]) -> bool {
    let Ok(meta) = stat_at(directory, name) else { return false };
    if git_refuses(name) || meta.is_mount {
        return false;
    }
    match meta.kind {
        Kind::File => meta.size <= FILE_LIMIT && open_file(directory, name, &meta).is_ok(),
        Kind::Directory => open_dir(directory, name).is_ok(),
        Kind::Symlink => true,
        Kind::Fifo | Kind::Socket | Kind::Character | Kind::Block => false,
    }
}

/// What it is on the disk.
fn kind(node: &Node) -> Kind {
    match node.what {
        What::File(_) => Kind::File,
        What::Symlink(_) => Kind::Symlink,
        What::Directory(_) | What::Gitlink(_) => Kind::Directory,
    }
}

/// Whether it is a directory on the disk.
pub(super) fn is_directory(node: &Node) -> bool {
    kind(node) == Kind::Directory
}
