//! Finishes or undoes what was broken off.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::apply::Apply;
use super::aside::{self, List};
use super::back::Back;
use super::disk::Tree;
use super::journal::{Found, Phase, Place, Record, UNFINISHED, Work};
use super::plan::Plan;
use super::verify::Verify;
use super::{Durability, Move, RollbackError, Unknown, settle_root, work_dir};
use crate::checkout::{Maker, read_error, take_away, write_error};
use crate::dir::{names, open_named, reopen, stat_fd};
use crate::object::ReadObjects;
use crate::path::RelPath;
use crate::state::Limits;

/// A record that was found, and what became of it.
#[derive(Debug)]
pub struct Recovered {
    pub id: String,
    /// `rollback` or `checkout`.
    pub what: &'static str,
    /// Empty where the record does not even say that.
    pub target: PathBuf,
    /// Device and inode of the directory.
    pub identity: Option<((u32, u32), u64)>,
    pub result: Result<Recovery, RollbackError>,
    /// Paths that somebody changed, removed or told git of since: they are as that left them. Also what somebody wrote to
    /// files that had gone already, under new names.
    pub left_alone: Vec<RelPath>,
}

impl Recovered {
    /// Whether it may be of this directory, or of one that this one lies in: by path, by identity, or because the record
    /// does not say.
    pub fn concerns(&self, directory: &Path) -> bool {
        let is_it = |path: &Path| {
            let meta = open_named(path).and_then(|dir| stat_fd(dir.as_fd()));
            meta.is_ok_and(|meta| Some((meta.dev, meta.ino)) == self.identity)
        };
        self.target.as_os_str().is_empty()
            || directory.starts_with(&self.target)
            || directory.ancestors().any(is_it)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The directory is in the state it was to get.
    Finished,
    /// The directory is in the state it was in; after a checkout, empty of what that wrote.
    Undone,
    /// The directory of a checkout is not there any more, or another one is: there is nothing to mend.
    Gone,
    /// The directory is not there, or another one is: it may be on a disk that is not there now, or have another name. The
    /// record stays.
    Missing,
}

/// Goes through all records in the directory `journal`. The caller holds the locks of what they speak of.
///
/// What somebody changed since it was broken off is left alone. `noted` gets the words that came with what stands now, before its record is removed.
pub fn recover(
    objects: &dyn ReadObjects,
    journal: BorrowedFd<'_>,
    verify: Verify<'_>,
    noted: &dyn Fn(&str) -> io::Result<()>,
) -> io::Result<Vec<Recovered>> {
    let mut all = Vec::new();
    for name in names(reopen(journal)?.as_fd())? {
        let Ok(name) = String::from_utf8(name.bytes) else { continue };
        let place = Place { dir: journal, name: &name, durability: Durability::Durable };
        if name.ends_with(UNFINISHED) {
            // A version that was never put in place.
            place.remove()?;
            continue;
        }
        let mut record = match place.read() {
            Ok(Found::Record(record)) => record,
            Ok(Found::Unreadable { target }) => {
                all.push(unreadable(name, target));
                continue;
            }
            // One that cannot be read keeps nobody from the others.
            Err(_) => {
                all.push(unreadable(name, None));
                continue;
            }
        };
        let ended = find(&mut record, &place).and_then(|root| match root {
            Some(root) => mend(objects, (&name, &record), (root.as_fd(), verify)),
            None => Ok((not_there(&record), Vec::new())),
        });
        let result = ended.and_then(|(done, left)| {
            if let (Recovery::Finished, Some(note)) = (done, &record.note) {
                noted(note).map_err(RollbackError::Journal)?;
            }
            if done != Recovery::Missing {
                place.remove().map_err(RollbackError::Journal)?;
            }
            Ok((done, left))
        });
        let (result, left_alone) = match result {
            Ok((done, left)) => (Ok(done), left),
            Err(error) => (Err(error), Vec::new()),
        };
        let what = match record.work {
            Work::Checkout { .. } => "checkout",
            Work::Rollback { .. } => "rollback",
        };
        let identity = Some(record.identity);
        all.push(Recovered { id: name.clone(), what, target: record.target, identity, result, left_alone });
    }
    Ok(all)
}

fn unreadable(id: String, target: Option<PathBuf>) -> Recovered {
    let (target, result) = (target.unwrap_or_default(), Err(RollbackError::Unreadable));
    Recovered { id, what: "rollback", target, identity: None, result, left_alone: Vec::new() }
}

type Mended = (Recovery, Vec<RelPath>);

/// Opens the directory of a record; none if it is not there, or if another one has its name.
///
/// A disk may get another device number when the machine starts again or when it is plugged in again. So a directory with the
/// same inode at the same path is accepted as well if it holds our directory aside, and the record gets the new number.
fn find(record: &mut Record, place: &Place<'_>) -> Result<Option<OwnedFd>, RollbackError> {
    let read = |errno| RollbackError::from(read_error(&RelPath::root(), errno));
    let root = match open_named(&record.target) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        opened => opened.map_err(read)?,
    };
    let meta = stat_fd(root.as_fd()).map_err(read)?;
    let (found, known) = ((meta.dev, meta.ino), record.identity);
    if found == known {
        return Ok(Some(root));
    }
    let holds_ours = match &record.work {
        // A checkout puts nothing into its directory but what it writes there.
        Work::Checkout { .. } => false,
        Work::Rollback { staging, .. } => work_dir::open(root.as_fd(), staging).map_err(read)?.is_some(),
    };
    if found.1 != known.1 || !holds_ours {
        return Ok(None);
    }
    record.identity = found;
    place.write(record).map_err(RollbackError::Journal)?;
    Ok(Some(root))
}

