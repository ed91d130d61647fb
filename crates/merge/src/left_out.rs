//! Changes that are not considered, and why.

use serde::Serialize;

use super::named::PathText;

/// A change of the snapshot that was not considered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    #[serde(flatten)]
    pub path: PathText,
    pub why: LeftOutWhy,
}

impl LeftOut {
    /// Whether git has no way to keep it.
    pub(super) fn is_beyond_git(&self) -> bool {
        !matches!(self.why, LeftOutWhy::Selection | LeftOutWhy::Ignored | LeftOutWhy::Unrecorded)
    }
}

/// Why a change was not considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutWhy {
    /// Outside of `--only` or inside of `--exclude`.
    Selection,
    /// The repository ignores such files.
    Ignored,
    /// It seems to be removed, but something is there that could not be recorded.
    Unrecorded,
    /// A directory that has, or had, no file in it: git knows none.
    EmptyDirectory,
    /// Permissions other than the executable bit.
    Permissions,
    /// Extended attributes.
    Attributes,
}
