//! A control group asked of systemd. Where systemd runs, the groups are its own: it may take a controller away
//! from them at any time, and an ordinary user may not write to most. What it hands out on request is a
//! *transient scope*, a group that belongs to whoever asked for it (`Delegate=yes`) and vanishes by itself when
//! the last process in it has ended, also after a crash.
//!
//! The supervisor moves into the scope, and there into a group of its own, because a group with processes
//! cannot have groups with controllers. From then on it stands in a delegated group like any other. It asks
//! on the manager's private socket, so no message bus is needed. What comes back is read strictly,
//! and that we were moved is read from the kernel rather than believed.

mod message;
mod parse;
mod talk;
mod unit;

use std::io::Write as _;
use std::path::PathBuf;

use fs_err as fs;
use sandtable_protocol::op::{Limits, Systemd};

use super::hierarchy::{Hierarchy, Version};
use message::Request;
pub(super) use unit::top_of_unit;

/// The group of the supervisor in its scope.
const SUPERVISOR: &str = "supervisor";

/// Why systemd gave us no control group.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("its socket `{}` cannot be reached: {source}", path.display())]
    Connect { path: PathBuf, source: std::io::Error },
    #[error("whoever listens at `{}` is neither you nor root", path.display())]
    Stranger { path: PathBuf },
    #[error("it did not let us in")]
    NotLetIn,
    #[error("the talk with it broke off: {0}")]
    Broken(std::io::Error),
    #[error("it sent something that cannot be understood: {0}")]
    Malformed(#[from] parse::Malformed),
    #[error("it says: {text} ({name})")]
    Refused { name: String, text: String },
    #[error("starting the scope ended with `{result}`")]
    Job { result: String },
    #[error("it said that we were moved into `{unit}`, and we were not")]
    NotMoved { unit: String },
    #[error("its scope could not be used: {0}")]
    Unusable(std::io::Error),
}

/// Where this process stands afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    WhereWeWere,
    Moved,
}

/// Moves this process into a scope of its own, unless it stands where groups may be made: in a unit that was
/// given away, or where there is no systemd.
pub(super) fn settle(limits: &Limits, hierarchies: &[Hierarchy]) -> Result<Settled, Error> {
    let (Some(manager), Some(unified)) = (&limits.systemd, unified(hierarchies)) else {
        return Ok(Settled::WhereWeWere);
    };
    if top_of_unit(&unified.own).is_none_or(unit::is_delegated) {
        return Ok(Settled::WhereWeWere);
    }
    // Another launch of the same sandbox may still have its scope: the number tells them apart.
    let unit = format!("{}-{}.scope", limits.group, std::process::id());
    enter_scope(manager, &unit, unified).map(|()| Settled::Moved)
}

fn enter_scope(manager: &Systemd, unit: &str, before: &Hierarchy) -> Result<(), Error> {
    let slice = unit::slice(&before.path(), manager.whose);
    let request = Request { unit, slice: slice.as_deref() };
    talk::start_scope(&manager.socket, &request)?;
    let now = Hierarchy::all();
    let Some(scope) = unified(&now).filter(|found| found.own.ends_with(unit)) else {
        return Err(Error::NotMoved { unit: unit.to_owned() });
    };
    step_aside(scope).map_err(Error::Unusable)
}

fn unified(hierarchies: &[Hierarchy]) -> Option<&Hierarchy> {
    hierarchies.iter().find(|found| found.version == Version::Two)
}

/// Empties the scope itself, so that it can hand controllers on.
fn step_aside(scope: &Hierarchy) -> std::io::Result<()> {
    let aside = scope.own.join(SUPERVISOR);
    fs::create_dir(&aside)?;
    fs::OpenOptions::new().write(true).open(aside.join("cgroup.procs"))?.write_all(b"0")
}
