//! Kinds of operations.

use std::fmt;

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

/// The kind of an operation. The log contains it as text, which is part of the hash of the operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum OperationKind {
    /// The state of a source was recorded.
    Onboard,
    /// The state of a directory or sandbox was recorded on request.
    Snapshot,
    /// A sandbox got its base.
    Create,
    /// A command ran in a new sandbox.
    Run,
    /// A command ran in an existing sandbox.
    Exec,
    /// A state was written to a new or managed directory.
    Checkout,
    /// A directory or sandbox was brought back to a state.
    Rollback,
    /// A sandbox was made from a state.
    Fork,
    Undo,
    Redo,
    Merge,
    Apply,
    /// The result of a proof.
    Verify,
    /// A sandbox was removed.
    Remove,
    /// The states of a subject are no longer kept.
    Forget,
    /// States were lost with their objects.
    Lost,
    /// A kind of another version.
    Other(Foreign),
}

/// The text of a kind that this version does not know. Only [`OperationKind`] creates it, so that no text belongs to two kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Foreign(String);

impl OperationKind {
    const KNOWN: [(Self, &'static str); 16] = [
        (Self::Onboard, "onboard"),
        (Self::Snapshot, "snapshot"),
        (Self::Create, "create"),
        (Self::Run, "run"),
        (Self::Exec, "exec"),
        (Self::Checkout, "checkout"),
        (Self::Rollback, "rollback"),
        (Self::Fork, "fork"),
        (Self::Undo, "undo"),
        (Self::Redo, "redo"),
        (Self::Merge, "merge"),
        (Self::Apply, "apply"),
        (Self::Verify, "verify"),
        (Self::Remove, "rm"),
        (Self::Forget, "forget"),
        (Self::Lost, "lost"),
    ];

    /// The text in the log.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(Foreign(text)) => text,
            known => {
                let found = Self::KNOWN.iter().find(|(kind, _)| kind == known);
                found.expect("every other kind is in the table").1
            }
        }
    }
}

impl From<&str> for OperationKind {
    fn from(text: &str) -> Self {
        let known = Self::KNOWN.into_iter().find(|(_, word)| *word == text);
        known.map_or_else(|| Self::Other(Foreign(text.to_owned())), |(kind, _)| kind)
    }
}

impl From<String> for OperationKind {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<OperationKind> for String {
    fn from(kind: OperationKind) -> Self {
        kind.as_str().to_owned()
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl ToSql for OperationKind {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.as_str().into())
    }
}

impl FromSql for OperationKind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str().map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_text_and_keeps_it() {
        for (kind, text) in OperationKind::KNOWN {
            assert_eq!((kind.as_str(), OperationKind::from(text)), (text, kind.clone()));
            assert_eq!(String::from(kind), text);
        }
        let newer = OperationKind::from("teleport");
        assert!(matches!(newer, OperationKind::Other(_)));
        assert_eq!(newer.as_str(), "teleport");
    }
}
