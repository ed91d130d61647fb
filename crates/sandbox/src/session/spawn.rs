//! Running a command in a new sandbox from any process, with as many threads as it likes.
//!
//! A launch forks and goes on with ordinary code in the child, which only a process with one thread may do; every other one
//! is refused by [`can_start`](crate::engine::can_start). [`spawn`] starts our executable as [`SUBCOMMAND`], which is
//! such a process. It gets the resolved request, supervises the sandbox as the command line would, and sends back what
//! happens. The sandbox ends with the caller: a [`Spawned`] that is dropped, or whose process dies, stops it.

mod inbox;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sandtable_launch::outside::delegate::{self, Line};
use sandtable_protocol::invocation::Terminal;
use sandtable_protocol::wire::WireError;
use serde::{Deserialize, Serialize};

use super::directory::Sandboxes;
use super::error::SessionError;
use super::manage::stop_this;
use super::record::Outcome;
use super::run::{Request, Streams, run};
use crate::model::causes::chained;
use crate::model::diagnosis::{Diagnose as _, Fault};
use crate::model::id::SandboxName;
use crate::model::observe::{Event, Observer};
use crate::model::resolved::ResolvedSpec;
use inbox::Inbox;

/// The word that makes our executable supervise a sandbox for another process.
pub const SUBCOMMAND: &str = "__supervise";

/// How long the command may take to end when its caller is gone.
const GRACE: Duration = Duration::from_secs(10);

/// A command for a new sandbox.
#[derive(Debug)]
pub struct Job {
    pub resolved: ResolvedSpec,
    /// A random one if there is none.
    pub name: Option<SandboxName>,
    pub command: Vec<OsString>,
    pub streams: JobStreams,
}

/// What the command of a [`Job`] reads and writes.
#[derive(Debug)]
pub enum JobStreams {
    /// Nothing to read; what it writes is kept for `logs`.
    Log,
    /// Nothing to read; what it writes is kept whole, a file for each stream.
    Files,
    /// Nothing to read; what it writes can be taken from the [`Spawned`]. It comes to its end with the command. A command whose
    /// pipe is full waits: read it to its end, or in another thread, before or while waiting for the command.
    Piped,
    /// These, and nothing to read where there is no input.
    Given { input: Option<io::PipeReader>, output: Stdio, errors: Stdio },
}

/// Why a command did not run, or why its end is not known.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("cannot start `{}`", executable.display())]
    Start {
        executable: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the process that supervises the sandbox ended without an answer")]
    Lost(#[source] WireError),
    /// What [`run`] answered there.
    #[error("{}", .0.text)]
    Failed(Failed),
}

impl SpawnError {
    pub fn fault(&self) -> Fault {
        match self {
            Self::Start { .. } | Self::Lost(_) => Fault::Machine,
            Self::Failed(failed) => failed.fault,
        }
    }

    /// A stable word for scripts.
    pub fn code(&self) -> &str {
        match self {
            Self::Start { .. } | Self::Lost(_) => "supervisor",
            Self::Failed(failed) => &failed.code,
        }
    }
}

/// An [`SessionError`] on its way between processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    pub code: String,
    pub fault: Fault,
    /// What failed and why.
    pub text: String,
}

/// From the caller. Sent once.
#[derive(Debug, Serialize, Deserialize)]
struct Start {
    sandboxes: Sandboxes,
    resolved: ResolvedSpec,
    name: Option<SandboxName>,
    command: Vec<OsString>,
    streams: Kind,
}

/// What is left of [`JobStreams`] when the descriptors are in their places.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Kind {
    Log,
    Files,
    Descriptors,
}

/// To the caller: what an [`Observer`] is told, and last how it ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum News {
    Copying { files: u64, bytes: u64 },
    Copied,
    Fetching { image: String, line: String },
    Started { name: SandboxName, id: Option<String> },
    Recording { entries: u64, bytes: u64 },
    Recorded,
    Waiting { others: usize },
    Ended(Box<Outcome>),
    Failed(Failed),
}

/// A command that was started by [`spawn`]. Dropped before its end, it is stopped and waited for.
#[derive(Debug)]
pub struct Spawned {
    child: Child,
    /// Closed to say that nobody waits any more.
    inbox: Inbox,
    started: Option<Started>,
    sandboxes: Sandboxes,
}

