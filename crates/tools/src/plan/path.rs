//! Paths in plans: relative, plain, and text.

use std::fmt;
use std::path::{Component, Path};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A path below a directory that the context names. It cannot leave it by its own letters; whoever opens it beneath a
/// directory that others write must still do so by handle, because of symbolic links.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InnerPath(String);

/// Why a text is no such path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a plain relative path: {why}", .given.escape_debug())]
pub struct InnerPathError {
    pub given: String,
    pub why: &'static str,
}

impl InnerPath {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The directory it is in, unless that is the top.
    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(parent, _)| Self(parent.to_owned()))
    }
}

impl FromStr for InnerPath {
    type Err = InnerPathError;

    fn from_str(text: &str) -> Result<Self, InnerPathError> {
        let refuse = |why| Err(InnerPathError { given: text.to_owned(), why });
        if text.is_empty() {
            return refuse("it is empty");
        }
        if text.len() > 1024 {
            return refuse("it is longer than 1024 bytes");
        }
        if text.chars().any(char::is_control) {
            return refuse("it has a control character");
        }
        // A colon would end an entry of PATH.
        if text.contains(':') {
            return refuse("it has a colon");
        }
        if Path::new(text).components().any(|part| !matches!(part, Component::Normal(_))) {
            return refuse("it is absolute or has `.` or `..`");
        }
        if text.ends_with('/') || text.contains("//") || text.contains("/./") {
            return refuse("it has an empty part");
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for InnerPath {
    type Error = InnerPathError;

    fn try_from(text: String) -> Result<Self, InnerPathError> {
        text.parse()
    }
}

impl From<InnerPath> for String {
    fn from(path: InnerPath) -> Self {
        path.0
    }
}

impl fmt::Display for InnerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
