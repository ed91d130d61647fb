//! Supervising one command, from the launch of its sandbox to the outcome on disk. The layer's lock is held
//! throughout, and the mounts are gone when it is done.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use sandtable_protocol::invocation::AttachError;
use sandtable_protocol::report::{Control, Observed};
use sandtable_store::lock::FileLock;
use sandtable_store::meta::OperationKind;
use sandtable_store::source::Drift;

use super::capture::{Capture, Watch};
use super::create::place;
use super::directory::SandboxDirectory;
use super::disk::{self, Allowance};
use super::error::SessionError;
use super::events::{Event, EventKind};
use super::readable;
use super::record::{Exit, ExitOrigin, INTERRUPTED, Outcome, Record, SnapshotEntry, Timings};
use super::states::{Beginning, Stillness, keep, mixed};
use super::task::{First, Task, exit, invocation, millis, outcome};
use crate::attention::Interruptible;
use crate::board::{Ignored, Taking, told_left_out};
use crate::engine::enforcement::refusal;
use crate::engine::{Handles, Running, can_start, engine};
use crate::model::causes::chained;
use crate::model::layout::OUTCOME;
use crate::model::observe::Observer;
use crate::model::resolved::{ResolvedSpec, Warning};
use crate::model::spec::Lifetime;

/// Runs `task` in the sandbox of `record`, on its layer.
pub(super) fn supervise(
    directory: &SandboxDirectory,
    lock: &FileLock,
    record: &Record,
    task: &Task<'_>,
) -> Result<Outcome, SessionError> {
    let supervision = Supervision { directory, lock, record, task, started: Cell::new(false) };
    let outcome = supervision.run().and_then(|ran| supervision.finish(ran));
    supervision.note_end(&outcome);
    outcome
}

struct Supervision<'a> {
    directory: &'a SandboxDirectory,
    lock: &'a FileLock,
    record: &'a Record,
    task: &'a Task<'a>,
    /// Whether the command ran.
    started: Cell<bool>,
}

/// What is known of a command when its sandbox is gone.
struct Ran {
    watch: Watch,
    /// The state of the source, being recorded.
    beginning: Option<Beginning>,
    exit: Exit,
    enforcement: BTreeMap<Control, Observed>,
    /// What its launch went without, and that the memory was used up, if it was.
    warnings: Vec<Warning>,
    /// That the disk budget was passed, if it was.
    overfull: Option<Warning>,
    /// How long it took until the command could run, and how long it ran.
    start: Duration,
    run: Duration,
}