/// The sandbox of a command that runs or ran.
#[derive(Debug)]
struct Started {
    name: SandboxName,
    /// Its own, where a name may be used again.
    id: Option<String>,
}

/// Starts `executable`, which is `sandtable`, and has it run a command in a new sandbox.
pub fn spawn(executable: &Path, sandboxes: &Sandboxes, job: Job) -> Result<Spawned, SpawnError> {
    let Job { resolved, name, command, streams } = job;
    let (kind, input, output, errors) = match streams {
        JobStreams::Log => (Kind::Log, None, Stdio::null(), Stdio::null()),
        JobStreams::Files => (Kind::Files, None, Stdio::null(), Stdio::null()),
        JobStreams::Piped => (Kind::Descriptors, None, Stdio::piped(), Stdio::piped()),
        JobStreams::Given { input, output, errors } => (Kind::Descriptors, input, output, errors),
    };
    let start = Start { sandboxes: sandboxes.clone(), resolved, name, command, streams: kind };
    #[expect(
        clippy::disallowed_methods,
        reason = "it is no tool that is asked: it has our environment and its own streams"
    )]
    let mut supervisor = Command::new(executable);
    supervisor.arg(SUBCOMMAND).stdout(output).stderr(errors);
    let failed = |source| SpawnError::Start { executable: executable.to_owned(), source };
    let (mut child, line) = delegate::start(supervisor, input.map(Into::into), &start).map_err(failed)?;
    match Inbox::of(line) {
        Ok(inbox) => Ok(Spawned { child, inbox, started: None, sandboxes: start.sandboxes }),
        Err(error) => {
            // It hears that nobody waits, since the line is closed.
            child.wait().map_err(failed)?;
            Err(failed(error))
        }
    }
}

impl Spawned {
    /// Waits until the command runs, and returns the sandbox's name.
    pub fn started(&mut self, observer: &dyn Observer) -> Result<SandboxName, SpawnError> {
        loop {
            if let Some(started) = &self.started {
                return Ok(started.name.clone());
            }
            if let Some(ended) = self.hear(observer)? {
                // Nothing ends without having started.
                return Ok(ended.name);
            }
        }
    }

    /// Waits for the end of the command and of its sandbox. A stream that is [`JobStreams::Piped`] and was not taken is read by
    /// nobody: a command that writes more than a pipe holds then never ends.
    pub fn wait(mut self, observer: &dyn Observer) -> Result<Outcome, SpawnError> {
        loop {
            if let Some(outcome) = self.hear(observer)? {
                return Ok(outcome);
            }
        }
    }

    /// Ends the command: `SIGTERM` to everything in its sandbox, `SIGKILL` after `grace`. Returns when it has ended;
    /// [`wait`](Self::wait) says how. A command that does not run yet is waited for first. One that has ended is left
    /// alone, and so is whatever took its name.
    pub fn stop(&mut self, grace: Duration) -> Result<(), SpawnError> {
        let name = self.started(&())?;
        let id = self.started.as_ref().and_then(|started| started.id.as_deref());
        match stop_this(&self.sandboxes, &name, grace, id) {
            Ok(()) | Err(SessionError::NotRunning(_) | SessionError::Unknown(_)) => Ok(()),
            Err(error) => Err(SpawnError::Failed(Failed::from(&error))),
        }
    }

