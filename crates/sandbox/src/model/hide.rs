//! What of a workspace is not shown, as the user writes it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A pattern for names or paths of the workspace. Without a slash it is held against every name at any depth,
/// with one against paths from the top of the workspace. A slash at its end means directories only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HidePattern {
    text: String,
}

/// Why some text is no such pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HideError {
    #[error("pattern is empty")]
    Empty,
    #[error("pattern `{0}` is an absolute path; it must be a name, or a path from the top of the workspace")]
    Absolute(String),
    #[error("pattern `{0}` has an empty component, `.` or `..`")]
    Component(String),
}

/// What a pattern is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Name,
    Path,
}

/// Which entries a pattern can mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    Anything,
    Directories,
}

impl HidePattern {
    pub fn scope(&self) -> Scope {
        if self.glob().contains('/') { Scope::Path } else { Scope::Name }
    }

    pub fn only(&self) -> Only {
        if self.text.ends_with('/') { Only::Directories } else { Only::Anything }
    }

    /// `?` is any character but a slash, `*` any number of them, `**` slashes too.
    pub fn glob(&self) -> &str {
        self.text.trim_end_matches('/')
    }
}

impl FromStr for HidePattern {
    type Err = HideError;

    fn from_str(text: &str) -> Result<Self, HideError> {
        if text.starts_with('/') {
            return Err(HideError::Absolute(text.to_owned()));
        }
        let pattern = Self { text: text.strip_prefix("./").unwrap_or(text).to_owned() };
        if pattern.glob().is_empty() {
            return Err(HideError::Empty);
        }
        if pattern.glob().split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(HideError::Component(text.to_owned()));
        }
        Ok(pattern)
    }
}

impl TryFrom<String> for HidePattern {
    type Error = HideError;

    fn try_from(text: String) -> Result<Self, HideError> {
        text.parse()
    }
}

impl From<HidePattern> for String {
    fn from(pattern: HidePattern) -> Self {
        pattern.text
    }
}

impl fmt::Display for HidePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_names_or_paths_of_the_workspace() {
        let scope = |text: &str| text.parse::<HidePattern>().map(|pattern| (pattern.scope(), pattern.only()));
        assert_eq!(scope("*.key"), Ok((Scope::Name, Only::Anything)));
        assert_eq!(scope("node_modules/"), Ok((Scope::Name, Only::Directories)));
        assert_eq!(scope("./config/prod"), Ok((Scope::Path, Only::Anything)));
        assert_eq!(scope("a/**/b/"), Ok((Scope::Path, Only::Directories)));
        assert!(matches!(scope("/etc"), Err(HideError::Absolute(_))));
        assert_eq!(scope(""), Err(HideError::Empty));
        assert_eq!(scope("./"), Err(HideError::Empty));
        for text in ["a//b", "../x", "a/./b", "."] {
            assert!(matches!(scope(text), Err(HideError::Component(_))), "{text}");
        }
    }
}
