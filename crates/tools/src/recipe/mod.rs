//! Recipes: what a person writes about a tool, in TOML.
//!
//! A recipe says which files are needed, what is done with them on which platform, what the tool depends on and how it shows
//! that it works. It may use composites ([`action::Composite`]), which a plan does not have. It cannot name a version that is to
//! be found out: every file is pinned by its hash, so "the newest" has no place in it.

pub mod action;
mod error;
mod read;
pub mod when;

use std::collections::{BTreeMap, BTreeSet};

use sandtable_sandbox::model::tool::ToolRequest;
use serde::Deserialize;

use self::action::Action;
pub use self::error::{Place, RecipeError};
use self::when::When;
use super::plan::{Download, InnerPath, ToolName, ToolVersion};

/// The version of the format that is read here.
pub const FORMAT: u32 = 1;
/// No recipe needs more bytes.
pub const LARGEST: u64 = 1 << 20;

/// A recipe that was read and understood.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub name: ToolName,
    pub version: ToolVersion,
    pub description: String,
    /// Instead of everything that the steps imply.
    pub dependencies: Option<Vec<ToolRequest>>,
    /// In addition to it.
    pub extra_dependencies: Vec<ToolRequest>,
    pub downloads: Vec<RecipeDownload>,
    pub steps: Vec<RecipeStep>,
    pub verify: Option<RecipeVerify>,
    pub provides: RecipeProvides,
}

/// A file, and where it is needed.
#[derive(Clone, Debug)]
pub struct RecipeDownload {
    pub download: Download,
    pub when: When,
}

/// A step, where it is done, and what it depends on.
#[derive(Clone, Debug)]
pub struct RecipeStep {
    pub action: Action,
    pub when: When,
    /// Instead of what the action implies.
    pub dependencies: Option<Vec<ToolRequest>>,
    /// In addition to it.
    pub extra_dependencies: Vec<ToolRequest>,
    pub place: Place,
}

/// How the tool shows that it works.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeVerify {
    pub command: Vec<String>,
    pub pattern: Option<String>,
    #[serde(default)]
    pub patterns: Vec<String>,
    #[serde(default)]
    pub exit_code: u8,
    #[serde(default)]
    pub additional: Vec<RecipeVerifyMore>,
}

/// One more command; it must succeed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeVerifyMore {
    pub command: Vec<String>,
    pub pattern: Option<String>,
}

/// What the tool offers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeProvides {
    #[serde(default)]
    pub binaries: Vec<InnerPath>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub needs: BTreeSet<ToolName>,
}

impl Recipe {
    /// Reads a recipe. Nothing is looked up: whether its dependencies exist is for [`assemble`](super::assemble).
    pub fn parse(text: &str) -> Result<Self, RecipeError> {
        read::recipe(text)
    }

    /// `name version`, for people.
    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

#[cfg(test)]
mod tests;
