//! Names of layers. A layer holds the changes to one mount of a sandbox.
//!
//! Records and directories contain these names as text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a layer, by the kind of its mount.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum LayerName {
    /// The workspace.
    Workspace,
    /// The shared git directory of a linked worktree.
    GitDirectory,
    /// The user's mount of that number.
    Mount(usize),
    /// The home of a coding agent: the mount of that number.
    AgentHome(usize),
    /// The compiler's cache of a managed tool.
    Cache(Label),
    /// A directory of the root file system of a tool build.
    Root(Label),
    /// A toolchain of the user.
    Toolchain(Label),
}

/// Distinguishes layers of one kind. Only [`LayerName`] creates labels, so that no name belongs to two kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(String);

/// Invalid name of a layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not the name of a layer", .0.escape_debug())]
pub struct LayerNameError(String);

const WORKSPACE: &str = "workspace";
const GIT: &str = "git";
const MOUNT: &str = "mount-";
const AGENT: &str = "agent-";
const CACHE: &str = "cache-";
const ROOT: &str = "root-";

impl LayerName {
    /// The layer of a compiler's cache.
    pub fn cache(tool: &str) -> Result<Self, LayerNameError> {
        format!("{CACHE}{tool}").parse()
    }

    /// The layer of a directory of a root file system.
    pub fn root(directory: &str) -> Result<Self, LayerNameError> {
        format!("{ROOT}{directory}").parse()
    }

    /// The layer of a toolchain. Fails if another kind of layer has this name.
    pub fn toolchain(id: &str) -> Result<Self, LayerNameError> {
        match id.parse()? {
            name @ Self::Toolchain(_) => Ok(name),
            _ => Err(LayerNameError(id.to_owned())),
        }
    }
}

impl fmt::Display for LayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace => f.write_str(WORKSPACE),
            Self::GitDirectory => f.write_str(GIT),
            Self::Mount(number) => write!(f, "{MOUNT}{number}"),
            Self::AgentHome(number) => write!(f, "{AGENT}{number}"),
            Self::Cache(Label(tool)) => write!(f, "{CACHE}{tool}"),
            Self::Root(Label(directory)) => write!(f, "{ROOT}{directory}"),
            Self::Toolchain(Label(id)) => f.write_str(id),
        }
    }
}

impl FromStr for LayerName {
    type Err = LayerNameError;

    /// Accepts every text that can be part of a file name, because records of other versions may contain other names.
    fn from_str(text: &str) -> Result<Self, LayerNameError> {
        if text.is_empty() || text.starts_with('.') || text.contains(['/', '\0']) {
            return Err(LayerNameError(text.to_owned()));
        }
        let label = |prefix| {
            text.strip_prefix(prefix).filter(|rest| !rest.is_empty()).map(|rest| Label(rest.to_owned()))
        };
        Ok(match text {
            WORKSPACE => Self::Workspace,
            GIT => Self::GitDirectory,
            _ => None
                .or_else(|| number(text, MOUNT).map(Self::Mount))
                .or_else(|| number(text, AGENT).map(Self::AgentHome))
                .or_else(|| label(CACHE).map(Self::Cache))
                .or_else(|| label(ROOT).map(Self::Root))
                .unwrap_or_else(|| Self::Toolchain(Label(text.to_owned()))),
        })
    }
}

/// The number after a prefix, in its canonical form.
fn number(text: &str, prefix: &str) -> Option<usize> {
    let number: usize = text.strip_prefix(prefix)?.parse().ok()?;
    (text == format!("{prefix}{number}")).then_some(number)
}

impl TryFrom<String> for LayerName {
    type Error = LayerNameError;

    fn try_from(text: String) -> Result<Self, LayerNameError> {
        text.parse()
    }
}

impl From<LayerName> for String {
    fn from(name: LayerName) -> Self {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_that_is_a_name_stays_as_it_is(text in "(workspace|git|mount-|agent-|cache-|root-|)[ -~é]{0,6}") {
            match text.parse::<LayerName>() {
                Ok(name) => {
                    prop_assert_eq!(name.to_string(), text.clone());
                    let json = serde_json::to_string(&name).unwrap();
                    prop_assert_eq!(&json, &serde_json::to_string(&text).unwrap());
                    prop_assert_eq!(serde_json::from_str::<LayerName>(&json).unwrap(), name);
                }
                Err(_) => prop_assert!(text.is_empty() || text.starts_with('.') || text.contains('/')),
            }
        }

        #[test]
        fn every_name_is_read_as_what_it_was(number: usize, label in "[a-z0-9.]{1,6}") {
            let names = [
                LayerName::Mount(number),
                LayerName::AgentHome(number),
                LayerName::cache(&label).unwrap(),
                LayerName::root(&label).unwrap(),
            ];
            for name in names {
                prop_assert_eq!(name.to_string().parse::<LayerName>(), Ok(name));
            }
        }
    }

    #[test]
    fn kinds_are_told_apart() {
        let parsed = |text: &str| text.parse::<LayerName>().unwrap();
        assert_eq!(parsed("workspace"), LayerName::Workspace);
        assert_eq!(parsed("git"), LayerName::GitDirectory);
        assert_eq!(parsed("mount-12"), LayerName::Mount(12));
        assert_eq!(parsed("agent-0"), LayerName::AgentHome(0));
        assert_eq!(parsed("cache-gcc"), LayerName::cache("gcc").unwrap());
        assert_eq!(parsed("cargo"), LayerName::toolchain("cargo").unwrap());
        for other in ["mount-012", "mount-+1", "mount-", "agent-x", "cache-"] {
            assert!(matches!(parsed(other), LayerName::Toolchain(_)), "{other}");
        }
        for taken in ["git", "workspace", "mount-1", "cache-gcc", "", "a/b", "..", "a\0b"] {
            assert!(LayerName::toolchain(taken).is_err(), "{taken:?}");
        }
    }
}
