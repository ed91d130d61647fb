//! The disk budget of a sandbox: what its own directories take on disk together, while a command runs.
//!
//! `rule` decides, this looks. A thread that starts when the command runs reads what is free and counts what the
//! sandbox takes when the rule says so. When the sandbox has to end, it shuts down the connection to PID 1, and the
//! kernel ends everything inside. What is there by then is kept.
//!
//! Files that are pinned are the user's own under a second name and do not count.

mod rule;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::statvfs;
use rustix::net::{Shutdown, shutdown};
use sandtable_launch::outside::attach::add_to_report;
use sandtable_launch::outside::supervisor::leaves_out;
use sandtable_protocol::report::{Control, Observed, Report};
use sandtable_store::usage::{Count, Usage};

use super::directory::SandboxDirectory;
use super::task::First;
use crate::engine::Running;
use crate::model::layout::{LayerPart, STDERR, STDOUT};
use crate::model::limits::{Disk, Limits};
use crate::model::mount::{Content, HostAccess};
use crate::model::resolved::{ResolvedSpec, Warning};
use crate::model::setting::Origin;
use crate::model::size::sized;
use rule::{Amount, Before, Budget, Passed, Reading, Rule, Step};

/// How long one count may take. What was not seen by then is charged as what the file system lost.
const PATIENCE: Duration = Duration::from_mins(1);

/// The budget of one sandbox for the time of one command.
#[derive(Debug)]
pub(super) struct Allowance {
    directory: PathBuf,
    parts: Vec<PathBuf>,
    /// Where somebody named one.
    named: Option<String>,
    terms: Terms,
}

#[derive(Debug)]
enum Terms {
    Watched {
        budget: Budget,
        before: Before,
        start: Reading,
        began: Instant,
    },
    /// Nothing is looked at, for this reason.
    Off {
        why: String,
    },
}

impl Allowance {
    /// What the sandbox in `directory` may take. Looks at what is free, and at nothing else.
    pub(super) fn of(directory: &SandboxDirectory, resolved: &ResolvedSpec, first: First) -> Self {
        let began = Instant::now();
        let before = match first {
            First::Yes => Before::Nothing,
            First::No => Before::Something,
        };
        let path = directory.path().as_path();
        let terms = match (budget(&resolved.limits), read(path, began)) {
            (Err(why), _) => Terms::Off { why },
            (Ok(_), _) if leaves_out(Control::DiskLimit) => Terms::Off { why: "left out".to_owned() },
            (Ok(_), Err(error)) => {
                Terms::Off { why: format!("cannot look at `{}`: {error}", path.display()) }
            }
            (Ok(budget), Ok(start)) => Terms::Watched { budget, before, start, began },
        };
        Self {
            directory: path.to_owned(),
            parts: parts(directory, resolved),
            named: resolved.limits.disk.as_ref().map(|limit| limit.value.to_string()),
            terms,
        }
    }

    /// The same for commands that write into directories of their caller as well.
    pub(super) fn of_one_shot(directory: &SandboxDirectory, resolved: &ResolvedSpec) -> Self {
        let mut allowance = Self::of(directory, resolved, First::No);
        let written = resolved.mounts.iter().filter_map(|mount| match &mount.content {
            Content::Host { source, access: HostAccess::Write, .. } => Some(source.as_path().to_owned()),
            _ => None,
        });
        allowance.parts.extend(written);
        allowance
    }

    /// What the record says of it.
    pub(super) fn observed(&self) -> Observed {
        match &self.terms {
            Terms::Watched { .. } => Observed::Watched {
                how: format!(
                    "{}; what is free is read up to a hundred times a second and what the sandbox takes is counted when \
                     it could have passed that: it is ended then, and may have passed it by what it wrote meanwhile",
                    self.named.as_deref().unwrap_or("half of what is free when a command starts")
                ),
            },
            Terms::Off { why } => Observed::Absent { why: why.clone() },
        }
    }

    /// What holds, this included.
    pub(super) fn added_to(&self, report: &Report) -> Report {
        let mut controls = report.controls.clone();
        controls.insert(Control::DiskLimit, self.observed());
        Report { controls }
    }

