//! One thing that was looked at, and what came of it.

use serde::{Deserialize, Serialize};

use super::choice::choice;

/// What was found about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Stable, for scripts.
    pub id: String,
    pub status: Status,
    /// What was looked at.
    pub what: String,
    /// What was found there.
    pub why: String,
    /// The one command that mends it, where there is one.
    pub mend: Option<String>,
}

choice! {
    /// How it looks.
    Status { Ok = "ok", Warn = "warn", Fail = "fail" }
}

impl Check {
    pub fn ok(id: &str, what: &str, why: impl Into<String>) -> Self {
        Self { id: id.to_owned(), status: Status::Ok, what: what.to_owned(), why: why.into(), mend: None }
    }

    pub fn warn(id: &str, what: &str, why: impl Into<String>) -> Self {
        Self { status: Status::Warn, ..Self::ok(id, what, why) }
    }

    pub fn fail(id: &str, what: &str, why: impl Into<String>) -> Self {
        Self { status: Status::Fail, ..Self::ok(id, what, why) }
    }

    /// The same with the command that mends it.
    #[must_use]
    pub fn mend(self, mend: impl Into<String>) -> Self {
        Self { mend: Some(mend.into()), ..self }
    }
}
