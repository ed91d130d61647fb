//! Running a command on a recorded state, and writing down what came of it.

use std::ffi::OsString;
use std::io::Read as _;
use std::time::{Instant, SystemTime};

use fs_err as fs;
use sandtable_protocol::log::Stream;
use sandtable_store::hex;
use sandtable_store::lock::FileLock;
use sandtable_store::meta::OperationKind;
use sandtable_store::meta::{HeadChange, OperationDraft};
use sha2::Digest as _;

use super::super::create::{Created, Wanted, create};
use super::super::directory::{SandboxDirectory, Sandboxes};
use super::super::error::SessionError;
use super::super::record::{Outcome, Record};
use super::super::run::{Request, Streams};
use super::super::supervise::supervise;
use super::super::task::{First, Task, millis};
use super::check::newest;
use super::difference::Difference;
use super::{After, Machine, Policy, Proof, ProofError, SCHEMA};
use crate::board::{self, Board, Found};
use crate::model::id::SandboxName;
use crate::model::layout::{STDERR, STDOUT};
use crate::model::resolved::ResolvedSpec;
use crate::model::setting::Setting;
use crate::model::spec::{Base, Lifetime, WorkspaceMode};

/// A command for a state, and who hears what it writes.
#[derive(Clone, Copy)]
pub struct Trial<'a> {
    pub request: Request<'a>,
    /// The digest of the proof that is being checked, if one is.
    pub against: Option<&'a str>,
    pub show: &'a dyn Fn(Stream, &[u8]),
}

impl std::fmt::Debug for Trial<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trial").field("request", &self.request).finish_non_exhaustive()
    }
}

/// Runs a command on exactly the state of a snapshot, in a sandbox that is gone afterwards, and proves what it did.
/// The source is not looked at: what `resolved` says of it must not depend on what it is now.
pub fn verify(
    sandboxes: &Sandboxes,
    resolved: ResolvedSpec,
    from: &Found,
    trial: &Trial<'_>,
) -> Result<Proof, SessionError> {
    let command = words(trial.request.command)?;
    if resolved.mode.value != WorkspaceMode::Overlay {
        return Err(SessionError::NoOverlay { reason: resolved.mode.reason });
    }
    let resolved = ResolvedSpec {
        base: Setting::default_value(Base::Store),
        lifetime: Setting::default_value(Lifetime::Keep),
        ..resolved
    };
    let request = Request { streams: Streams::Files, ..trial.request };
    let sandbox = Gone(made(sandboxes, resolved, from, request)?);
    let Created { directory, lock, record } = &sandbox.0;
    let outcome = run(directory, lock, record, request)?;
    let (stdout_sha256, stderr_sha256) =
        (digest(directory, STDOUT, trial, Stream::Out)?, digest(directory, STDERR, trial, Stream::Err)?);
    let after = after(from, &outcome)?;
    let board = directory.board();
    let (before, diff) = before(&board, from)?;
    let proof = Proof {
        schema: SCHEMA,
        snap_sha: from.snapshot.id,
        tree: from.snapshot.tree,
        state: from.state()?.hash(),
        before: before.map(|before| before.snapshot.id),
        diff,
        command,
        policy: Policy::of(record),
        enforcement: outcome.enforcement,
        machine: Machine::here(),
        exit: outcome.exit,
        stdout_sha256,
        stderr_sha256,
        after,
        at_ms: millis(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()),
        follows: super::Link { number: 0, hash: String::new() },
        sha256: String::new(),
    };
    drop(sandbox);
    note(from, &proof, trial.against)
}

/// A sandbox that goes when this does, whatever happens. Its lock is held until it is gone.
struct Gone(Created);

impl Drop for Gone {
    fn drop(&mut self) {
        // What cannot be removed is a stopped sandbox like any other.
        let _left = self.0.directory.delete_noted();
    }
}