    /// Begins to look after `sandbox`, whose command runs by now, so that there may be a thread.
    pub(super) fn watch(self, sandbox: &dyn Running) -> Watch {
        let found = Report { controls: [(Control::DiskLimit, self.observed())].into() };
        let _ended_already = add_to_report(sandbox.connection(), &found);
        let Terms::Watched { budget, before, start, began } = self.terms else {
            return Watch { shared: None };
        };
        let rule = Rule::new(budget, before, start);
        let Ok(connection) = sandbox.connection().try_clone_to_owned() else {
            let _already_closed = shutdown(sandbox.connection(), Shutdown::Both);
            return Watch { shared: Some(Shared::new(None, Some(Reason::unwatched()))) };
        };
        let shared = Shared::new(Some(connection), None);
        let place = Place { directory: self.directory, parts: self.parts, named: self.named, began };
        let watched = Arc::clone(&shared);
        let thread = std::thread::Builder::new().spawn(move || watched.look_after(&place, rule));
        if thread.is_err() {
            shared.end(Reason::unwatched());
        }
        Watch { shared: Some(shared) }
    }
}

/// What the limits mean; why nothing is watched if that is so.
fn budget(limits: &Limits) -> Result<Budget, String> {
    match &limits.disk {
        None => Ok(Budget::Half),
        Some(limit) => match (limit.value, &limit.origin) {
            (Disk::Unlimited, origin) => Err(format!("switched off by {origin}")),
            (Disk::Bytes(bytes), Origin::ProjectFile { .. }) => Ok(Budget::AtMost(bytes)),
            (Disk::Bytes(bytes), _) => Ok(Budget::Bytes(bytes)),
        },
    }
}

/// Everything on disk that a command can fill: layers, private directories, copies, and what it writes to its streams.
fn parts(directory: &SandboxDirectory, resolved: &ResolvedSpec) -> Vec<PathBuf> {
    let mut parts = BTreeSet::new();
    for mount in resolved.mounts.iter() {
        match &mount.content {
            Content::Cow { layer, .. } => {
                parts.extend([LayerPart::Upper, LayerPart::Work].map(|part| directory.layer(layer, part)));
            }
            Content::Private { area } => drop(parts.insert(directory.path().join(area))),
            Content::Copy { layer, .. } => drop(parts.insert(directory.layout().copy(layer))),
            _ => {}
        }
    }
    parts.extend([STDOUT, STDERR].map(|file| directory.path().join(file)));
    parts.into_iter().map(PathBuf::from).collect()
}

/// What is free on the file system of `path`.
fn read(path: &Path, began: Instant) -> Result<Reading, std::io::Error> {
    let found = statvfs(path)?;
    // One that makes inodes as it needs them says that there are none.
    let inodes = |number: u64, otherwise: u64| if found.f_files == 0 { otherwise } else { number };
    Ok(Reading {
        at: began.elapsed(),
        free: Amount {
            bytes: found.f_bavail.saturating_mul(found.f_frsize),
            inodes: inodes(found.f_favail, u64::MAX),
        },
        size: Amount {
            bytes: found.f_blocks.saturating_mul(found.f_frsize),
            inodes: inodes(found.f_files, 0),
        },
    })
}

/// A sandbox that is looked after.
#[derive(Debug)]
pub(super) struct Watch {
    shared: Option<Arc<Shared>>,
}

impl Watch {
    /// Nothing is watched any more. Why the sandbox was ended, if it was. Does not wait for the thread.
    pub(super) fn finish(self) -> Option<Reason> {
        let shared = self.shared?;
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        // The connection must not be held any longer: PID 1 waits for its end.
        drop(state.connection.take());
        shared.wake.notify_all();
        state.passed.take()
    }
}

/// Why a sandbox was ended.
#[derive(Debug)]
pub(super) struct Reason {
    text: String,
}

impl Reason {
    fn unwatched() -> Self {
        let text = "the disk budget could not be watched any more; everything in the sandbox was ended";
        Self { text: text.to_owned() }
    }

