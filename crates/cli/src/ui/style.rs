//! Colour, or none.

use std::fmt;

/// Whether the terminal gets colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Never,
    Ansi,
}

/// What a word means; how that looks is decided here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Name,
    Added,
    Changed,
    Removed,
    Warning,
    Error,
}

impl Colour {
    pub(crate) fn paint(self, role: Role, text: impl fmt::Display) -> String {
        let code = match role {
            Role::Name => "1",
            Role::Added => "32",
            Role::Changed | Role::Warning => "33",
            Role::Removed | Role::Error => "31",
        };
        match self {
            Self::Never => text.to_string(),
            Self::Ansi => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}
