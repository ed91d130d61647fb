//! Whether a proof was made here, and is as it was made.

use sandtable_store::hex;
use sandtable_store::meta::OperationKind;
use sandtable_store::meta::{Filter, Operation};
use sandtable_store::store::Store;

use super::super::error::SessionError;
use super::{Link, Proof, ProofError};
use crate::board::{self, Board, Found};

/// A proof that was made here, and the snapshot it is of.
#[derive(Debug)]
pub struct Checked {
    pub proof: Proof,
    pub found: Found,
}

/// Reads a proof and holds it against its own digest and against the operations of the store.
pub fn check(board: &Board, text: &[u8]) -> Result<Checked, SessionError> {
    let proof = Proof::read(text)?;
    let found = board.snapshot(&proof.snap_sha.to_string())?;
    let meta = found.store.meta();
    if let Some(fault) = meta.chain_fault().map_err(board::BoardError::from)? {
        let what = format!("operation {}: {}", fault.operation, fault.what);
        return Err(ProofError::Chain { what }.into());
    }
    let operations = meta.operations(&Filter::default()).map_err(board::BoardError::from)?;
    let at = operations.iter().position(|operation| tells_of(operation, &proof.sha256));
    let at = at.ok_or_else(|| ProofError::Unknown(proof.sha256.clone()))?;
    let before = at.checked_sub(1).and_then(|before| operations.get(before));
    if before.map(link).as_ref() != Some(&proof.follows) {
        let what = format!("it does not follow operation {}", proof.follows.number);
        return Err(ProofError::Chain { what }.into());
    }
    Ok(Checked { proof, found })
}

fn tells_of(operation: &Operation, digest: &str) -> bool {
    let details = || serde_json::from_str::<serde_json::Value>(&operation.details).ok();
    operation.kind == OperationKind::Verify && details().is_some_and(|details| details["proof"] == digest)
}

pub(super) fn link(operation: &Operation) -> Link {
    Link { number: operation.number, hash: hex::encode(&operation.hash) }
}

/// The newest operation of a store.
pub(super) fn newest(store: &Store) -> Result<Link, board::BoardError> {
    let newest = store.meta().operations(&Filter { newest: Some(1), ..Filter::default() })?;
    Ok(newest.last().map_or_else(|| Link { number: 0, hash: hex::encode(&[0; 32]) }, link))
}
