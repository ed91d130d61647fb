//! Who has to change something when an operation fails.

/// What must change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The user's input: exit code 2.
    Input,
    /// The machine: exit code 125.
    Machine,
}
