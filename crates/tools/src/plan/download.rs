//! What a plan needs from outside: files, each pinned by its hash.
//!
//! Where a registry is, its ordinary client knows. A plan only says which registry, which package, which version and which
//! file; a file with another hash is refused, and no other version is ever taken instead.

use std::fmt;
use std::str::FromStr;

use sandtable_sandbox::model::choice::choice;
use sandtable_store::hex;
use serde::{Deserialize, Serialize};

choice! {
    /// Where a file comes from.
    Registry {
        Pypi = "pypi",
        Npm = "npm",
        Crate = "crate",
        Debian = "debian",
        DebianSource = "debian-source",
        Https = "https",
    }
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Download {
    pub source: Registry,
    /// The package as its registry calls it; for `https` a word for people.
    pub name: PackageName,
    pub version: String,
    /// The name of the file, unique in its plan; steps refer to it.
    pub file: FileName,
    /// Only for `https`, and required there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    pub sha256: Sha256,
    /// In bytes. A longer file is refused before it was read to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// Why a word of a download was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DownloadError {
    #[error("`{}` is not the name of a file", .0.escape_debug())]
    File(String),
    #[error("`{}` is not the name of a package", .0.escape_debug())]
    Package(String),
    #[error("`{}` is not a SHA-256: use 64 lower-case hexadecimal digits", .0.escape_debug())]
    Hash(String),
}

/// The plain name of one file, without any directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileName(String);

/// The name of a package in a registry: it will be an argument of a client, so it can be no option and no path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PackageName(String);

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256(pub [u8; 32]);

macro_rules! text {
    ($name:ident) => {
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
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

macro_rules! try_from_text {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = DownloadError;

            fn try_from(text: String) -> Result<Self, DownloadError> {
                text.parse()
            }
        }
    };
}

text!(FileName);
text!(PackageName);
try_from_text!(FileName);
try_from_text!(PackageName);
try_from_text!(Sha256);

impl FromStr for FileName {
    type Err = DownloadError;

    fn from_str(text: &str) -> Result<Self, DownloadError> {
        let fine = |c: char| c.is_ascii_alphanumeric() || "-_+.~@%".contains(c);
        let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '@');
        if starts && text.len() <= 200 && text.chars().all(fine) {
            Ok(Self(text.to_owned()))
        } else {
            Err(DownloadError::File(text.to_owned()))
        }
    }
}

impl FromStr for PackageName {
    type Err = DownloadError;

    fn from_str(text: &str) -> Result<Self, DownloadError> {
        let fine = |c: char| c.is_ascii_alphanumeric() || "-_+.".contains(c);
        let plain = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && part.chars().all(fine)
        };
        // npm has scopes: `@scope/name`.
        let valid = match text.strip_prefix('@').and_then(|rest| rest.split_once('/')) {
            Some((scope, name)) => plain(scope) && plain(name),
            None => plain(text),
        };
        if valid && text.len() <= 200 {
            Ok(Self(text.to_owned()))
        } else {
            Err(DownloadError::Package(text.to_owned()))
        }
    }
}

impl Sha256 {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }
}

impl FromStr for Sha256 {
    type Err = DownloadError;

    fn from_str(text: &str) -> Result<Self, DownloadError> {
        let lowercase = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let bytes = hex::decode(text).filter(|_| lowercase);
        let hash = bytes.and_then(|bytes| bytes.try_into().ok());
        hash.map(Self).ok_or_else(|| DownloadError::Hash(text.to_owned()))
    }
}

impl From<Sha256> for String {
    fn from(hash: Sha256) -> Self {
        hash.to_string()
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_64_lowercase_digits() {
        let digits = Sha256::of(b"abc").to_string();
        assert_eq!(digits.parse::<Sha256>().unwrap(), Sha256::of(b"abc"));
        let wrong =
            [digits.to_uppercase(), digits[2..].to_owned(), format!("{digits}00"), digits.replace('a', "g")];
        for text in wrong {
            assert!(text.parse::<Sha256>().is_err(), "{text}");
        }
    }
}
