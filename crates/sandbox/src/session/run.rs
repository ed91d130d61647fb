//! Running a command in a new sandbox.

use std::ffi::OsString;
use std::time::Instant;

use sandtable_protocol::invocation::Terminal;

use super::create::{Created, Wanted, create, id_base, now};
use super::directory::Sandboxes;
use super::error::SessionError;
use super::events::{Event, EventKind};
use super::record::Outcome;
use super::supervise::supervise;
use super::task::{First, Task};
use crate::engine::{Place, Plan, engine};
use crate::model::id::SandboxName;
use crate::model::observe::Observer;
use crate::model::resolved::ResolvedSpec;
use crate::model::spec::Lifetime;
use crate::random::random;

/// A command for a new sandbox.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub command: &'a [OsString],
    /// How long resolving took, for the record.
    pub resolve_ms: u64,
    pub streams: Streams,
    pub observer: &'a dyn Observer,
}

/// What a command talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Whoever called.
    Caller(Terminal),
    /// Nobody; what it writes is kept for `logs`.
    Log,
    /// Nobody; what it writes is kept whole, a file for each stream.
    Files,
}

/// Makes a sandbox and runs a command in it.
pub fn run(
    sandboxes: &Sandboxes,
    resolved: ResolvedSpec,
    name: Option<&SandboxName>,
    request: Request<'_>,
) -> Result<Outcome, SessionError> {
    let began = Instant::now();
    let lifetime = resolved.lifetime.value;
    let Created { directory, lock, record } =
        create(sandboxes, resolved, Wanted { name, base: None }, request)?;
    let start = record.resolved.directory.clone();
    let task = Task { directory: start, began, first: First::Yes, request };
    let outcome = supervise(&directory, &lock, &record, &task);
    // A sandbox in which nothing ran holds nothing. The lock is held until it is gone: nobody else removes it,
    // and nobody takes the name in between.
    let nothing_ran = outcome.as_ref().is_err_and(SessionError::nothing_ran);
    if lifetime == Lifetime::Discard || nothing_ran {
        directory.delete()?;
        if !nothing_ran {
            directory.note(&[Event::new(EventKind::Removed, &record)]);
        }
    }
    drop(lock);
    outcome
}

/// What `run` would do, without doing any of it.
pub fn preview(sandboxes: &Sandboxes, resolved: &ResolvedSpec, name: Option<SandboxName>) -> Plan {
    let name = name.unwrap_or_else(|| SandboxName::from_random(random()));
    let directory = sandboxes.at(&name).path().clone();
    let (pid, started) = (std::process::id(), now());
    let place = Place { directory, name, id_base: id_base(resolved), pid, started };
    engine(resolved.engine).plan(resolved, &place)
}
