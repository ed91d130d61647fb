//! Names of bundles of settings: those that are part of the executable, and those that a configuration file
//! defines. Whether there is one of that name is known only where the files are read.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::choice::choice;

choice! {
    /// The bundles that are part of the executable.
    BuiltIn { None = "none", Dev = "dev", Safe = "safe", Tight = "tight", Offline = "offline" }
}

/// A checked name of a bundle of settings: lower-case letters, digits and dashes, at most 40 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Profile(String);

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a profile's name: use at most 40 lower-case letters, digits and dashes, starting with a letter"
)]
pub struct ProfileError(String);

impl Profile {
    /// The one of ours that has this name.
    pub fn built_in(&self) -> Option<BuiltIn> {
        self.0.parse().ok()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<BuiltIn> for Profile {
    fn from(profile: BuiltIn) -> Self {
        Self(profile.word().to_owned())
    }
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = text.len() <= 40 && text.starts_with(|c: char| c.is_ascii_lowercase());
        if fits && text.chars().all(letter) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ProfileError(text.to_owned()))
        }
    }
}

impl TryFrom<String> for Profile {
    type Error = ProfileError;

    fn try_from(text: String) -> Result<Self, ProfileError> {
        text.parse()
    }
}

impl From<Profile> for String {
    fn from(profile: Profile) -> Self {
        profile.0
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