impl Supervision<'_> {
    fn resolved(&self) -> &ResolvedSpec {
        &self.record.resolved
    }

    /// Launches the sandbox, runs the command, and takes everything down again.
    fn run(&self) -> Result<Ran, SessionError> {
        let mut watch = Watch::new(self.record);
        let allowance = Allowance::of(self.directory, self.resolved(), self.task.first);
        let sandbox = self.launch(&allowance).inspect_err(|_| self.directory.stop_listening())?;
        let mut enforcement = sandbox.report().controls.clone();
        enforcement.insert(Control::DiskLimit, allowance.observed());
        let start = self.task.began.elapsed();
        let invocation = invocation(self.directory, self.record, self.task);
        let deadline = invocation.deadline;
        let (mut beginning, mut allowance, mut disk) = (None, Some(allowance), None);
        let ending = sandbox.run(invocation, &mut || {
            disk = allowance.take().map(|allowance| allowance.watch(sandbox.as_ref()));
            watch.start();
            beginning = Beginning::start(self.directory, self.record, watch.seen());
            self.started.set(true);
            self.task.started(self.directory, self.record);
        });
        let run = self.task.began.elapsed().saturating_sub(start);
        if ending.is_ok() {
            sandbox.wait_for_others(deadline, &mut |others| self.task.waiting(others));
        }
        let overfull = disk.and_then(disk::Watch::finish).map(|reason| reason.warning());
        let starved = starved(sandbox.as_ref(), self.resolved());
        let warnings: Vec<Warning> = sandbox.warnings().iter().cloned().chain(starved.clone()).collect();
        self.take_down(sandbox);
        let exit = match (ending, &starved) {
            // Whatever the command made of it.
            _ if overfull.is_some() => Exit { code: 123, signal: None, origin: ExitOrigin::Sandbox },
            // PID 1 was among what the kernel killed.
            (Err(AttachError::Lost(_)), Some(_)) => {
                Exit { code: 137, signal: Some(9), origin: ExitOrigin::Sandbox }
            }
            (ending, _) => exit(ending?, self.task)?,
        };
        Ok(Ran { watch, beginning, exit, enforcement, warnings, overfull, start, run })
    }

    /// Starts PID 1 and refuses to go on if a required control does not hold.
    fn launch(&self, allowance: &Allowance) -> Result<Box<dyn Running>, SessionError> {
        can_start()?;
        if self.task.request.observer.cancelled() {
            return Err(SessionError::Interrupted);
        }
        let plan = engine(self.resolved().engine).plan(self.resolved(), &place(self.directory, self.record));
        if self.resolved().lifetime.value == Lifetime::Keep {
            self.directory.mark_unrecorded()?;
        }
        let control = self.directory.listen()?;
        let handles = Handles { control: control.as_fd(), lock: self.lock.as_fd() };
        let sandbox = plan.launch(&handles)?;
        match refusal(self.resolved(), &allowance.added_to(sandbox.report())) {
            Some(refusal) => Err(refusal.into()),
            None => Ok(sandbox),
        }
    }

    /// Ends the sandbox and waits until its mounts are gone.
    fn take_down(&self, mut sandbox: Box<dyn Running>) {
        sandbox.end();
        if self.resolved().lifetime.value == Lifetime::Discard && !self.directory.has_left() {
            // While the kernel takes the sandbox down. What its last processes still write is removed after, with the
            // directory and its lock: a name that is free already could be somebody else's by then. With
            // control groups or a container the directory holds the journal of what is outside it, which must
            // outlive that.
            let _once_more = self.directory.empty();
        }
        drop(sandbox);
        // Those that were not made by the launch, but for a freeze.
        self.directory.reap_groups();
        self.directory.stop_listening();
    }

    /// Finds what the command changed and writes the outcome, unless nothing is to be kept.
    fn finish(&self, ran: Ran) -> Result<Outcome, SessionError> {
        let Ran { watch, beginning, exit, enforcement, warnings: noticed, overfull, start, run } = ran;
        let keep = self.resolved().lifetime.value == Lifetime::Keep;
        let captured = Instant::now();
        watch.ended();
        // The command has ended, so that signals are for us again.
        let observer = &Interruptible::new(self.task.request.observer);
        // What the source is looked over for is then seen by one walk.
        let begun = beginning.map(|beginning| beginning.finish(self.record, observer));
        let Capture { changes, drift, moved, warnings } =
            if keep { watch.capture(self.directory, self.record)? } else { Capture::default() };
        let (snapshot, unrecorded) = match &overfull {
            _ if !keep => (None, Vec::new()),
            Some(_) => (None, vec![postponed()]),
            None => self.keep_state(begun, &moved, observer),
        };
        let mut outcome = Outcome {
            changes,
            drift,
            snapshot,
            enforcement,
            warnings: joined(
                &self.resolved().warnings,
                warnings.into_iter().chain(noticed).chain(overfull).chain(unrecorded).collect(),
            ),
            timings_ms: Timings {
                resolve: self.task.request.resolve_ms,
                start: millis(start),
                run: millis(run),
                capture: millis(captured.elapsed()),
            },
            ..outcome(self.record, self.task.request.command, exit)
        };
        if keep && let Err(error) = self.directory.write(OUTCOME, &outcome) {
            // Nobody shall take what an earlier command did for what this one did.
            self.directory.drop_outcome();
            let text =
                format!("the outcome was not written, the sandbox keeps its changes: {}", chained(&error));
            outcome.warnings.push(Warning::new("not-recorded", text));
        }
        Ok(outcome)
    }

    /// Records the state that the command left. A state that cannot be recorded is no reason to fail: the layer has
    /// the changes all the same, and the warning says what is missing.
    fn keep_state(
        &self,
        begun: Option<Result<(), SessionError>>,
        moved: &[Drift],
        observer: &dyn Observer,
    ) -> (Option<SnapshotEntry>, Vec<Warning>) {
        if let Some(Err(error)) = begun {
            return (None, vec![unrecorded(&error)]);
        }
        match self.directory.read_base() {
            Ok(Some(_)) => {}
            Ok(None) => return (None, Vec::new()),
            Err(error) => return (None, vec![unrecorded(&error)]),
        }
        let details = serde_json::json!({ "command": readable(self.task.request.command) }).to_string();
        let operation = match self.task.first {
            First::Yes => OperationKind::Run,
            First::No => OperationKind::Exec,
        };
        let taking = Taking { details: &details, ..Taking::of(Ignored::Changed, &operation, observer) };
        match keep(self.directory, self.record, &taking, Stillness::Stopped) {
            Ok(kept) => {
                let left = told_left_out(kept.outcome.counts.skipped, &kept.outcome.skipped);
                let left = left.map(|text| Warning::new("left-out", text));
                let mixed = mixed(self.directory, self.record, (&kept, moved));
                (Some(SnapshotEntry::new(&kept)), left.into_iter().chain(mixed).collect())
            }
            Err(error) => (None, vec![unrecorded(&error)]),
        }
    }

    /// Notes the end of a command that ran among the events.
    fn note_end(&self, outcome: &Result<Outcome, SessionError>) {
        if !self.started.get() {
            return;
        }
        let command = Some(readable(self.task.request.command));
        self.directory.note(&[match outcome {
            Ok(outcome) => {
                Event { command, exit: Some(outcome.exit), ..Event::new(EventKind::Ended, self.record) }
            }
            Err(error) => Event {
                command,
                error: Some(error.to_string()),
                ..Event::new(EventKind::Failed, self.record)
            },
        }]);
    }
}

fn unrecorded(error: &SessionError) -> Warning {
    if let SessionError::Interrupted = error {
        let text = "the recording of the state was interrupted; the sandbox keeps its changes, and the next command that asks \
                    for its state, such as `sandtable diff`, records it";
        return Warning::new(INTERRUPTED, text.to_owned());
    }
    let text = format!("the state was not recorded, the sandbox keeps its changes: {}", chained(error));
    Warning::new("not-recorded", text)
}

/// A state is a copy of the work, and there may be no room for that any more: the work stays marked as unrecorded.
fn postponed() -> Warning {
    let text = "the state was not recorded, since that takes room too; the sandbox keeps its changes, and the next command \
                that asks for its state, such as `sandtable diff`, records it";
    Warning::new("not-recorded", text.to_owned())
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

/// What was known before the command and what was found after it, which is more exact where both speak.
fn joined(before: &[Warning], after: Vec<Warning>) -> Vec<Warning> {
    let superseded = |warning: &&Warning| after.iter().any(|later| later.code == warning.code);
    let kept: Vec<Warning> = before.iter().filter(|warning| !superseded(warning)).cloned().collect();
    kept.into_iter().chain(after).collect()
}
