//! Who has to change something when an operation fails.

use serde::{Deserialize, Serialize};

/// What must change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The user's input: exit code 2.
    Input,
    /// The machine: exit code 125.
    Machine,
}
