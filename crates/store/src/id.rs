//! Names of objects: what git calls them.
//!
//! Which hash a store uses follows its source, so the kind travels with the value and two ids of different
//! kinds are never equal.

use std::fmt;
use std::str::FromStr;

use crate::hex;

/// Which hash names the objects of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HashKind {
    #[default]
    Sha1,
    Sha256,
}

impl HashKind {
    /// Length of an id in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// As git writes it in a repository's configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }
}

/// The name of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    kind: HashKind,
    /// Zero beyond the length of the kind.
    bytes: [u8; 32],
}

/// Why something is not the name of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of an object: 40 or 64 hexadecimal digits were expected")]
pub struct IdError;

impl ObjectId {
    /// From the bytes of a hash; their number says which.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, IdError> {
        let kind = match bytes.len() {
            20 => HashKind::Sha1,
            32 => HashKind::Sha256,
            _ => return Err(IdError),
        };
        let mut all = [0; 32];
        all[..bytes.len()].copy_from_slice(bytes);
        Ok(Self { kind, bytes: all })
    }

    pub const fn kind(&self) -> HashKind {
        self.kind
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.kind.bytes()]
    }

    /// The first `digits` of it, for people.
    pub fn short(&self, digits: usize) -> String {
        let mut text = self.to_string();
        text.truncate(digits);
        text
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.as_bytes()))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ObjectId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if !matches!(text.len(), 40 | 64) {
            return Err(IdError);
        }
        Self::from_bytes(&hex::decode(text).ok_or(IdError)?)
    }
}

impl serde::Serialize for ObjectId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for ObjectId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in ["4b825dc642cb6eb9a060e54bf8d69288fbee4904", &"0f".repeat(32)] {
            let id: ObjectId = text.parse().unwrap();
            assert_eq!(id.to_string(), text);
            assert_eq!(ObjectId::from_bytes(id.as_bytes()).unwrap(), id);
        }
        for text in ["", "4b", &"g".repeat(40), &"0".repeat(41), "+4825dc642cb6eb9a060e54bf8d69288fbee490+4"]
        {
            assert_eq!(text.parse::<ObjectId>(), Err(IdError), "{text}");
        }
    }
}
