//! A value together with where it came from, so that every line of the policy can be explained.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where a value was set. The order is the order of strength, strongest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    Flag {
        name: String,
    },
    /// A program that uses the library.
    Program,
    Variable {
        name: String,
    },
    ProjectFile {
        path: PathBuf,
    },
    Profile {
        name: String,
    },
    UserFile {
        path: PathBuf,
    },
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag { name } => write!(f, "flag {name}"),
            Self::Program => f.write_str("program"),
            Self::Variable { name } => write!(f, "variable {name}"),
            Self::ProjectFile { path } => write!(f, "project file {}", path.display()),
            Self::Profile { name } => write!(f, "profile {name}"),
            Self::UserFile { path } => write!(f, "user file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value and its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Setting<T> {
    pub fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }

    /// A value nobody set.
    pub fn default_value(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }
}
