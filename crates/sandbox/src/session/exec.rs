//! A further command in an existing sandbox: joins it while it runs, goes on from where it was left when it
//! does not.
//!
//! Whoever gets the layer's lock mounts it and supervises; everybody else becomes a client of that PID 1. A
//! sandbox that is just ending takes no client, so the attempt starts over until one of the two works.

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use sandtable_launch::outside::attach;
use sandtable_protocol::invocation::{AttachError, Invocation, Terminal};

use super::create::renew_work;
use super::directory::{SandboxDirectory, Sandboxes};
use super::error::SessionError;
use super::manage::existing;
use super::record::{Outcome, Record, Timings};
use super::run::{Request, Streams};
use super::states::{Settled, settle, whole, without_lost};
use super::supervise::supervise;
use super::task::{First, Task, exit, invocation, millis, outcome};
use crate::facts::MachineFacts;
use crate::host::Host;
use crate::model::causes::chained;
use crate::model::id::SandboxName;
use crate::model::observe::{Event, Observer};
use crate::model::path::BoxPath;
use crate::resolve::renew;

/// How long a sandbox may be starting or ending before we give up.
const PATIENCE: Duration = Duration::from_secs(20);

/// A command for an existing sandbox.
#[derive(Clone, Debug)]
pub struct ExecRequest<'a> {
    pub command: &'a [OsString],
    /// Where it starts; where the sandbox's own command started if not given.
    pub directory: Option<BoxPath>,
    pub terminal: Terminal,
    pub observer: &'a dyn Observer,
    /// Who calls now.
    pub host: &'a Host,
}

/// Runs a command in the sandbox `name`.
pub fn exec(
    sandboxes: &Sandboxes,
    name: &SandboxName,
    request: ExecRequest<'_>,
) -> Result<Outcome, SessionError> {
    let directory = existing(sandboxes, name)?;
    let mut record = directory.read_record()?;
    directory.fill_in_values(&mut record)?;
    let ExecRequest { command, directory: start, terminal, observer, host } = request;
    let start = start.unwrap_or_else(|| record.resolved.directory.clone());
    let request = Request { command, resolve_ms: 0, streams: Streams::Caller(terminal), observer };
    let task = Task { request, directory: start, began: Instant::now(), first: First::No };
    let done = SandboxDirectory::retry(PATIENCE, || {
        if let Some(lock) = directory.try_lock()? {
            if !directory.exists() {
                return Err(SessionError::Unknown(name.clone()));
            }
            // What a killed supervisor left of a container may hold files that only its engine can remove.
            directory.reap_groups();
            renew_work(&directory, &record.resolved)?;
            let mut record = record.clone();
            renew(&mut record.resolved, host, &MachineFacts)?;
            whole(&directory, &record)?;
            match settle(&directory, &mut record) {
                Ok(Settled::Pinned(moved)) => observer.event(&Event::Pinned { paths: moved }),
                Ok(Settled::Replaced) => observer.event(&Event::SourceReplaced),
                // A full disk or a damaged store must not keep anybody from the work in the sandbox.
                Err(error) => observer.event(&Event::NotCompared { why: &chained(&error) }),
            }
            if without_lost(&mut record) {
                observer.event(&Event::ObjectsReplaced);
            }
            return supervise(&directory, &lock, &record, &task).map(Some);
        }
        join(&directory, &record, &task)
    })?;
    done.ok_or_else(|| SessionError::Busy(name.clone()))
}

/// Runs the command as a client of the sandbox's PID 1. `None` if that takes no commands (yet, or any more).
fn join(
    directory: &SandboxDirectory,
    record: &Record,
    task: &Task<'_>,
) -> Result<Option<Outcome>, SessionError> {
    let Some(socket) = directory.connect() else { return Ok(None) };
    // The time of the sandbox's own command is its supervisor's business.
    let invocation = Invocation { deadline: None, ..invocation(directory, record, task) };
    let began = Instant::now();
    let mut enforcement = std::collections::BTreeMap::new();
    let ending = match attach::run(socket.as_fd(), invocation, |report| enforcement = report.controls.clone())
    {
        Err(AttachError::NotTaken) => return Ok(None),
        ending => ending?,
    };
    let exit = exit(ending, task)?;
    let timings_ms = Timings { run: millis(began.elapsed()), ..Timings::default() };
    Ok(Some(Outcome { enforcement, timings_ms, ..outcome(record, task.request.command, exit) }))
}
