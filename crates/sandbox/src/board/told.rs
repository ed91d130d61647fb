//! The operations of all stores as events: what was done, to whom, after what, and where it led.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use sandtable_store::id::ObjectId;
use sandtable_store::meta::{Filter, Operation, OperationKind};
use sandtable_store::store::Store;
use serde::Serialize;
use serde_json::Value;

use super::{Board, BoardError};

/// The version of an event.
const SCHEMA: u32 = 1;

/// One operation, for whoever follows along. Each names the one before it by its hash, which is over everything in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    pub schema: u32,
    /// The hash of the operation.
    pub op_id: String,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    #[serde(rename = "type")]
    pub kind: OperationKind,
    /// The sandbox or directory it was done to.
    pub actor: String,
    /// The hash of the operation before it in the same store; none before the first.
    pub causality: Option<String>,
    /// The state it led to, or was about.
    pub snap_sha: Option<String>,
    pub payload: Payload,
    /// The digest of the proof that it tells of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// What else is known of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Payload {
    pub source: String,
    pub number: i64,
    pub before: Option<ObjectId>,
    /// Of an undo or redo: the number of the operation it moved over.
    pub target: Option<i64>,
    pub details: Value,
}

/// Reads the operations of all stores, and goes on with those that come.
#[derive(Debug)]
pub struct Telling {
    board: Board,
    /// Each store with the newest operation that was told of.
    stores: BTreeMap<PathBuf, (Store, Option<(i64, String)>)>,
}

impl Telling {
    pub fn new(board: Board) -> Self {
        Self { board, stores: BTreeMap::new() }
    }

    /// What was done since the last call; of each store in its order.
    pub fn take(&mut self) -> Result<Vec<Told>, BoardError> {
        for place in self.board.places()? {
            if let Entry::Vacant(free) = self.stores.entry(place) {
                // One that cannot be opened is `store fsck`'s business, and hides no other.
                if let Ok(store) = Store::open(free.key()) {
                    free.insert((store, None));
                }
            }
        }
        let mut told = Vec::new();
        for (store, last) in self.stores.values_mut() {
            let after = last.as_ref().map_or(0, |(number, _)| *number);
            for operation in store.meta().operations(&Filter { after, ..Filter::default() })? {
                let causality = last.take().map(|(_, hash)| hash);
                let one = tell(store, &operation, causality);
                *last = Some((operation.number, one.op_id.clone()));
                told.push(one);
            }
        }
        told.sort_by_key(|one| one.at_ms);
        Ok(told)
    }
}

fn tell(store: &Store, operation: &Operation, causality: Option<String>) -> Told {
    let details: Value = serde_json::from_str(&operation.details).unwrap_or(Value::Null);
    let text = |name: &str| details.get(name).and_then(Value::as_str).map(str::to_owned);
    let since = operation.at().duration_since(UNIX_EPOCH).unwrap_or_default();
    let digest = ObjectId::from_bytes(&operation.hash).expect("a SHA-256 has 32 bytes");
    Told {
        schema: SCHEMA,
        op_id: digest.to_string(),
        at_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        kind: operation.kind.clone(),
        actor: operation.subject.clone(),
        causality,
        snap_sha: text("snapshot").or_else(|| operation.after.map(|id| id.to_string())),
        proof: text("proof"),
        payload: Payload {
            source: store.source().to_string_lossy().into_owned(),
            number: operation.number,
            before: operation.before,
            target: operation.target,
            details,
        },
    }
}
