//! What a plan is called by its content.
//!
//! Two names. The *digest* is of the plan alone and says whether two plans are the same. The *key* is what a finished tool
//! is kept under: it covers the plan, the keys of its dependencies, the root file system it was made in and the
//! version of what executed it. A tool under a key is therefore never one that was made differently.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use super::Plan;
use super::download::{DownloadError, Sha256};

/// The hash of a whole plan, dependencies included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlanDigest(Sha256);

/// The name of a finished tool in the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlanKey(Sha256);

/// What a key depends on besides the plan.
#[derive(Clone, Copy, Debug)]
pub struct KeyContext<'a> {
    /// What identifies the root file system the steps see.
    pub root_digest: &'a str,
    /// Grows whenever the executor would make something else of the same plan.
    pub executor_version: u32,
}

impl Plan {
    /// The one encoding of this plan: JSON without spaces, keys in order, defaults left out.
    pub fn canonical(&self) -> Vec<u8> {
        let value = serde_json::to_value(self).expect("a plan has only keys that are text");
        serde_json::to_vec(&value).expect("a value can be written")
    }

    pub fn digest(&self) -> PlanDigest {
        PlanDigest(Sha256::of(&self.canonical()))
    }

    /// The key of the tool that this plan makes there.
    pub fn key(&self, context: KeyContext<'_>) -> PlanKey {
        let alone = Self { dependencies: Vec::new(), ..self.clone() };
        let mut hash = sha2::Sha256::new();
        let mut part = |bytes: &[u8]| {
            // With its length before it no part can be read as the end of another.
            hash.update(u64::try_from(bytes.len()).expect("memory is smaller").to_be_bytes());
            hash.update(bytes);
        };
        part(b"sandtable tool 1");
        part(&alone.canonical());
        part(context.root_digest.as_bytes());
        part(&context.executor_version.to_be_bytes());
        for dependency in &self.dependencies {
            part(&dependency.key(context).0.0);
        }
        PlanKey(Sha256(hash.finalize().into()))
    }
}

macro_rules! hash {
    ($name:ident) => {
        impl $name {
            /// The first digits, for people.
            pub fn short(&self) -> String {
                self.to_string()[..12].to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = DownloadError;

            fn from_str(text: &str) -> Result<Self, DownloadError> {
                text.parse().map(Self)
            }
        }
    };
}

hash!(PlanDigest);
hash!(PlanKey);
