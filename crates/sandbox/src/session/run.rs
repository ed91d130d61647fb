//! Running a command in a sandbox that this process supervises: a new one, or a stopped one that goes on.

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use sandtable_launch::attach::{AttachError, Carrier, Ending, Invocation, Terminal};
use sandtable_launch::wire::{StartStep, Status};
use sandtable_store::lock::FileLock;

use super::capture::{Capture, Watch};
use super::create::{Created, create, id_base, place};
use super::directory::{SandboxDirectory, Sandboxes, random};
use super::error::Error;
use super::events::{Event, EventKind};
use super::files::OUTCOME;
use super::logs::LOG;
use super::readable;
use super::record::{Base, Exit, ExitOrigin, Outcome, Record, SCHEMA, Timings};
use super::watcher::Watcher;
use crate::engine::enforcement::refusal;
use crate::engine::{Handles, Place, Plan, Running, engine};
use crate::model::id::SandboxName;
use crate::model::path::BoxPath;
use crate::model::resolved::{ResolvedSpec, Warning};
use crate::model::spec::Lifetime;

/// A command for a new sandbox.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub command: &'a [OsString],
    /// How long resolving took, for the record.
    pub resolve_ms: u64,
    pub streams: Streams,
    pub watcher: &'a dyn Watcher,
}

/// What a command talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Whoever called.
    Caller(Terminal),
    /// Nobody; what it writes is kept for `logs`.
    Log,
}

/// Makes a sandbox and runs a command in it.
pub fn run(
    sandboxes: &Sandboxes,
    resolved: ResolvedSpec,
    name: Option<&SandboxName>,
    request: Request<'_>,
) -> Result<Outcome, Error> {
    let began = Instant::now();
    let lifetime = resolved.lifetime.value;
    let Created { directory, lock, record } = create(sandboxes, resolved, name, request)?;
    let start = record.resolved.directory.clone();
    let task = Task { directory: start, began, first: First::Yes, request };
    let outcome = supervise(&directory, &lock, &record, &task);
    // A sandbox in which nothing ran holds nothing. The lock is held until it is gone: nobody else removes it,
    // and nobody takes the name in between.
    let nothing_ran = outcome.as_ref().is_err_and(Error::nothing_ran);
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
    let place = Place { directory, name, id_base: id_base(resolved) };
    engine(resolved.engine).plan(resolved, &place)
}

/// One command of a sandbox that this process supervises.
#[derive(Debug)]
pub(super) struct Task<'a> {
    pub(super) request: Request<'a>,
    pub(super) directory: BoxPath,
    pub(super) began: Instant,
    pub(super) first: First,
}

/// Whether the sandbox was made for this command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    Yes,
    No,
}

impl Task<'_> {
    /// The command runs: everybody who wants to know is told.
    fn started(&self, directory: &SandboxDirectory, record: &Record) {
        self.request.watcher.started(&record.name);
        let started =
            Event { command: Some(readable(self.request.command)), ..Event::new(EventKind::Started, record) };
        match self.first {
            First::Yes => directory.note(&[Event::new(EventKind::Created, record), started]),
            First::No => directory.note(&[started]),
        }
    }
}

/// Launches the sandbox on its layer, runs the command, and captures what it changed. The mounts are gone when
/// it returns.
pub(super) fn supervise(
    directory: &SandboxDirectory,
    lock: &FileLock,
    record: &Record,
    task: &Task<'_>,
) -> Result<Outcome, Error> {
    let mut ran = false;
    let outcome = attend(directory, lock, record, (task, &mut ran));
    if ran {
        let command = Some(readable(task.request.command));
        directory.note(&[match &outcome {
            Ok(outcome) => {
                Event { command, exit: Some(outcome.exit), ..Event::new(EventKind::Ended, record) }
            }
            Err(error) => {
                Event { command, error: Some(error.to_string()), ..Event::new(EventKind::Failed, record) }
            }
        }]);
    }
    outcome
}

