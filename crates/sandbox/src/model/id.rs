//! Names of sandboxes: what a person types, and at the same time the name of the directory that holds the
//! sandbox's state. Uniqueness comes from the file system: the name is taken when its directory is made.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A checked sandbox name: lower-case letters, digits and single dashes, at most 40 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxName(String);

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a sandbox name: use at most 40 lower-case letters, digits and dashes, starting with a letter"
)]
pub struct NameError(String);

impl SandboxName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A readable name made from random numbers: an adjective, a noun and four digits of base 32.
    pub fn from_random(random: u64) -> Self {
        let pick = |words: &[&'static str], bits: u64| {
            let index = usize::try_from(bits % words.len() as u64).expect("smaller than the list");
            words[index]
        };
        let suffix: String =
            (0..4).map(|place| DIGITS[(random >> (32 + 5 * place) & 31) as usize] as char).collect();
        Self(format!("{}-{}-{suffix}", pick(ADJECTIVES, random & 0xffff), pick(NOUNS, random >> 16 & 0xffff)))
    }
}

const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ADJECTIVES: &[&str] = &[
    "amber", "brave", "brisk", "calm", "clear", "crisp", "deft", "eager", "fair", "fleet", "glad", "hardy",
    "keen", "kind", "lively", "lucid", "merry", "mild", "neat", "noble", "plain", "proud", "quick", "quiet",
    "ready", "sharp", "sleek", "sound", "steady", "sunny", "swift", "tidy", "true", "warm", "wise", "young",
];
const NOUNS: &[&str] = &[
    "alder", "badger", "beacon", "birch", "brook", "cedar", "cliff", "comet", "coral", "crane", "delta",
    "dune", "ember", "falcon", "fern", "finch", "fjord", "gull", "harbor", "heron", "island", "lark",
    "linden", "lynx", "maple", "marten", "meadow", "otter", "pebble", "pine", "plover", "reef", "ridge",
    "robin", "spruce", "stork", "tern", "willow",
];

impl FromStr for SandboxName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = text.len() <= 40 && text.starts_with(|c: char| c.is_ascii_lowercase());
        if fits && text.chars().all(letters) && !text.ends_with('-') && !text.contains("--") {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError(text.to_owned()))
        }
    }
}

impl TryFrom<String> for SandboxName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<SandboxName> for String {
    fn from(name: SandboxName) -> Self {
        name.0
    }
}

impl fmt::Display for SandboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_names_are_valid() {
        for random in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
            let name = SandboxName::from_random(random);
            assert_eq!(name.as_str().parse(), Ok(name.clone()));
        }
    }

    #[test]
    fn names_that_could_be_paths_or_flags_are_refused() {
        for bad in ["", "-x", "a/b", "..", "A", "a--b", "a-", "a b", "a\n", &"a".repeat(41)] {
            assert!(bad.parse::<SandboxName>().is_err(), "{bad:?}");
        }
    }
}
