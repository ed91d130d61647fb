//! Attacks that are tried from inside a sandbox: which, and what came of each. Who tries them prints one [`Line`] of JSON
//! for each.

use serde::{Deserialize, Serialize};

/// One attempt of many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub probe: String,
    pub args: Vec<String>,
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Refused, or what was looked for is not there.
    Blocked,
    /// It went through, on something private to the sandbox.
    Harmless,
    /// It went through.
    Leak,
    /// Something that should work does; of a write, that it went through somewhere.
    Works,
    /// It could not be tried here.
    Unsupported,
}

/// What a probe prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub case: String,
    pub class: Class,
    pub detail: String,
}
