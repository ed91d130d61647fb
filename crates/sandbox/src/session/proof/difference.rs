//! What differs between two states, as a proof has it: by path, with the ids of contents before and after.

use sandtable_store::diff::{self, Change, ChangeKind, Diff, Renames};
use sandtable_store::id::ObjectId;
use serde::{Deserialize, Serialize};

use crate::board::{self, Found};

/// What was added, removed and changed. A renamed file is one removed and one added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    pub added: Vec<Touched>,
    pub removed: Vec<Touched>,
    pub changed: Vec<Touched>,
    /// Whether there is more.
    pub truncated: bool,
}

/// One path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Touched {
    /// Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The exact bytes in hexadecimal, when `path` is not exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_hex: Option<String>,
    /// Of the content; a directory has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ObjectId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ObjectId>,
}

/// How many paths a proof lists.
const MOST: usize = 10_000;

impl Difference {
    pub(super) fn between(from: &Found, to: &Found) -> Result<Self, board::BoardError> {
        let options = diff::DiffOptions {
            renames: Renames::Ignore,
            file_bytes: 0,
            changes: MOST,
            ..diff::DiffOptions::default()
        };
        Ok(Self::of(&diff::diff(from.store.objects(), &from.state()?, &to.state()?, &options)?))
    }

    /// The same from a comparison that was made.
    pub fn of(diff: &Diff) -> Self {
        let mut found = Self { truncated: diff.truncated, ..Self::default() };
        for change in &diff.changes {
            match change.kind {
                ChangeKind::Added => found.added.push(touched(change)),
                ChangeKind::Removed => found.removed.push(touched(change)),
                _ => found.changed.push(touched(change)),
            }
        }
        found
    }
}

fn touched(change: &Change) -> Touched {
    let (path, path_hex) = change.path.to_text();
    let id = |side: &Option<diff::Side>| side.as_ref().and_then(|side| side.id);
    Touched { path, path_hex, before: id(&change.old), after: id(&change.new) }
}