    /// What the command writes, if its streams are [`JobStreams::Piped`]. There is something to take once.
    pub fn take_output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    pub fn take_errors(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Hears one piece of news. The last one is the outcome.
    fn hear(&mut self, observer: &dyn Observer) -> Result<Option<Outcome>, SpawnError> {
        match self.inbox.next().map_err(SpawnError::Lost)? {
            News::Copying { files, bytes } => observer.event(&Event::Copying { files, bytes }),
            News::Copied => observer.event(&Event::Copied),
            News::Fetching { image, line } => observer.event(&Event::Pulling { image: &image, line: &line }),
            News::Started { name, id } => {
                observer.event(&Event::Started(&name));
                self.started = Some(Started { name, id });
            }
            News::Recording { entries, bytes } => observer.event(&Event::Recording { entries, bytes }),
            News::Recorded => observer.event(&Event::Recorded),
            News::Waiting { others } => observer.event(&Event::Waiting { others }),
            News::Ended(outcome) => return Ok(Some(*outcome)),
            News::Failed(failed) => return Err(SpawnError::Failed(failed)),
        }
        Ok(None)
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        self.inbox.close();
        // It ends by itself, now that it hears that nobody waits. Streams that were taken can still be read to their end.
        let _status = self.child.wait();
    }
}

impl From<&SessionError> for Failed {
    fn from(error: &SessionError) -> Self {
        Self { code: error.code().to_owned(), fault: error.fault(), text: chained(error) }
    }
}

/// Is the process that [`spawn`] started.
pub fn serve() -> ExitCode {
    let Ok((line, start)) = delegate::accept::<Start>() else { return ExitCode::FAILURE };
    let reporter = Reporter {
        line: Arc::new(line),
        sending: Mutex::new(()),
        sandboxes: start.sandboxes,
        has_started: AtomicBool::new(false),
    };
    let streams = match start.streams {
        Kind::Log => Streams::Log,
        Kind::Files => Streams::Files,
        Kind::Descriptors => Streams::Caller(Terminal::Never),
    };
    let request = Request { command: &start.command, resolve_ms: 0, streams, observer: &reporter };
    let ended = run(&reporter.sandboxes, start.resolved, start.name.as_ref(), request);
    reporter.tell(&match &ended {
        Ok(outcome) => News::Ended(Box::new(outcome.clone())),
        Err(error) => News::Failed(Failed::from(error)),
    });
    if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Passes on what happens.
#[derive(Debug)]
struct Reporter {
    line: Arc<Line>,
    /// Held by one thread at a time, so that messages do not mix.
    sending: Mutex<()>,
    sandboxes: Sandboxes,
    /// Whether the command ran.
    has_started: AtomicBool,
}

impl Reporter {
    fn tell(&self, news: &News) {
        let _one_at_a_time = self.sending.lock();
        // A caller that is gone hears nothing.
        let _heard = self.line.send(news);
    }

    fn started(&self, name: &SandboxName) {
        self.has_started.store(true, Ordering::Relaxed);
        // The command has its streams, and what is carried for it has descriptors of its own. Whoever reads them comes to their
        // end with the command, however long its state is recorded. Where that cannot be, they end with this process.
        let _released = delegate::release_output();
        // Its lock is held here, so that this is its record.
        let id = self.sandboxes.at(name).read_record().ok().map(|record| record.sandbox);
        self.tell(&News::Started { name: name.clone(), id: id.clone() });
        // From here on this process may have threads. This one ends with it. Where it cannot be made, the command goes on
        // although nobody waits.
        let (line, sandboxes, name) = (Arc::clone(&self.line), self.sandboxes.clone(), name.clone());
        let _attentive = std::thread::Builder::new().spawn(move || {
            line.closed();
            // If it has ended meanwhile, there is nothing left to stop.
            let _stopped = stop_this(&sandboxes, &name, GRACE, id.as_deref());
        });
    }
}

impl Observer for Reporter {
    fn event(&self, event: &Event<'_>) {
        self.tell(&match *event {
            Event::Copying { files, bytes } => News::Copying { files, bytes },
            Event::Copied => News::Copied,
            Event::Pulling { image, line } => {
                News::Fetching { image: image.to_owned(), line: line.to_owned() }
            }
            Event::Started(name) => return self.started(name),
            Event::Recording { entries, bytes } => News::Recording { entries, bytes },
            Event::Recorded => News::Recorded,
            Event::Waiting { others } => News::Waiting { others },
            // Events of existing sandboxes and of tools do not occur here.
            Event::Pinned { .. }
            | Event::SourceReplaced
            | Event::ObjectsReplaced
            | Event::NotCompared { .. }
            | Event::Fetching { .. }
            | Event::Fetched { .. }
            | Event::Tool { .. } => return,
        });
    }

    /// After the command has started, its state is recorded even if the caller is gone.
    fn cancelled(&self) -> bool {
        self.line.is_closed() && !self.has_started.load(Ordering::Relaxed)
    }
}
