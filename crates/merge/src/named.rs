//! Paths as answers name them.

use sandtable_store::RelPath;
use serde::Serialize;

/// A path, exact for machines, and a word about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    #[serde(flatten)]
    pub path: PathText,
    pub why: String,
}

impl Named {
    pub(super) fn new(path: &RelPath, why: impl Into<String>) -> Self {
        Self { path: path.into(), why: why.into() }
    }
}

/// A path in an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PathText {
    pub path: String,
    /// The exact bytes, when `path` is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_hex: Option<String>,
}

impl From<&RelPath> for PathText {
    fn from(path: &RelPath) -> Self {
        let (path, path_hex) = path.to_text();
        Self { path, path_hex }
    }
}
