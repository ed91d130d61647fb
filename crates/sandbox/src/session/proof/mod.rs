//! Proofs: what a command did on a recorded state, written so that it can be checked later.
//!
//! A proof names the exact state, what the command was allowed, what really held, and what came of it: exit, digests of
//! what it wrote, the state it left. It carries the SHA-256 of its own canonical form, and names the operation of the
//! store that was the newest when it was made; the operation that follows has that SHA-256. So a proof that was
//! changed, or was never made here, is known as such. It does not say who made it: there is no signature.
//!
//! The canonical form is JSON without white space, the members of each object sorted by name, numbers whole.

mod check;
mod compare;
mod difference;
mod error;
mod make;
mod policy;

use std::collections::BTreeMap;

use sandtable_protocol::report::{Control, Observed};
use sandtable_store::hex;
use sandtable_store::id::ObjectId;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

pub use check::{Checked, check};
pub use compare::{Field, Weight, compare};
pub use difference::{Difference, Touched};
pub use error::ProofError;
pub use make::{Trial, verify};
pub use policy::{Machine, Policy};

use super::record::Exit;
use crate::model::versioned::{self, Unreadable};

/// The version of a proof.
pub const SCHEMA: u32 = 1;

/// What a command did on a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    pub schema: u32,
    /// The snapshot it ran on, the id of its files, and of files and what git cannot say.
    pub snap_sha: ObjectId,
    pub tree: ObjectId,
    pub state: String,
    /// The snapshot that one was made from, and what differs.
    pub before: Option<ObjectId>,
    pub diff: Option<Difference>,
    pub command: Vec<String>,
    /// What it was allowed and shown.
    pub policy: Policy,
    /// What really held, read back from the kernel.
    pub enforcement: BTreeMap<Control, Observed>,
    pub machine: Machine,
    pub exit: Exit,
    pub stdout_sha256: String,
    pub stderr_sha256: String,
    /// The state it left.
    pub after: After,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// The newest operation of the store before the one that tells of this proof.
    pub follows: Link,
    /// Over everything else.
    pub sha256: String,
}

/// A state that a command left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    pub tree: ObjectId,
    pub state: String,
}

/// A place in the chain of operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub number: i64,
    pub hash: String,
}

impl Proof {
    /// Reads a proof and checks that it is as it was made. Whether it was made here is [`check`]'s question.
    pub fn read(text: &[u8]) -> Result<Self, ProofError> {
        let proof: Self = versioned::read(text, SCHEMA..=SCHEMA).map_err(|unreadable| match unreadable {
            Unreadable::Malformed(source) => ProofError::Malformed(source),
            Unreadable::Schema(found) => ProofError::Schema { found, known: SCHEMA },
        })?;
        let found = proof.digest();
        if found != proof.sha256 {
            return Err(ProofError::Tampered { stated: proof.sha256, found });
        }
        Ok(proof)
    }

    /// The canonical form.
    pub fn canonical(&self) -> String {
        canonical(&self.value())
    }

    fn value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("a proof is plain data")
    }

    /// The digest of everything but the digest.
    fn digest(&self) -> String {
        let mut value = self.value();
        value.as_object_mut().expect("a proof is an object").remove("sha256");
        sha256(canonical(&value).as_bytes())
    }

    /// With the digest it must have.
    fn sealed(self) -> Self {
        Self { sha256: self.digest(), ..self }
    }
}

/// JSON in its one canonical form.
fn canonical(value: &serde_json::Value) -> String {
    use serde_json::Value::{Array, Object};
    let text = |value: &serde_json::Value| serde_json::to_string(value).expect("plain data");
    match value {
        Object(members) => {
            let sorted: BTreeMap<&String, &serde_json::Value> = members.iter().collect();
            let members = sorted.into_iter();
            let members: Vec<String> = members
                .map(|(key, value)| format!("{}:{}", text(&key.as_str().into()), canonical(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        plain => text(plain),
    }
}

/// The SHA-256 of some bytes, in hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    hex::encode(&sha2::Sha256::digest(bytes))
}

#[cfg(test)]
mod tests;
