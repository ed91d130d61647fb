//! Why something is no proof, or proves nothing.

use sandtable_store::id::ObjectId;

use crate::model::diagnosis::{Diagnose, Fault};

/// What is wrong with a proof, or with what was asked of one.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    #[error("this is not a proof")]
    Malformed(#[source] serde_json::Error),
    #[error("the proof has schema {found}, this version knows {known}")]
    Schema { found: u32, known: u32 },
    #[error(
        "the proof was changed after it was made: it says that its digest is `{stated}`, and it is `{found}`"
    )]
    Tampered { stated: String, found: String },
    #[error("no operation of the store tells of the proof `{0}`")]
    Unknown(String),
    #[error("the proof does not fit the operations of the store: {what}")]
    Chain { what: String },
    #[error("the proof is of snapshot `{proven}`, not of `{asked}`")]
    OtherSnapshot { proven: ObjectId, asked: ObjectId },
    #[error("a command that is not text cannot be written into a proof")]
    NotText,
    #[error("the state that the command left could not be recorded")]
    NoState,
}

impl ProofError {
    /// Whether the proof itself is false, rather than the question or the machine.
    pub fn is_false(&self) -> bool {
        matches!(self, Self::Tampered { .. } | Self::Unknown(_) | Self::Chain { .. })
    }
}

impl Diagnose for ProofError {
    fn fault(&self) -> Fault {
        if matches!(self, Self::NoState) { Fault::Machine } else { Fault::Input }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) | Self::Schema { .. } => "not-a-proof",
            Self::Tampered { .. } => "proof-tampered",
            Self::Unknown(_) => "proof-unknown",
            Self::Chain { .. } => "proof-chain",
            Self::OtherSnapshot { .. } => "proof-of-another",
            Self::NotText => "not-text",
            Self::NoState => "no-state",
        }
    }
}