/// What becomes of a record whose directory is not there.
fn not_there(record: &Record) -> Recovery {
    match record.work {
        Work::Checkout { .. } => Recovery::Gone,
        Work::Rollback { .. } => Recovery::Missing,
    }
}

fn mend(
    objects: &dyn ReadObjects,
    (id, record): (&str, &Record),
    (root, verify): (BorrowedFd<'_>, Verify<'_>),
) -> Result<Mended, RollbackError> {
    match &record.work {
        Work::Checkout { to } => {
            take_away(objects, to, root)?;
            Ok((Recovery::Undone, Vec::new()))
        }
        Work::Rollback { from, staging, phase: Phase::Staging, .. } => {
            let kept = work_dir::remove(root, staging, id).map_err(|errno| write_error(staging, errno))?;
            settle_root(objects, from, root, record.times)?;
            Ok((Recovery::Undone, kept.into_iter().collect()))
        }
        Work::Rollback { from, to, staging, phase } => {
            let broken = Broken { objects, root, record, staging, states: Move { from, to } };
            broken.end(*phase, (id, verify))
        }
    }
}

/// A turn that was broken off when files were changing places.
struct Broken<'a> {
    objects: &'a dyn ReadObjects,
    root: BorrowedFd<'a>,
    record: &'a Record,
    staging: &'a RelPath,
    states: Move<'a>,
}

impl Broken<'_> {
    fn end(&self, phase: Phase, (id, verify): (&str, Verify<'_>)) -> Result<Mended, RollbackError> {
        let &Self { objects, root, record, staging, states: Move { from, to } } = self;
        let write = |errno| RollbackError::from(write_error(staging, errno));
        if phase != Phase::Done && aside::git_is_at_work(root).map_err(write)? {
            // The witness is about to be replaced, and what is being committed must not change beneath.
            return Err(RollbackError::GitAtWork);
        }
        let plan = |states| Plan::new(objects, states, Unknown::Partial, Limits::default());
        let (forth, reverse) = (plan(self.states)?, plan(Move { from: to, to: from })?);
        let (aside, staging) = work_dir::open_or_make(root, staging, id).map_err(write)?;
        let list = List::read(aside.as_fd(), &forth).map_err(RollbackError::Journal)?;
        let taken = list.as_ref().map(|list| list.taken_up(root, &forth, to.tree.kind())).unwrap_or_default();
        let maker = Maker::new(objects, aside.as_fd(), record.times);
        let (tree, staging_fd) = (Tree::new(root), aside.as_fd());
        let (progress, cancelled): (&dyn Fn(), &dyn Fn() -> bool) = (&|| {}, &|| false);
        let apply = Apply { maker, tree, staging: staging_fd, id, verify, progress, cancelled };
        let back = Back { apply: &apply, plan: &forth, reverse: &reverse, list: list.as_ref(), taken };
        let (mut left, now, became) = match phase {
            Phase::Done => (back.sweep()?, to, Recovery::Finished),
            Phase::Staging | Phase::Applying => (back.put_back()?, from, Recovery::Undone),
        };
        crate::os::write_out(root).map_err(write)?;
        left.extend(work_dir::remove(root, &staging, id).map_err(write)?);
        settle_root(objects, now, root, record.times)?;
        Ok((became, left))
    }
}
