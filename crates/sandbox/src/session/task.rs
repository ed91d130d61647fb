//! One command: what it is asked to be, and what its end means.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use sandtable_protocol::invocation::{Carrier, Ending, Invocation};
use sandtable_protocol::wire::{StartStep, Status};

use super::directory::SandboxDirectory;
use super::error::SessionError;
use super::events::{Event, EventKind};
use super::readable;
use super::record::{Exit, ExitOrigin, Outcome, Record, SCHEMA, Timings, UsedTool};
use super::run::{Request, Streams};
use crate::model::layout::{LOG, STDERR, STDOUT};
use crate::model::observe;
use crate::model::path::BoxPath;
use crate::model::resolved::Warning;

/// One command of a sandbox.
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
    pub(super) fn started(&self, directory: &SandboxDirectory, record: &Record) {
        self.request.observer.event(&observe::Event::Started(&record.name));
        let started =
            Event { command: Some(readable(self.request.command)), ..Event::new(EventKind::Started, record) };
        match self.first {
            First::Yes => directory.note(&[Event::new(EventKind::Created, record), started]),
            First::No => directory.note(&[started]),
        }
    }

    /// The command has ended, and so many of others go on.
    pub(super) fn waiting(&self, others: usize) {
        self.request.observer.event(&observe::Event::Waiting { others });
    }
}

/// What PID 1 is asked to run.
pub(super) fn invocation(directory: &SandboxDirectory, record: &Record, task: &Task<'_>) -> Invocation {
    Invocation {
        argv: task.request.command.to_vec(),
        environment: environment(record),
        directory: task.directory.as_path().to_owned(),
        carrier: match task.request.streams {
            Streams::Caller(terminal) => Carrier::Caller(terminal),
            Streams::Log => Carrier::Log(directory.path().join(LOG).into()),
            Streams::Files => Carrier::Files {
                out: directory.path().join(STDOUT).into(),
                err: directory.path().join(STDERR).into(),
            },
        },
        deadline: record
            .resolved
            .limits
            .timeout
            .as_ref()
            .map(|limit| Instant::now() + limit.value.duration()),
    }
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
        base: resolved.base.value,
        mode: resolved.mode.clone(),
        changes: None,
        drift: Vec::new(),
        snapshot: None,
        enforcement: std::collections::BTreeMap::new(),
        mounts: resolved.mounts.clone(),
        network: resolved.network.value,
        limits: resolved.limits.clone(),
        tools: resolved.tools.iter().map(UsedTool::from).collect(),
        timings_ms: Timings::default(),
        warnings: Vec::<Warning>::new(),
    }
}

/// The exit code of a command that ran, or why it did not.
pub(super) fn exit(ending: Ending, task: &Task<'_>) -> Result<Exit, SessionError> {
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
            Err(SessionError::CommandNotFound { program: program() })
        }
        Ending::NotStarted { step: StartStep::Program, cause } => {
            Err(SessionError::CommandNotExecutable { program: program(), cause })
        }
        Ending::NotStarted { step: StartStep::Directory, cause } => {
            Err(SessionError::Directory { directory: task.directory.to_string(), cause })
        }
        Ending::NotStarted { step: StartStep::Process, cause } => Err(SessionError::Process(cause)),
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
