//! Heads: the snapshot that each subject is at, and the way back and forth from it.
//!
//! The way is two stacks that live in the operations themselves: each operation that moved a head links to
//! the one below it. An undo pops one and is pushed on the other stack; a redo does the reverse; anything new
//! empties the stack of redos. So undo and redo are operations like all others, and nothing is lost by them.

use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension as _, Transaction};

use super::operations::{Operation, insert, of_row};
use super::{Durability, Meta, MetaError, OperationKind, id_at, nanoseconds};
use crate::id::ObjectId;

/// Where a subject is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub snapshot: ObjectId,
    /// The operation that brought it there.
    pub operation: i64,
    pub(super) undo: Option<i64>,
    pub(super) redo: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Undo,
    Redo,
}

impl Direction {
    /// The kind of the operation.
    pub const fn kind(self) -> OperationKind {
        match self {
            Self::Undo => OperationKind::Undo,
            Self::Redo => OperationKind::Redo,
        }
    }

    /// As in "nothing can be undone".
    pub const fn done(self) -> &'static str {
        match self {
            Self::Undo => "undone",
            Self::Redo => "redone",
        }
    }
}

/// A step back or forth: the caller brings the files from one snapshot to the other, and then records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    pub subject: String,
    pub direction: Direction,
    pub from: ObjectId,
    pub to: ObjectId,
    /// The operation that is taken back, or done again.
    pub over: Operation,
    head: Head,
}

impl Meta {
    pub fn head(&self, subject: &str) -> Result<Option<Head>, MetaError> {
        self.read(|connection| head(connection, subject))
    }

    /// Every subject there is, with its head.
    pub fn heads(&self) -> Result<Vec<(String, Head)>, MetaError> {
        self.read(heads)
    }

    /// Where an undo would bring the subject. Nothing is changed.
    pub fn undo(&self, subject: &str) -> Result<Move, MetaError> {
        self.plan(subject, Direction::Undo)
    }

    /// Where a redo would bring the subject. Nothing is changed.
    pub fn redo(&self, subject: &str) -> Result<Move, MetaError> {
        self.plan(subject, Direction::Redo)
    }

    fn plan(&self, subject: &str, direction: Direction) -> Result<Move, MetaError> {
        let found = self.read(|connection| {
            let Some(head) = head(connection, subject)? else { return Ok(None) };
            let over = match direction {
                Direction::Undo => head.undo,
                Direction::Redo => match head.redo {
                    Some(undo) => operation(connection, undo)?.target,
                    None => None,
                },
            };
            over.map(|over| Ok((head, operation(connection, over)?))).transpose()
        })?;
        let nothing = || MetaError::NoMove { subject: subject.to_owned(), direction };
        let (head, over) = found.ok_or_else(nothing)?;
        let to = match direction {
            Direction::Undo => over.before,
            Direction::Redo => over.after,
        };
        let to = to.ok_or_else(nothing)?;
        Ok(Move { subject: subject.to_owned(), direction, from: head.snapshot, to, over, head })
    }

    /// Writes down that a move was made. Refused if the subject is no longer where it started.
    pub fn record(&self, made: &Move, at: SystemTime, details: &str) -> Result<Operation, MetaError> {
        let done = self.transaction(Durability::Durable, |transaction| {
            if head(transaction, &made.subject)?.as_ref() != Some(&made.head) {
                return Ok(None);
            }
            record(transaction, made, nanoseconds(at), details).map(Some)
        })?;
        done.ok_or_else(|| MetaError::Moved(made.subject.clone()))
    }
}

fn record(transaction: &Transaction<'_>, made: &Move, at: i64, details: &str) -> rusqlite::Result<Operation> {
    let moved = insert(
        transaction,
        Operation {
            number: 0,
            subject: made.subject.clone(),
            kind: made.direction.kind(),
            nanoseconds: at,
            before: Some(made.from),
            after: Some(made.to),
            target: Some(made.over.number),
            link: made.head.redo,
            details: details.to_owned(),
            hash: [0; 32],
        },
    )?;
    let (undo, redo) = match made.direction {
        Direction::Undo => (made.over.link, Some(moved.number)),
        Direction::Redo => {
            let undone = made.head.redo.expect("a redo was planned from it");
            (Some(made.over.number), operation(transaction, undone)?.link)
        }
    };
    set(transaction, &made.subject, &Head { snapshot: made.to, operation: moved.number, undo, redo })?;
    Ok(moved)
}

pub(super) fn head(connection: &Connection, subject: &str) -> rusqlite::Result<Option<Head>> {
    let mut statement = connection.prepare("SELECT * FROM heads WHERE subject = ?1")?;
    statement.query_row([subject], of_head_row).optional()
}

/// Every head, with its subject.
pub(super) fn heads(connection: &Connection) -> rusqlite::Result<Vec<(String, Head)>> {
    let mut statement = connection.prepare("SELECT * FROM heads ORDER BY subject")?;
    let rows = statement.query_map([], |row| Ok((row.get("subject")?, of_head_row(row)?)))?;
    rows.collect()
}

pub(super) fn set(transaction: &Transaction<'_>, subject: &str, head: &Head) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare("INSERT OR REPLACE INTO heads VALUES (?1, ?2, ?3, ?4, ?5)")?;
    statement.execute((subject, head.snapshot.as_bytes(), head.operation, head.undo, head.redo))?;
    Ok(())
}

pub(super) fn remove(transaction: &Transaction<'_>, subject: &str) -> rusqlite::Result<()> {
    transaction.prepare("DELETE FROM heads WHERE subject = ?1")?.execute([subject])?;
    Ok(())
}

fn of_head_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Head> {
    Ok(Head {
        snapshot: id_at(row, "snapshot")?,
        operation: row.get("operation")?,
        undo: row.get("undo")?,
        redo: row.get("redo")?,
    })
}

fn operation(connection: &Connection, number: i64) -> rusqlite::Result<Operation> {
    let mut statement = connection.prepare("SELECT * FROM operations WHERE number = ?1")?;
    statement.query_row([number], of_row)
}
