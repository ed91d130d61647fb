//! One operation back or forth, whatever it was: a command in a sandbox, a rollback of a directory, or a merge.
//!
//! Merges and applies stand in the log of the directory they went to. They move no recorded state, so they are no part of
//! its stack of states: which of them can be taken back is found by reading the log from its beginning.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use sandtable_merge::{self as merge, Log, Means, Over, Recorded, Turn, Way};
use sandtable_sandbox::board::{self, Board, LeftOut, OperationKind, Subject};
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::session::states::done_at;
use sandtable_store::id::ObjectId;
use sandtable_store::meta::{Direction, Filter, MetaError, Operation};
use sandtable_store::object::{ObjectKind, ReadError, ReadObjects as _};
use sandtable_store::store::Store;
use serde::Deserialize;

/// Why it cannot be told what was done last, or done the other way.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Board(#[from] board::BoardError),
    #[error(transparent)]
    Merge(#[from] merge::Error),
}

/// What is to be taken back, or done again.
#[derive(Debug)]
pub enum Step {
    Merge(Box<Logged>),
    /// The states of the directory itself.
    Directory,
    Sandbox(SandboxName),
}

/// A merge or an apply in the log of its target.
#[derive(Debug)]
pub struct Logged {
    store: Store,
    target: HostPath,
    number: i64,
    pub done: Recorded,
    /// The name of its delivery.
    pub name: Option<String>,
}

/// A merge or an apply that was asked for by its name.
#[derive(Debug)]
pub enum Named {
    Ready(Box<Logged>),
    /// It was undone already, or for a redo: it was not, or something came after it.
    NotNow(HostPath),
    /// Another one came after it, on top of it.
    Below(Box<Logged>),
}

/// Where a merge into a directory is written down.
pub fn log(store: &Store, target: &HostPath) -> Log {
    let subject = Subject::directory(target.as_path()).to_string();
    Log { store: HostPath::new(store.dir()).expect("a store has an absolute path"), subject, over: None }
}

/// The last merge or apply into a directory, whatever else was done since.
pub fn merge_into(board: &Board, directory: &Path, way: Direction) -> Result<Option<Step>, Error> {
    let mut found = Vec::new();
    for store in board.all()?.0 {
        found.extend(merge_in(store, directory, way)?);
    }
    Ok(newest(found))
}

/// A merge or an apply by the name of its delivery, wherever it went and whatever came after it.
pub fn merge_named(board: &Board, name: &str, way: Direction) -> Result<Option<Named>, Error> {
    for store in board.all()?.0 {
        let all = store.meta().operations(&Filter::default()).map_err(board::BoardError::from)?;
        let is_it = |operation: &&Operation| {
            is_delivery(operation) && Recorded::delivery(&operation.details).as_deref() == Some(name)
        };
        let Some(Subject::Directory(directory)) =
            all.iter().find(is_it).and_then(|operation| Subject::parse(&operation.subject))
        else {
            continue;
        };
        let Ok(target) = HostPath::new(&directory) else { continue };
        let Stacks { done, undone } = stacks(&store, &directory)?;
        let mut stack = match way {
            Direction::Undo => done,
            Direction::Redo => undone,
        };
        let Some(at) = stack.iter().position(|entry| entry.name.as_deref() == Some(name)) else {
            return Ok(Some(Named::NotNow(target)));
        };
        let logged = |entry: Entry| Box::new(entry.logged(store, target));
        // Commits of one branch lie on each other; changes of files alone are merged with what is there.
        let branch = stack[at].done.branch().map(str::to_owned);
        let above = stack.iter().rposition(|entry| entry.done.branch() == branch.as_deref());
        return Ok(Some(match above.filter(|above| *above > at && branch.is_some()) {
            Some(above) => Named::Below(logged(stack.remove(above))),
            None => Named::Ready(logged(stack.remove(at))),
        }));
    }
    Ok(None)
}

/// The last operation on a directory.
pub fn of_directory(board: &Board, directory: &Path, way: Direction) -> Result<Option<Step>, Error> {
    let mut found = Vec::new();
    for store in board.all()?.0 {
        found.extend(merge_in(store, directory, way)?);
    }
    if let Some(store) = board.keeping(&Subject::directory(directory))? {
        let at = head_in(&store, &Subject::directory(directory), way)?;
        found.extend(at.map(|(at, _)| (at, Step::Directory)));
    }
    Ok(newest(found))
}

