//! Why there is nothing to deliver.

use super::conflict::Conflict;
use super::error::Error;
use super::refusal::{Reason, Refusal};
use super::review::Finding;

/// Why there is nothing to deliver.
#[derive(Debug)]
pub(super) enum Halt {
    UpToDate,
    Held(Vec<Finding>),
    Conflicts(Vec<Conflict>),
    Refused(Refusal),
    Failed(Error),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<E: Into<Error>> From<E> for Halt {
    fn from(error: E) -> Self {
        match error.into() {
            // Work that is too much is the sandbox's doing, not a failure of ours.
            error @ Error::TooMuch { .. } => Refusal::new(Reason::TooMuch, error.to_string()).into(),
            error => Self::Failed(error),
        }
    }
}