    fn of(passed: Passed, place: &Place, largest: Option<&Path>) -> Self {
        let at = largest.unwrap_or(&place.directory).display();
        let named = place.named.as_deref();
        let text = match passed {
            Passed::Budget { used, budget } if used.bytes > budget.bytes => {
                let default = || format!("{} (half of what was free)", sized(budget.bytes));
                format!(
                    "the sandbox takes {} on disk and may take {}, most of it in `{at}`; everything in it was ended; \
                     `--disk` allows more",
                    sized(used.bytes),
                    named.map_or_else(default, str::to_owned),
                )
            }
            Passed::Budget { used, budget } => format!(
                "the sandbox has {} files and directories and may have {}, half of what was free, most of them in `{at}`; \
                 everything in it was ended; `--disk none` allows any number",
                used.inodes, budget.inodes,
            ),
            Passed::Reserve { used, free } => format!(
                "only {} and {} inodes are left on the file system, and the sandbox, which takes {}, most of it in `{at}`, \
                 went on growing; everything in it was ended; make room, or `--disk none` goes on to the last byte",
                sized(free.bytes),
                free.inodes,
                sized(used.bytes),
            ),
        };
        Self { text }
    }

    /// For the record.
    pub(super) fn warning(&self) -> Warning {
        Warning::new("disk-budget", self.text.clone())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Debug)]
struct Place {
    directory: PathBuf,
    parts: Vec<PathBuf>,
    named: Option<String>,
    began: Instant,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug)]
struct State {
    /// To PID 1; gone when nothing is watched any more.
    connection: Option<OwnedFd>,
    passed: Option<Reason>,
}

impl Shared {
    fn new(connection: Option<OwnedFd>, passed: Option<Reason>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { connection, passed }), wake: Condvar::new() })
    }

    fn look_after(&self, place: &Place, mut rule: Rule) {
        loop {
            let Ok(now) = read(&place.directory, place.began) else { return self.end(Reason::unwatched()) };
            match rule.next(&now) {
                Step::Wait(time) if self.wait(time) => return,
                Step::Wait(_) => {}
                Step::Count => {
                    let Some((found, largest)) = self.count(place) else { return };
                    let took = place.began.elapsed().saturating_sub(now.at);
                    if let Some(passed) = rule.counted(now, found, took) {
                        return self.end(Reason::of(passed, place, largest));
                    }
                }
            }
        }
    }

    /// Waits so long. Says whether the watch is over.
    fn wait(&self, time: Duration) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = |state: &mut State| state.connection.is_some();
        let waited = self.wake.wait_timeout_while(state, time, watched);
        waited.map_or(true, |(state, _)| state.connection.is_none())
    }

    fn is_over(&self) -> bool {
        self.state.lock().map_or(true, |state| state.connection.is_none())
    }

    /// What all parts take, and which takes most. Nothing if the watch is over.
    fn count<'a>(&self, place: &'a Place) -> Option<(Usage, Option<&'a Path>)> {
        let end = Instant::now() + PATIENCE;
        let mut all = Usage::NONE;
        let mut largest = (0, None);
        for part in &place.parts {
            let mut over = false;
            let mut count = Count::new(|_| {
                over = self.is_over();
                if over || Instant::now() > end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let _noted = count.add(part);
            let found = count.usage();
            if over {
                return None;
            }
            // In a working directory are the kernel's own files, which it lets nobody but root see, for a moment each.
            let complete = found.complete || part.extension().is_some_and(|ending| ending == "work");
            all = Usage {
                bytes: all.bytes.saturating_add(found.bytes),
                inodes: all.inodes.saturating_add(found.inodes),
                complete: all.complete && complete,
            };
            if found.bytes >= largest.0 {
                largest = (found.bytes, Some(part.as_path()));
            }
        }
        Some((all, largest.1))
    }

    /// Ends everything inside.
    fn end(&self, reason: Reason) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = state.connection.take() {
            state.passed = Some(reason);
            let _already_closed = shutdown(&connection, Shutdown::Both);
        }
    }
}
