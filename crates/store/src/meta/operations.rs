//! Operations: what was done to whom, one after the other.

use std::time::SystemTime;

use rusqlite::{Connection, Row, Transaction, named_params};

use super::{
    Durability, Meta, MetaError, OperationKind, chain, heads, moment, nanoseconds, optional_id_at, wrong,
};
use crate::id::ObjectId;

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its place in the order, from 1.
    pub number: i64,
    /// The sandbox or directory it was done to.
    pub subject: String,
    pub kind: OperationKind,
    pub(super) nanoseconds: i64,
    /// The snapshot that the subject was at, before and after.
    pub before: Option<ObjectId>,
    pub after: Option<ObjectId>,
    /// Of an undo or redo: the operation that it moved over.
    pub target: Option<i64>,
    pub(super) link: Option<i64>,
    /// In the caller's words; usually JSON.
    pub details: String,
    pub hash: [u8; 32],
}

impl Operation {
    pub fn at(&self) -> SystemTime {
        moment(self.nanoseconds)
    }

    /// Whether it recorded what a directory was, and did nothing to it.
    pub fn only_recorded(&self) -> bool {
        matches!(self.kind, OperationKind::Snapshot | OperationKind::Onboard)
    }
}

/// What an operation does to the head of its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadChange {
    Keep,
    /// The subject is now at this snapshot; an undo will go back.
    Set(ObjectId),
    /// The subject is now at this snapshot, and there is no way back or forth from it.
    Restart(ObjectId),
    /// The subject is no more: what only it held can be collected.
    Remove,
}

/// Something that was done, to be written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationDraft {
    pub subject: String,
    pub kind: OperationKind,
    pub at: SystemTime,
    pub head: HeadChange,
    pub details: String,
}

/// Which operations are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub subject: Option<String>,
    /// Only those after this number.
    pub after: i64,
    /// Only so many, the newest; they come oldest first all the same.
    pub newest: Option<u32>,
}

impl Meta {
    /// The operations that fit, oldest first.
    pub fn operations(&self, filter: &Filter) -> Result<Vec<Operation>, MetaError> {
        self.read(|connection| select(connection, filter))
    }

    /// Writes down what was done, and moves the head with it.
    pub fn append(&self, draft: &OperationDraft) -> Result<Operation, MetaError> {
        self.append_as(draft, Durability::Durable)
    }

    /// The same, for something whose loss in a power cut would be no harm.
    pub fn append_as(&self, draft: &OperationDraft, durability: Durability) -> Result<Operation, MetaError> {
        self.transaction(durability, |transaction| append(transaction, draft))
    }
}

impl Meta {
    /// The same, but only if the newest operation still is the one of this number; else nothing is done.
    pub fn append_after(&self, number: i64, draft: &OperationDraft) -> Result<Option<Operation>, MetaError> {
        self.transaction(Durability::Durable, |transaction| {
            if chain::newest(transaction)?.0 != number {
                return Ok(None);
            }
            append(transaction, draft).map(Some)
        })
    }
}

/// The operations that fit, oldest first.
pub(super) fn select(connection: &Connection, filter: &Filter) -> rusqlite::Result<Vec<Operation>> {
    let query = "SELECT * FROM (
            SELECT * FROM operations
            WHERE (?1 IS NULL OR subject = ?1) AND number > ?2 ORDER BY number DESC LIMIT ?3
        ) ORDER BY number";
    let limit = filter.newest.map_or(-1, i64::from);
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map((&filter.subject, filter.after, limit), of_row)?;
    rows.collect()
}

/// Appends an operation and changes the head of its subject.
pub(super) fn append(transaction: &Transaction<'_>, draft: &OperationDraft) -> rusqlite::Result<Operation> {
    let head = heads::head(transaction, &draft.subject)?;
    let before = head.as_ref().map(|head| head.snapshot);
    let after = match draft.head {
        HeadChange::Keep => before,
        HeadChange::Set(snapshot) | HeadChange::Restart(snapshot) => Some(snapshot),
        HeadChange::Remove => None,
    };
    let operation = Operation {
        number: 0,
        subject: draft.subject.clone(),
        kind: draft.kind.clone(),
        nanoseconds: nanoseconds(draft.at),
        before,
        after,
        target: None,
        link: head.as_ref().and_then(|head| head.undo),
        details: draft.details.clone(),
        hash: [0; 32],
    };
    let operation = insert(transaction, operation)?;
    match draft.head {
        HeadChange::Keep => {}
        HeadChange::Remove => heads::remove(transaction, &draft.subject)?,
        HeadChange::Restart(snapshot) => {
            let head = heads::Head { snapshot, operation: operation.number, undo: None, redo: None };
            heads::set(transaction, &draft.subject, &head)?;
        }
        HeadChange::Set(snapshot) => {
            // The first state of a subject, and one it is at already, are nothing to go back from.
            let moved = before.is_some() && before != after;
            let (undo, redo) = match head {
                _ if moved => (Some(operation.number), None),
                Some(head) => (head.undo, head.redo),
                None => (None, None),
            };
            heads::set(
                transaction,
                &draft.subject,
                &heads::Head { snapshot, operation: operation.number, undo, redo },
            )?;
        }
    }
    Ok(operation)
}

/// Gives the operation its number and hash and puts it at the end of the chain.
pub(super) fn insert(transaction: &Transaction<'_>, mut operation: Operation) -> rusqlite::Result<Operation> {
    let (number, before) = chain::newest(transaction)?;
    operation.number = number + 1;
    operation.hash = chain::hash(&operation, &before);
    transaction
        .prepare(
            "INSERT INTO operations VALUES
            (:number, :subject, :kind, :at, :before, :after, :target, :link, :details, :hash)",
        )?
        .execute(named_params! {
            ":number": operation.number,
            ":subject": operation.subject,
            ":kind": operation.kind,
            ":at": operation.nanoseconds,
            ":before": operation.before.as_ref().map(ObjectId::as_bytes),
            ":after": operation.after.as_ref().map(ObjectId::as_bytes),
            ":target": operation.target,
            ":link": operation.link,
            ":details": operation.details,
            ":hash": operation.hash,
        })?;
    chain::set_newest(transaction, operation.number, &operation.hash)?;
    Ok(operation)
}

pub(super) fn of_row(row: &Row<'_>) -> rusqlite::Result<Operation> {
    let hash: Vec<u8> = row.get("hash")?;
    Ok(Operation {
        number: row.get("number")?,
        subject: row.get("subject")?,
        kind: row.get("kind")?,
        nanoseconds: row.get("at")?,
        before: optional_id_at(row, "before")?,
        after: optional_id_at(row, "after")?,
        target: row.get("target")?,
        link: row.get("link")?,
        details: row.get("details")?,
        hash: hash.try_into().map_err(|_| wrong("hash"))?,
    })
}