/// The last operation on a source, or on any of its sandboxes, and when it was done or undone.
pub fn of_source(board: &Board, source: &Path, way: Direction) -> Result<Option<(SystemTime, Step)>, Error> {
    let Some(store) = board.of_source(source)? else { return Ok(None) };
    let mut found = Vec::new();
    let itself = head_in(&store, &Subject::directory(source), way)?;
    found.extend(itself.map(|(at, _)| (at, Step::Directory)));
    for (subject, _) in store.meta().heads().map_err(board::BoardError::from)? {
        let Some(subject @ Subject::Sandbox(_)) = Subject::parse(&subject) else { continue };
        let Some((at, _)) = head_in(&store, &subject, way)? else { continue };
        found.extend(name_of(&store, &subject)?.map(|name| (at, Step::Sandbox(name))));
    }
    found.extend(merge_in(store, source, way)?);
    Ok(found.into_iter().max_by_key(|(at, _)| *at))
}

/// The states that a log still needs for the way back or forth of merges and applies, so that a collection keeps them. What was
/// forgotten is let go.
pub(super) fn needed(log: &[Operation]) -> Vec<ObjectId> {
    let mut all: BTreeMap<&str, Stacks> = BTreeMap::new();
    for operation in log {
        let stacks = all.entry(&operation.subject).or_default();
        if operation.kind == OperationKind::Forget {
            *stacks = Stacks::default();
        } else {
            stacks.add(operation);
        }
    }
    let entries = all.values().flat_map(|stacks| stacks.done.iter().chain(&stacks.undone));
    entries.flat_map(|entry| entry.done.needs()).collect()
}

impl Logged {
    /// Where it went.
    pub fn target(&self) -> &Path {
        self.target.as_path()
    }

    /// The sandbox whose work it was, if it was that of one.
    pub fn sandbox(&self) -> Result<Option<SandboxName>, Error> {
        let snapshot = match self.store.meta().snapshot(&self.done.snapshot()) {
            Err(MetaError::Unknown(_)) => return Ok(None),
            found => found.map_err(board::BoardError::from)?,
        };
        match Subject::parse(&snapshot.subject) {
            Some(subject @ Subject::Sandbox(_)) => name_of(&self.store, &subject),
            _ => Ok(None),
        }
    }

    /// What no state holds of the work, as far as that is known: the state may be gone.
    pub fn left_out(&self) -> LeftOut {
        board::left_out_of(&self.store, &self.done.snapshot()).unwrap_or_default()
    }

    /// Does it; that it was done is written down as a part of it.
    pub fn turn(&self, means: &Means, way: Direction) -> Result<Turn, Error> {
        let objects = self.store.objects();
        let is_gone =
            |id: &ObjectId| matches!(objects.read_kind(id, ObjectKind::Commit), Err(ReadError::Missing(_)));
        if let Some(id) = self.done.needs().find(is_gone) {
            return Err(board::BoardError::Collected(id).into());
        }
        let store = HostPath::new(self.store.git_dir()).expect("a store has an absolute path");
        let there = match way {
            Direction::Undo => Way::Back,
            Direction::Redo => Way::There,
        };
        let log = Log {
            over: Some(Over { direction: way, number: self.number }),
            ..log(&self.store, &self.target)
        };
        Ok(self.done.turn(means, (&self.target, &store), (there, log))?)
    }
}

fn newest(found: Vec<(SystemTime, Step)>) -> Option<Step> {
    found.into_iter().max_by_key(|(at, _)| *at).map(|(_, step)| step)
}

fn operations(store: &Store, subject: &Subject) -> Result<Vec<Operation>, Error> {
    let filter = Filter { subject: Some(subject.to_string()), ..Filter::default() };
    Ok(store.meta().operations(&filter).map_err(board::BoardError::from)?)
}

