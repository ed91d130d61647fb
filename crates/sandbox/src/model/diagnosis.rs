//! What an error says besides its text: who has to change something, a word for scripts, and what can be done.

use serde::{Deserialize, Serialize};

/// What must change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The user's input: exit code 2.
    Input,
    /// The machine: exit code 125.
    Machine,
}

/// What every error of an operation knows.
pub trait Diagnose: std::error::Error {
    /// Who has to change something.
    fn fault(&self) -> Fault;

    /// A stable word for scripts.
    fn code(&self) -> &'static str;

    /// What can be done about it, where that is known: one way a line.
    fn remedy(&self) -> Option<String> {
        None
    }
}