fn attend(
    directory: &SandboxDirectory,
    lock: &FileLock,
    record: &Record,
    (task, ran): (&Task<'_>, &mut bool),
) -> Result<Outcome, Error> {
    let resolved = &record.resolved;
    let mut watch = Watch::new(resolved);
    let mut sandbox = launch(directory, lock, record).inspect_err(|_| directory.stop_listening())?;
    let enforcement = sandbox.report().controls.clone();
    let start = task.began.elapsed();
    let invocation = invocation(directory, record, task);
    let deadline = invocation.deadline;
    let ending = sandbox.run(invocation, &mut || {
        watch.start();
        *ran = true;
        task.started(directory, record);
    });
    let run = task.began.elapsed().saturating_sub(start);
    if ending.is_ok() {
        sandbox.wait_for_others(deadline, &mut |others| task.request.watcher.waiting(others));
    }
    let starved = starved(sandbox.as_ref(), resolved);
    sandbox.end();
    if resolved.lifetime.value == Lifetime::Discard && resolved.limits.is_empty() {
        // While the kernel takes the sandbox down. What its last processes still write is removed after. With
        // limits the directory holds the journal of control groups, which must outlive them.
        let _once_more = directory.delete();
    }
    drop(sandbox);
    directory.stop_listening();
    let exit = match (ending, &starved) {
        // PID 1 was among what the kernel killed.
        (Err(AttachError::Lost(_)), Some(_)) => {
            Exit { code: 137, signal: Some(9), origin: ExitOrigin::Sandbox }
        }
        (ending, _) => exit(ending?, task)?,
    };
    let captured = Instant::now();
    let Capture { changes, drift, warnings } = match resolved.lifetime.value {
        Lifetime::Keep => watch.capture(directory, record)?,
        Lifetime::Discard => Capture::default(),
    };
    let mut outcome = Outcome {
        changes,
        drift,
        warnings: joined(&resolved.warnings, warnings.into_iter().chain(starved).collect()),
        timings_ms: Timings {
            resolve: task.request.resolve_ms,
            start: millis(start),
            run: millis(run),
            capture: millis(captured.elapsed()),
        },
        ..outcome(record, task.request.command, exit)
    };
    outcome.enforcement = enforcement;
    if resolved.lifetime.value == Lifetime::Keep {
        let unrecorded = |cause| Error::Unrecorded { name: record.name.clone(), cause: Box::new(cause) };
        directory.write(OUTCOME, &outcome).map_err(unrecorded)?;
    }
    Ok(outcome)
}

/// Starts PID 1 and refuses to go on if a required control does not hold.
fn launch(directory: &SandboxDirectory, lock: &FileLock, record: &Record) -> Result<Box<dyn Running>, Error> {
    let engine = engine(record.resolved.engine);
    let plan = engine.plan(&record.resolved, &place(directory, record));
    let control = directory.listen()?;
    let handles = Handles { control: control.as_fd(), lock: lock.as_fd() };
    let sandbox = engine.launch(&plan, &handles)?;
    match refusal(&record.resolved, sandbox.report()) {
        Some(refusal) => Err(refusal.into()),
        None => Ok(sandbox),
    }
}

pub(super) fn invocation(directory: &SandboxDirectory, record: &Record, task: &Task<'_>) -> Invocation {
    Invocation {
        argv: task.request.command.to_vec(),
        environment: environment(record),
        directory: task.directory.as_path().to_owned(),
        carrier: match task.request.streams {
            Streams::Caller(terminal) => Carrier::Caller(terminal),
            Streams::Log => Carrier::Log(directory.path().join(LOG).into()),
        },
        deadline: record
            .resolved
            .limits
            .timeout
            .as_ref()
            .map(|limit| Instant::now() + limit.value.duration()),
    }
}

/// What to say when the kernel killed something because the sandbox had no memory left.
fn starved(sandbox: &dyn Running, resolved: &ResolvedSpec) -> Option<Warning> {
    let limit = resolved.limits.memory.as_ref().filter(|_| sandbox.ran_out_of_memory())?;
    let text = format!(
        "the sandbox used all of the {} of memory it may use, and the kernel killed a process in it; \
         `--memory` allows more",
        limit.value
    );
    Some(Warning::new("out-of-memory", text))
}

/// The environment of every command of a sandbox.
fn environment(record: &Record) -> Vec<OsString> {
    let pairs =
        record.resolved.environment.iter().map(|(name, variable)| format!("{name}={}", variable.value));
    pairs.chain([format!("SANDBOX={}", record.name)]).map(OsString::from).collect()
}

/// What a record says of a command before anything is known but its end.
pub(super) fn outcome(record: &Record, command: &[OsString], exit: Exit) -> Outcome {
    let resolved = &record.resolved;
    Outcome {
        schema: SCHEMA,
        sandbox: record.sandbox.clone(),
        name: record.name.clone(),
        engine: resolved.engine,
        engine_reason: resolved.engine_reason.clone(),
        command: readable(command),
        exit,
        base: Base::Source,
        mode: resolved.mode.clone(),
        changes: None,
        drift: Vec::new(),
        enforcement: std::collections::BTreeMap::new(),
        mounts: resolved.mounts.clone(),
        network: resolved.network.value,
        limits: resolved.limits.clone(),
        timings_ms: Timings::default(),
        warnings: Vec::<Warning>::new(),
    }
}

/// The exit code of a command that ran, or why it did not.
pub(super) fn exit(ending: Ending, task: &Task<'_>) -> Result<Exit, Error> {
    let program =
        || task.request.command.first().map_or_else(String::new, |word| word.to_string_lossy().into_owned());
    match ending {
        Ending::Ended(Status::Exited { code }) => {
            let code = u8::try_from(code & 0xff).expect("the low eight bits");
            Ok(Exit { code, signal: None, origin: ExitOrigin::Command })
        }
        Ending::Ended(Status::Signalled { number }) => {
            let code = u8::try_from(128 + number).unwrap_or(u8::MAX);
            Ok(Exit { code, signal: Some(number), origin: ExitOrigin::Command })
        }
        Ending::TimedOut => Ok(Exit { code: 124, signal: None, origin: ExitOrigin::Sandbox }),
        Ending::NotStarted { step: StartStep::Program, cause: Errno::NOENT | Errno::NOTDIR } => {
            Err(Error::CommandNotFound { program: program() })
        }
        Ending::NotStarted { step: StartStep::Program, cause } => {
            Err(Error::CommandNotExecutable { program: program(), cause })
        }
        Ending::NotStarted { step: StartStep::Directory, cause } => {
            Err(Error::Directory { directory: task.directory.to_string(), cause })
        }
        Ending::NotStarted { step: StartStep::Process, cause } => Err(Error::Process(cause)),
    }
}

/// What was known before the command and what was found after it, which is more exact where both speak.
fn joined(before: &[Warning], after: Vec<Warning>) -> Vec<Warning> {
    let superseded = |warning: &&Warning| after.iter().any(|later| later.code == warning.code);
    let kept: Vec<Warning> = before.iter().filter(|warning| !superseded(warning)).cloned().collect();
    kept.into_iter().chain(after).collect()
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