/// The merge that would be moved over, and when it was done or undone.
fn merge_in(store: Store, directory: &Path, way: Direction) -> Result<Option<(SystemTime, Step)>, Error> {
    let Ok(target) = HostPath::new(directory) else { return Ok(None) };
    let Stacks { mut done, mut undone } = stacks(&store, directory)?;
    let last = match way {
        Direction::Undo => done.pop(),
        Direction::Redo => undone.pop(),
    };
    Ok(last.map(|entry| (entry.at, Step::Merge(Box::new(entry.logged(store, target))))))
}

/// A merge or an apply in a log, and when it was last done or undone.
struct Entry {
    at: SystemTime,
    number: i64,
    done: Recorded,
    name: Option<String>,
}

impl Entry {
    fn logged(self, store: Store, target: HostPath) -> Logged {
        let Self { number, done, name, .. } = self;
        Logged { store, target, number, done, name }
    }
}

/// What was done to a directory, and what of it was undone, each in its order.
#[derive(Default)]
struct Stacks {
    done: Vec<Entry>,
    undone: Vec<Entry>,
}

fn is_delivery(operation: &Operation) -> bool {
    matches!(operation.kind, OperationKind::Merge | OperationKind::Apply)
}

impl Stacks {
    /// Goes on by one operation of a log.
    fn add(&mut self, operation: &Operation) {
        let (at, over) = (operation.at(), over(operation));
        match (&operation.kind, over) {
            _ if is_delivery(operation) => {
                self.undone.clear();
                let (number, name) = (operation.number, Recorded::delivery(&operation.details));
                let read = Recorded::parse(&operation.details);
                self.done.extend(read.map(|read| Entry { at, number, done: read, name }));
            }
            (OperationKind::Undo, Some(over)) => pass(over, at, (&mut self.done, &mut self.undone)),
            (OperationKind::Redo, Some(over)) => pass(over, at, (&mut self.undone, &mut self.done)),
            _ => {}
        }
    }
}

fn stacks(store: &Store, directory: &Path) -> Result<Stacks, Error> {
    let mut stacks = Stacks::default();
    for operation in operations(store, &Subject::directory(directory))? {
        stacks.add(&operation);
    }
    Ok(stacks)
}

/// The one that is meant goes from one stack to the other. It need not be the topmost: it may have been named.
fn pass(over: i64, at: SystemTime, (from, to): (&mut Vec<Entry>, &mut Vec<Entry>)) {
    if let Some(place) = from.iter().rposition(|entry| entry.number == over) {
        let entry = from.remove(place);
        to.push(Entry { at, ..entry });
    }
}

/// Of an undo or redo of a merge: which one.
fn over(operation: &Operation) -> Option<i64> {
    #[derive(Deserialize)]
    struct Over {
        over: i64,
    }
    serde_json::from_str(&operation.details).ok().map(|Over { over }| over)
}

/// The operation on a subject's states that would be moved over, and when it was done or undone. That a source was looked
/// at is nothing to take back.
fn head_in(
    store: &Store,
    subject: &Subject,
    way: Direction,
) -> Result<Option<(SystemTime, Operation)>, Error> {
    let who = subject.to_string();
    let planned = match way {
        Direction::Undo => store.meta().undo(&who),
        Direction::Redo => store.meta().redo(&who),
    };
    let planned = match planned {
        Ok(planned) => planned.over,
        Err(MetaError::NoMove { .. }) => return Ok(None),
        Err(error) => return Err(board::BoardError::from(error).into()),
    };
    if planned.kind == OperationKind::Onboard {
        return Ok(None);
    }
    let at = match way {
        Direction::Undo => done_at(&planned),
        Direction::Redo => {
            let undone =
                |operation: &Operation| operation.kind == OperationKind::Undo && operation.target.is_some();
            let last = operations(store, subject)?.into_iter().rev().find(undone);
            last.map_or_else(|| planned.at(), |operation| operation.at())
        }
    };
    Ok(Some((at, planned)))
}

/// The name that a sandbox was made with.
fn name_of(store: &Store, subject: &Subject) -> Result<Option<SandboxName>, Error> {
    #[derive(Deserialize)]
    struct Named {
        name: SandboxName,
    }
    let made =
        operations(store, subject)?.into_iter().find(|operation| operation.kind == OperationKind::Create);
    Ok(made.and_then(|made| serde_json::from_str(&made.details).ok()).map(|Named { name }| name))
}