/// A sandbox on the state, under a name that is the same the next time: a command may well write it down.
fn made(
    sandboxes: &Sandboxes,
    resolved: ResolvedSpec,
    from: &Found,
    request: Request<'_>,
) -> Result<Created, SessionError> {
    let name: SandboxName =
        format!("proof-{}", from.snapshot.id.short(8)).parse().expect("letters, digits and a dash");
    let wanted = |name| Wanted { name, base: Some(from.snapshot.id) };
    match create(sandboxes, resolved.clone(), wanted(Some(&name)), request) {
        // Somebody else is at it.
        Err(SessionError::NameTaken(_)) => create(sandboxes, resolved, wanted(None), request),
        made => made,
    }
}

fn run(
    directory: &SandboxDirectory,
    lock: &FileLock,
    record: &Record,
    request: Request<'_>,
) -> Result<Outcome, SessionError> {
    let start = record.resolved.directory.clone();
    let task = Task { directory: start, began: Instant::now(), first: First::Yes, request };
    supervise(directory, lock, record, &task)
}

/// The command, which must be the same when it is read again.
fn words(command: &[OsString]) -> Result<Vec<String>, SessionError> {
    let words = command.iter().map(|word| word.to_str().map(str::to_owned));
    Ok(words.collect::<Option<_>>().ok_or(ProofError::NotText)?)
}

/// The state that the command left.
fn after(from: &Found, outcome: &Outcome) -> Result<After, SessionError> {
    let left = outcome.snapshot.as_ref().ok_or(ProofError::NoState)?;
    let state = from.store.state(&left.id).map_err(board::BoardError::from)?;
    Ok(After { tree: left.tree, state: state.hash() })
}

/// The snapshot before, and what differs; a first one has none.
fn before(board: &Board, from: &Found) -> Result<(Option<Found>, Option<Difference>), SessionError> {
    match board.before(from) {
        Ok(before) => {
            let diff = Difference::between(&before, from)?;
            Ok((Some(before), Some(diff)))
        }
        // It was collected, or there was none.
        Err(board::BoardError::NoBase(_) | board::BoardError::Unknown(_)) => Ok((None, None)),
        Err(error) => Err(error.into()),
    }
}

/// The digest of what the command wrote to a stream, which the caller hears as well.
fn digest(
    directory: &SandboxDirectory,
    name: &str,
    trial: &Trial<'_>,
    stream: Stream,
) -> Result<String, SessionError> {
    let path = directory.path().join(name);
    let failed = |error| SessionError::state("read", path.as_path())(error);
    let mut file = fs::File::open(path.as_path()).map_err(failed)?;
    let (mut hasher, mut room) = (sha2::Sha256::new(), vec![0; 64 << 10]);
    loop {
        let length =
            file.read(&mut room).map_err(|error| SessionError::state("read", path.as_path())(error))?;
        if length == 0 {
            return Ok(hex::encode(&hasher.finalize()));
        }
        hasher.update(&room[..length]);
        (trial.show)(stream, &room[..length]);
    }
}

/// Ties the proof to the operations of the store. Somebody else may be faster: then it follows theirs.
fn note(from: &Found, proof: &Proof, against: Option<&str>) -> Result<Proof, SessionError> {
    loop {
        let follows = newest(&from.store)?;
        let proof = Proof { follows, ..proof.clone() }.sealed();
        let mut details = serde_json::json!({
            "proof": proof.sha256, "snapshot": proof.snap_sha, "exit": proof.exit.code,
        });
        if let Some(against) = against {
            details["against"] = against.into();
        }
        let draft = OperationDraft {
            subject: from.snapshot.subject.clone(),
            kind: OperationKind::Verify,
            at: SystemTime::now(),
            head: HeadChange::Keep,
            details: details.to_string(),
        };
        let meta = from.store.meta();
        if meta.append_after(proof.follows.number, &draft).map_err(board::BoardError::from)?.is_some() {
            return Ok(proof);
        }
    }
}
