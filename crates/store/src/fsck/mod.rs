//! Checking a store: every row, every ref, every pack, and whether all that a snapshot needs is there.
//!
//! Nothing is repaired and nothing is changed. Each fault names what it is about.

mod one;

use std::collections::HashMap;
use std::fmt;

pub use one::snapshot;

use crate::id::ObjectId;
use crate::meta::{MetaError, Rows, Snapshot};
use crate::object::commit::SnapshotCommit;
use crate::object::{ObjectKind, ReadObjects as _};
use crate::pack;
use crate::reach::{History, Reached, Wanted};
use crate::store::{Store, StoreError, refs};

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Rows, refs, indexes, commits, trees, and that every file is there.
    Fast,
    /// Every byte of every object as well.
    Deep,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    Database(String),
    Operation { number: i64, what: String },
    Snapshot { id: ObjectId, what: String },
    Head { subject: String, what: String },
    Pack { name: String, what: String },
    Object { id: ObjectId, what: String },
    Ref(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(what) => write!(f, "the database is damaged: {what}"),
            Self::Operation { number, what } => write!(f, "operation {number}: {what}"),
            Self::Snapshot { id, what } => write!(f, "snapshot `{id}`: {what}"),
            Self::Head { subject, what } => write!(f, "head of `{subject}`: {what}"),
            Self::Pack { name, what } => write!(f, "pack `{name}`: {what}"),
            Self::Object { id, what } => write!(f, "object `{id}`: {what}"),
            Self::Ref(name) => {
                write!(f, "ref `{name}` is missing, names something else or belongs to no snapshot")
            }
        }
    }
}

/// What was looked at, and what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub faults: Vec<Fault>,
    pub operations: usize,
    pub snapshots: usize,
    pub packs: usize,
    /// Objects that snapshots need.
    pub objects: usize,
    /// Packs left by someone who did not come to an end; the next collection takes them.
    pub left_over: Vec<String>,
}

/// Checks a store. Nothing is deleted meanwhile; others may write.
pub fn fsck(store: &Store, depth: Depth) -> Result<Report, StoreError> {
    let lock = store.share()?;
    store.objects().refresh()?;
    let mut report = Report::default();
    let compared = check_database(store, &mut report).and_then(|()| check_rows(store, &mut report));
    check_packs(store, depth, &mut report)?;
    match compared {
        Ok(()) => {
            report.faults.extend(refs::lasting_faults(store, lock)?.into_iter().map(Fault::Ref));
        }
        // What cannot be read at all is a fault like any other; there is nothing to compare the rest with.
        Err(error) => report.faults.push(Fault::Database(chain_of(&error))),
    }
    Ok(report)
}

fn check_database(store: &Store, report: &mut Report) -> Result<(), MetaError> {
    let meta = store.meta();
    report.faults.extend(meta.check()?.into_iter().map(Fault::Database));
    if let Some(fault) = meta.chain_fault()? {
        report.faults.push(Fault::Operation { number: fault.operation, what: fault.what.to_owned() });
    }
    Ok(())
}

fn check_rows(store: &Store, report: &mut Report) -> Result<(), MetaError> {
    let Rows { snapshots, operations, heads } = store.meta().rows()?;
    report.snapshots = snapshots.len();
    report.operations = operations.len();
    let mut last = HashMap::new();
    for operation in &operations {
        last.insert(operation.subject.as_str(), (operation.number, operation.after));
    }
    for (subject, head) in heads {
        let expected = last.get(subject.as_str()).and_then(|(_, after)| *after);
        if expected != Some(head.snapshot) {
            let what = "it is not where the last operation left it".to_owned();
            report.faults.push(Fault::Head { subject, what });
        } else if !snapshots.iter().any(|snapshot| snapshot.id == head.snapshot) {
            report.faults.push(Fault::Head { subject, what: "its snapshot is missing".to_owned() });
        }
    }
    let mut reached = Reached::default();
    for snapshot in &snapshots {
        check_snapshot(store, snapshot, report);
        reached.follow(store.objects(), (snapshot.id, Wanted::Commit), History::Follow);
        reached.follow(store.objects(), (snapshot.extra, Wanted::Tree), History::Follow);
    }
    report.objects = reached.objects.len();
    let object = |(id, error)| Fault::Object { id, what: chain_of(&error) };
    report.faults.extend(reached.faults.into_iter().map(object));
    Ok(())
}

/// Whether the row says what the commit says.
fn check_snapshot(store: &Store, snapshot: &Snapshot, report: &mut Report) {
    let fault = |what: String| Fault::Snapshot { id: snapshot.id, what };
    // What cannot be read is named when it is followed.
    let Ok(data) = store.objects().read_kind(&snapshot.id, ObjectKind::Commit) else { return };
    match SnapshotCommit::parse(&data) {
        Err(error) => report.faults.push(fault(error.to_string())),
        Ok(commit) => {
            let found = (commit.tree, commit.extra, commit.state, commit.consistency);
            if found != (snapshot.tree, snapshot.extra, snapshot.state, snapshot.consistency) {
                report.faults.push(fault("its row is not what its commit says".to_owned()));
            }
        }
    }
}

fn check_packs(store: &Store, depth: Depth, report: &mut Report) -> Result<(), StoreError> {
    let rows = match store.meta().packs() {
        Ok(rows) => rows,
        Err(error) => {
            report.faults.push(Fault::Database(chain_of(&error)));
            vec![]
        }
    };
    // Rows first: a pack is there before it has one, and nothing is removed while the lock is held.
    store.objects().refresh()?;
    let mut names = Vec::new();
    for (name, what) in store.objects().unusable()? {
        report.faults.push(Fault::Pack { name: name.clone(), what });
        names.push(name);
    }
    for found in store.objects().packs()? {
        let name = found.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        report.packs += 1;
        match rows.iter().find(|row| row.name == name) {
            None => report.left_over.push(name.clone()),
            Some(row) if row.objects != u64::from(found.index.count()) => {
                let what = "its row says another number of objects".to_owned();
                report.faults.push(Fault::Pack { name: name.clone(), what });
            }
            Some(_) => {}
        }
        if depth == Depth::Fast {
            if let Err(error) = found.index.verify() {
                report.faults.push(Fault::Pack { name: name.clone(), what: error.to_string() });
            }
        } else {
            report.faults.extend(pack::verify(&found)?.into_iter().map(|fault| match fault.object {
                Some(id) => Fault::Object { id, what: fault.what },
                None => Fault::Pack { name: name.clone(), what: fault.what },
            }));
        }
        names.push(name);
    }
    for row in rows.iter().filter(|row| !names.contains(&row.name)) {
        report.faults.push(Fault::Pack { name: row.name.clone(), what: "it is missing".to_owned() });
    }
    Ok(())
}

/// An error with its causes, in one line.
fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
