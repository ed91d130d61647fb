//! Why a text is no recipe, and where.

use std::fmt;
use std::ops::Range;

/// A place in a text, line and column counted from one, the column in letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

/// What is wrong with a recipe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct RecipeError {
    pub place: Place,
    pub message: String,
}

impl Place {
    /// The place of a byte of `text`.
    pub(super) fn of(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        Self { line: before.matches('\n').count() + 1, column: before[start..].chars().count() + 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

impl RecipeError {
    pub(super) fn at(text: &str, span: Option<Range<usize>>, message: impl Into<String>) -> Self {
        let message = message.into().replace('\n', "; ");
        Self { place: Place::of(text, span.map_or(0, |span| span.start)), message }
    }
}
