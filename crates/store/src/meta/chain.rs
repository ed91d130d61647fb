//! The chain of operations: each row holds a hash over its own fields and the hash of the row before.

use rusqlite::{Connection, OptionalExtension as _, Transaction};
use sha2::{Digest as _, Sha256};

use super::operations::{Operation, of_row};
use super::{Meta, MetaError, set_setting};
use crate::hex;

/// The setting that holds number and hash of the newest operation, so that a cut-off end is seen.
pub(super) const NEWEST: &str = "chain";

/// The first place where the chain does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainFault {
    /// Number of the operation.
    pub operation: i64,
    pub what: &'static str,
}

/// The hash of an operation that follows one of hash `before`.
pub(super) fn hash(operation: &Operation, before: &[u8; 32]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(b"sandtable-operation 1\n");
    hasher.update(before);
    let mut field = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
    };
    let optional = |number: Option<i64>| number.map(i64::to_be_bytes).map(Vec::from).unwrap_or_default();
    field(&operation.number.to_be_bytes());
    field(operation.subject.as_bytes());
    field(operation.kind.as_str().as_bytes());
    field(&operation.nanoseconds.to_be_bytes());
    field(operation.before.as_ref().map(crate::id::ObjectId::as_bytes).unwrap_or_default());
    field(operation.after.as_ref().map(crate::id::ObjectId::as_bytes).unwrap_or_default());
    field(&optional(operation.target));
    field(&optional(operation.link));
    field(operation.details.as_bytes());
    hasher.finalize().into()
}

/// Number and hash of the newest operation; zeros before the first.
pub(super) fn newest(connection: &Connection) -> rusqlite::Result<(i64, [u8; 32])> {
    let query = "SELECT number, hash FROM operations ORDER BY number DESC LIMIT 1";
    let newest = connection.prepare(query)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(newest.optional()?.unwrap_or((0, [0; 32])))
}

pub(super) fn set_newest(
    transaction: &Transaction<'_>,
    number: i64,
    hash: &[u8; 32],
) -> rusqlite::Result<()> {
    set_setting(transaction, NEWEST, Some(&text(number, hash)))
}

fn text(number: i64, hash: &[u8; 32]) -> String {
    format!("{number} {}", hex::encode(hash))
}

impl Meta {
    /// Follows the chain from its start; `None` if every link fits.
    pub fn chain_fault(&self) -> Result<Option<ChainFault>, MetaError> {
        self.read(|connection| {
            let (mut number, mut before) = (0, [0; 32]);
            let mut statement = connection.prepare("SELECT * FROM operations ORDER BY number")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                number += 1;
                let Ok(operation) = of_row(row) else {
                    return Ok(Some(ChainFault { operation: number, what: "it cannot be read" }));
                };
                if operation.number != number {
                    return Ok(Some(ChainFault { operation: number, what: "it is missing" }));
                }
                if hash(&operation, &before) != operation.hash {
                    let what = "it is not what was written, or not what it followed";
                    return Ok(Some(ChainFault { operation: number, what }));
                }
                before = operation.hash;
            }
            let query = "SELECT value FROM settings WHERE key = ?1";
            let newest: Option<String> =
                connection.query_row(query, [NEWEST], |row| row.get(0)).optional()?;
            let expected = (number > 0).then(|| text(number, &before));
            let fault = ChainFault {
                operation: number + 1,
                what: "the end of the chain is not the newest operation",
            };
            Ok((newest != expected).then_some(fault))
        })
    }
}
