//! Finishes or undoes what was broken off.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;

use super::apply::{Apply, Strangers, remove_staging};
use super::journal::{Phase, Place, Record, UNFINISHED, Work};
use super::plan::Plan;
use super::verify::{Moment, Verifier, Verify};
use super::{Durability, Error, Move, Unknown, make_staging, settle_root};
use crate::checkout::{Maker, take_away, write_error};
use crate::dir::{names, open_below, open_named, reopen, stat_fd};
use crate::object::ReadObjects;
use crate::path::RelPath;
use crate::state::{Limits, State};

/// A record that was found, and what became of it.
#[derive(Debug)]
pub struct Recovered {
    pub id: String,
    /// `rollback` or `checkout`.
    pub what: &'static str,
    pub target: PathBuf,
    pub result: Result<Recovery, Error>,
    /// Paths that were neither what they had been nor what they were to become: somebody changed or removed them since, and
    /// they are as that left them.
    pub left_alone: Vec<RelPath>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The directory is in the state it was to get.
    Finished,
    /// The directory is in the state it was in; after a checkout, empty of what that wrote.
    Undone,
    /// The directory is not there any more, or another one is: there is nothing to mend.
    Gone,
}

/// Goes through all records in the directory `journal`. The caller holds the locks of what they speak of.
///
/// With [`Verify::Trust`] a file that was changed since it was broken off is replaced; else it is left alone, and all the
/// rest is finished. `noted` gets the words that came with what stands now, before its record is removed.
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
        let Some(record) = place.read()? else { continue };
        let result = mend(objects, &record, verify).and_then(|(done, left)| {
            if let (Recovery::Finished, Some(note)) = (done, &record.note) {
                noted(note).map_err(Error::Journal)?;
            }
            place.remove().map_err(Error::Journal)?;
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
        all.push(Recovered { id: name.clone(), what, target: record.target, result, left_alone });
    }
    Ok(all)
}

type Mended = (Recovery, Vec<RelPath>);

fn mend(objects: &dyn ReadObjects, record: &Record, verify: Verify<'_>) -> Result<Mended, Error> {
    let gone = (Recovery::Gone, Vec::new());
    let Ok(root) = open_named(&record.target) else { return Ok(gone) };
    let meta = stat_fd(root.as_fd()).map_err(|errno| write_error(&RelPath::root(), errno))?;
    if (meta.dev, meta.ino) != record.identity {
        return Ok(gone);
    }
    match &record.work {
        Work::Checkout { to } => {
            take_away(objects, to, root.as_fd())?;
            Ok((Recovery::Undone, Vec::new()))
        }
        Work::Rollback { from, staging, phase: Phase::Staging, .. } => {
            remove_staging(root.as_fd(), staging)?;
            settle_root(objects, from, root.as_fd(), record.times)?;
            Ok((Recovery::Undone, Vec::new()))
        }
        Work::Rollback { from, to, staging, phase: Phase::Applying } => {
            let left = finish(objects, (root.as_fd(), record, staging), (from, to), verify)?;
            Ok((Recovery::Finished, left))
        }
    }
}

fn finish(
    objects: &dyn ReadObjects,
    site: (BorrowedFd<'_>, &Record, &str),
    states: (&State, &State),
    verify: Verify<'_>,
) -> Result<Vec<RelPath>, Error> {
    let (root, record, staging) = site;
    let (from, to) = states;
    let mut plan = Plan::new(objects, Move { from, to }, Unknown::Partial, Limits::default())?;
    let mut left = Vec::new();
    if matches!(verify, Verify::Check(_)) {
        let verifier = Verifier { objects, root, verify, moment: Moment::Between };
        left = verifier.changed(&plan, usize::MAX).map_err(|errno| write_error(&RelPath::root(), errno))?;
        plan.leave_alone(&left);
        let comes: HashSet<RelPath> = plan.steps.iter().map(|step| step.path.clone()).collect();
        plan.holders.retain(|holder| comes.contains(&holder.path) || open_below(root, &holder.path).is_ok());
    }
    let aside = match crate::dir::open_dir(root, staging.as_bytes()) {
        Ok(aside) => aside,
        Err(_) => make_staging(root, staging)?,
    };
    let maker = Maker::new(objects, aside.as_fd(), record.times);
    let strangers = match verify {
        Verify::Trust => Strangers::Replace,
        Verify::Check(_) => Strangers::Keep,
    };
    let apply = Apply { maker, root, staging: aside.as_fd(), prefix: 'n', strangers, progress: &|| {} };
    apply.apply(&plan)?;
    crate::os::write_out(root).map_err(|errno| write_error(&RelPath::root(), errno))?;
    remove_staging(root, staging)?;
    settle_root(objects, to, root, record.times)?;
    Ok(left)
}
