//! Whether what is about to be touched is what it is believed to be.

use std::collections::HashSet;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use rustix::io::{Errno, Result};

use super::RollbackError;
use super::disk::{self, Known, Tree};
use super::plan::{Plan, Step};
use crate::checkout::{Way, read_error};
use crate::dir::{Kind, Meta, names, open_dir, open_file, stat_at};
use crate::id::ObjectId;
use crate::object::ReadObjects;
use crate::object::name::git_refuses;
use crate::path::RelPath;
use crate::snapshot::FILE_LIMIT;
use crate::state::{Node, What};

/// A path, for those who want to know it: it may be very long.
pub type Path<'a> = &'a dyn Fn() -> RelPath;

/// How far the caller vouches for what is on the disk.
#[derive(Clone, Copy)]
pub enum Verify<'a> {
    /// The state to leave was taken from the disk just now. Only what no state has is looked for beforehand.
    Trust,
    /// Every touched path is compared, by what the function knows of its content (a stat cache), else by reading it.
    Check(&'a (dyn Fn(Path<'_>, &Meta) -> Option<ObjectId> + Sync)),
}

impl std::fmt::Debug for Verify<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Trust => "Trust",
            Self::Check(_) => "Check",
        })
    }
}

pub(super) struct Verifier<'a> {
    pub(super) objects: &'a dyn ReadObjects,
    pub(super) tree: Tree<'a>,
    pub(super) verify: Verify<'a>,
    /// Asked before every step.
    pub(super) cancelled: &'a dyn Fn() -> bool,
}

/// What is touched, by its directory and its name.
type Touched<'a> = HashSet<(*const Way, &'a [u8])>;

/// As many paths as are named in an error.
pub(super) const MOST: usize = 100;

impl Verifier<'_> {
    /// The paths that are something else, about so many at most; an empty list is good news.
    pub(super) fn changed<'p>(
        &self,
        plan: &'p Plan,
        most: usize,
    ) -> std::result::Result<Vec<RelPath>, RollbackError> {
        let touched = |step: &'p Step| Some((Arc::as_ptr(step.way.parent()?), step.way.name()?));
        let touched: Touched<'p> = plan.steps.iter().filter_map(touched).collect();
        let mut changed = Vec::new();
        for step in plan.steps.iter().filter(|step| !step.way.is_root()) {
            if changed.len() >= most {
                break;
            }
            if (self.cancelled)() {
                return Err(RollbackError::Cancelled);
            }
            let read = |errno| read_error(&step.way.path(), errno);
            if !self.fits(step).map_err(read)? {
                changed.push(step.way.path());
            }
            changed.extend(self.strangers(step, &touched).map_err(read)?);
        }
        Ok(changed)
    }

    fn fits(&self, step: &Step) -> Result<bool> {
        let Some((parent, name)) = self.tree.parent(&step.way)? else {
            // Not even its directory is there.
            return Ok(step.pre.is_none());
        };
        let place = (parent.as_fd(), name);
        let Some(meta) = disk::look(place.0, name)? else { return Ok(step.pre.is_none()) };
        let known: Known<'_> = &|meta| match self.verify {
            Verify::Trust => None,
            Verify::Check(known) => known(&|| step.way.path(), meta),
        };
        // What stands there may be what shall come: the state to leave was recorded without it.
        let may_have_come = step.pre.is_none();
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
            Verify::Trust => {
                step.pre.as_ref().is_some_and(|pre| kind(pre) == meta.kind)
                    || (may_have_come && is(&step.post)?)
            }
            Verify::Check(_) => is(&step.pre)? || (may_have_come && is(&step.post)?),
        })
    }

    /// Entries that no state knows, in a directory that must go.
    fn strangers(&self, step: &Step, touched: &Touched<'_>) -> Result<Vec<RelPath>> {
        let goes = step.pre.as_ref().is_some_and(|pre| pre.as_directory().is_some());
        let comes = step.post.as_ref().map(is_directory);
        let matters = match comes {
            Some(true) => false,
            // It cannot be replaced as long as they are in it.
            Some(false) => true,
            // Otherwise it may stay, with them in it, if the caller knows of them.
            None => matches!(self.verify, Verify::Check(_)),
        };
        if !goes || !matters {
            return Ok(Vec::new());
        }
        let Ok(directory) = self.tree.open(&step.way) else { return Ok(Vec::new()) };
        // What no state can hold may stay, and its directory with it; anything else is somebody's new work.
        let stays = |name: &[u8]| comes.is_none() && !is_recordable(directory.as_fd(), name);
        let is_touched = |name: &[u8]| touched.contains(&(Arc::as_ptr(&step.way), name));
        let found = names(directory.as_fd())?.into_iter();
        let found = found.filter(|name| !is_touched(&name.bytes) && !stays(&name.bytes));
        Ok(found.map(|name| step.way.path_of(&name.bytes)).collect())
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
