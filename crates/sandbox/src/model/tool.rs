//! Names and versions of tools. Both become parts of paths inside and outside of sandboxes, so they are checked
//! when they are made and never again.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::path::{BoxPath, HostPath};
use super::resolved::EngineName;

/// Why a text is no name or version of a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolWordError {
    #[error(
        "`{0}` is not the name of a tool: use at most 64 lower-case letters, digits, `-`, `_`, `+` and `.`, starting with a letter or digit"
    )]
    Name(String),
    #[error(
        "`{0}` is not a version: use at most 64 letters, digits, `.`, `-`, `+`, `_` and `~`, starting with a letter or digit"
    )]
    Version(String),
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $error:ident, $letters:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ToolWordError;

            fn from_str(text: &str) -> Result<Self, ToolWordError> {
                let letters: fn(char) -> bool = $letters;
                let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
                if starts && text.len() <= 64 && text.chars().all(letters) && !text.contains("..") {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(ToolWordError::$error(text.to_owned()))
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = ToolWordError;

            fn try_from(text: String) -> Result<Self, ToolWordError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

word! {
    /// The checked name of a tool.
    ToolName, Name, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_+.".contains(c)
}

word! {
    /// The checked version of a tool. Versions are compared for equality only: nothing here picks "the newest".
    ToolVersion, Version, |c| c.is_ascii_alphanumeric() || "-_+.~".contains(c)
}

/// A tool as it is asked for: `ninja`, or `ninja@1.13`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolRequest {
    pub name: ToolName,
    /// The version, or its first parts: `1.13` asks for `1.13` or `1.13.2`, not for `1.130`.
    pub version: Option<ToolVersion>,
}

impl ToolRequest {
    /// Whether `version` is what was asked for.
    pub fn accepts(&self, version: &ToolVersion) -> bool {
        let Some(wanted) = &self.version else { return true };
        let rest = version.as_str().strip_prefix(wanted.as_str());
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    }
}

impl FromStr for ToolRequest {
    type Err = ToolWordError;

    fn from_str(text: &str) -> Result<Self, ToolWordError> {
        match text.split_once('@') {
            Some((name, version)) => Ok(Self { name: name.parse()?, version: Some(version.parse()?) }),
            None => Ok(Self { name: text.parse()?, version: None }),
        }
    }
}

impl TryFrom<String> for ToolRequest {
    type Error = ToolWordError;

    fn try_from(text: String) -> Result<Self, ToolWordError> {
        text.parse()
    }
}

impl From<ToolRequest> for String {
    fn from(request: ToolRequest) -> Self {
        request.to_string()
    }
}

impl fmt::Display for ToolRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        self.version.as_ref().map_or(Ok(()), |version| write!(f, "@{version}"))
    }
}

/// A finished tool that a sandbox gets: what the store of tools hands out, and what is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvidedDep {
    pub name: ToolName,
    pub version: ToolVersion,
    /// What the store keeps it under, as hexadecimal digits.
    pub key: String,
    /// The finished directory in the store.
    pub source: HostPath,
    /// Where it stands inside.
    pub place: BoxPath,
    /// Directories for PATH, at or below `place`.
    pub search: Vec<BoxPath>,
    /// Variables for whoever uses it.
    pub env: BTreeMap<String, String>,
    /// The image it was made on; nothing if that was no container's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_on: Option<MadeOn>,
}

/// The image of a container engine that a tool was made on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeOn {
    pub engine: EngineName,
    /// As it was named.
    pub image: String,
    /// What the engine calls exactly that content. A tool is known by this and never by the name.
    pub id: String,
}

impl MadeOn {
    /// Whether it is the image with that id.
    pub fn is_on(&self, id: &str) -> bool {
        bare(&self.id) == bare(id)
    }
}

/// An id without how it was hashed: one engine writes that before it, the other does not.
pub fn bare(id: &str) -> &str {
    id.strip_prefix("sha256:").unwrap_or(id)
}

impl fmt::Display for MadeOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} image {} ({})", self.engine, self.image, short(&self.id))
    }
}

/// As much of an id as people compare.
fn short(id: &str) -> &str {
    bare(id).get(..12).unwrap_or(bare(id))
}

impl ProvidedDep {
    /// The directories of tools for PATH, in their order, each once.
    pub fn search_path(tools: &[Self]) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for directory in tools.iter().flat_map(|tool| &tool.search).map(BoxPath::to_string) {
            if !found.contains(&directory) {
                found.push(directory);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_leave_a_directory_is_no_name_and_no_version() {
        for bad in ["", ".", "..", "a/b", "../a", "-x", "a..b", "a:b", "a\n", "a b", "a\0", &"a".repeat(65)] {
            assert!(bad.parse::<ToolName>().is_err(), "{bad:?}");
            assert!(bad.parse::<ToolVersion>().is_err(), "{bad:?}");
        }
        assert!("CMake".parse::<ToolName>().is_err());
        assert!("pkg-config".parse::<ToolName>().is_ok() && "1.8.1-1+b2~rc1".parse::<ToolVersion>().is_ok());
    }
    #[test]
    fn a_shorter_version_asks_for_every_longer_one() {
        let accepts = |request: &str, version: &str| {
            request.parse::<ToolRequest>().unwrap().accepts(&version.parse().unwrap())
        };
        assert!(
            accepts("ninja", "1.13.2")
                && accepts("ninja@1.13", "1.13.2")
                && accepts("ninja@1.13.2", "1.13.2")
        );
        assert!(!accepts("ninja@1.1", "1.13.2") && !accepts("ninja@1.13.2", "1.13"));
        assert!("ninja@".parse::<ToolRequest>().is_err() && "@1".parse::<ToolRequest>().is_err());
    }
}
