//! Snapshots: a row for each that is there. Everything in it is in its commit as well, but for whom it was taken.

use std::time::SystemTime;

use rusqlite::{Connection, Row, Transaction, named_params};

use super::{Durability, Meta, MetaError, id_at, moment, nanoseconds, operations, packs, wrong};
use super::{OperationDraft, PackRow};
use crate::id::{HashKind, ObjectId};
use crate::object::commit::{Consistency, State};

/// A snapshot that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub id: ObjectId,
    /// The operation that made it.
    pub operation: i64,
    pub subject: String,
    pub at: SystemTime,
    pub tree: ObjectId,
    pub extra: ObjectId,
    pub state: State,
    pub consistency: Consistency,
    pub message: String,
    /// Some of its objects are in the user's repository alone.
    pub borrowed: bool,
}

/// A snapshot that is about to exist.
pub(crate) struct Made {
    pub(crate) snapshot: Snapshot,
    /// None if it needed no new object.
    pub(crate) pack: Option<PackRow>,
    pub(crate) operation: OperationDraft,
}

impl Meta {
    pub fn snapshot(&self, id: &ObjectId) -> Result<Snapshot, MetaError> {
        let query = "SELECT * FROM snapshots WHERE id = ?1";
        let found: Vec<Snapshot> = self.snapshot_rows(query, [id.as_bytes()])?;
        found.into_iter().next().ok_or_else(|| MetaError::Unknown(id.to_string()))
    }

    /// All that are there, oldest first.
    pub fn snapshots(&self) -> Result<Vec<Snapshot>, MetaError> {
        self.snapshot_rows(ALL, [])
    }

    /// The newest of them, newest first.
    pub fn newest_snapshots(&self, count: u32) -> Result<Vec<Snapshot>, MetaError> {
        self.snapshot_rows("SELECT * FROM snapshots ORDER BY operation DESC LIMIT ?1", [count])
    }

    /// The snapshot whose id starts with `text`, of which four digits are needed at least.
    pub fn resolve_prefix(&self, text: &str) -> Result<ObjectId, MetaError> {
        let unknown = || MetaError::Unknown(text.to_owned());
        let text = text.to_ascii_lowercase();
        let digits = self.hash.bytes() * 2;
        if text.len() < 4 || text.len() > digits || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(unknown());
        }
        let fill = |with: char| -> Result<ObjectId, MetaError> {
            let padded: String = text.chars().chain(std::iter::repeat(with)).take(digits).collect();
            padded.parse().map_err(|_| unknown())
        };
        let (from, to) = (fill('0')?, fill('f')?);
        let query = "SELECT * FROM snapshots WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT 10";
        let found = self.snapshot_rows(query, [from.as_bytes(), to.as_bytes()])?;
        match &found[..] {
            [] => Err(unknown()),
            [one] => Ok(one.id),
            many => {
                let candidates = many.iter().map(|snapshot| snapshot.id).collect();
                Err(MetaError::Ambiguous { text, candidates })
            }
        }
    }

    /// The snapshots that subjects which are there were ever at, as far as they exist.
    pub(crate) fn states_of_living(&self) -> Result<Vec<ObjectId>, MetaError> {
        let query = "SELECT id FROM snapshots WHERE id IN (
                SELECT snapshot FROM heads
                UNION SELECT before FROM operations WHERE subject IN (SELECT subject FROM heads)
                UNION SELECT after FROM operations WHERE subject IN (SELECT subject FROM heads)
            )";
        self.read(|connection| {
            let mut statement = connection.prepare(query)?;
            let rows = statement.query_map([], |row| id_at(row, "id"))?;
            rows.collect()
        })
    }

    /// Writes down a snapshot, its pack and the operation that made it, all at once: from here on it exists.
    pub(crate) fn add_snapshot(&self, made: Made, durability: Durability) -> Result<Snapshot, MetaError> {
        self.transaction(durability, |transaction| {
            if let Some(pack) = &made.pack {
                packs::add(transaction, pack)?;
            }
            let operation = operations::append(transaction, &made.operation)?;
            let snapshot = Snapshot { operation: operation.number, ..made.snapshot };
            insert(transaction, &snapshot)?;
            Ok(snapshot)
        })
    }

    fn snapshot_rows(
        &self,
        query: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<Snapshot>, MetaError> {
        self.read(|connection| select(connection, self.hash, query, parameters))
    }
}

/// All snapshots, oldest first.
pub(super) const ALL: &str = "SELECT * FROM snapshots ORDER BY operation";

pub(super) fn select(
    connection: &Connection,
    hash: HashKind,
    query: &str,
    parameters: impl rusqlite::Params,
) -> rusqlite::Result<Vec<Snapshot>> {
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map(parameters, |row| of_row(row, hash))?;
    rows.collect()
}

/// The same state, taken at the same second from the same parent with the same words, is the same snapshot.
fn insert(transaction: &Transaction<'_>, snapshot: &Snapshot) -> rusqlite::Result<()> {
    transaction
        .prepare(
            "INSERT OR IGNORE INTO snapshots VALUES
            (:id, :operation, :subject, :at, :tree, :extra, :state, :consistency, :message, :borrowed)",
        )?
        .execute(named_params! {
            ":id": snapshot.id.as_bytes(),
            ":operation": snapshot.operation,
            ":subject": snapshot.subject,
            ":at": nanoseconds(snapshot.at),
            ":tree": snapshot.tree.as_bytes(),
            ":extra": snapshot.extra.as_bytes(),
            ":state": snapshot.state.as_bytes(),
            ":consistency": snapshot.consistency.name(),
            ":message": snapshot.message,
            ":borrowed": snapshot.borrowed,
        })?;
    Ok(())
}

fn of_row(row: &Row<'_>, hash: HashKind) -> rusqlite::Result<Snapshot> {
    let state: Vec<u8> = row.get("state")?;
    let consistency: String = row.get("consistency")?;
    let id = id_at(row, "id")?;
    if id.kind() != hash {
        return Err(wrong("id"));
    }
    Ok(Snapshot {
        id,
        operation: row.get("operation")?,
        subject: row.get("subject")?,
        at: moment(row.get("at")?),
        tree: id_at(row, "tree")?,
        extra: id_at(row, "extra")?,
        state: State::from_bytes(state.try_into().map_err(|_| wrong("state"))?),
        consistency: Consistency::from_name(&consistency).ok_or_else(|| wrong("consistency"))?,
        message: row.get("message")?,
        borrowed: row.get("borrowed")?,
    })
}
