//! Conditions of steps and downloads.

use sandtable_sandbox::model::platform::Os;
use serde::Deserialize;

use super::super::plan::{Arch, Libc, LinuxFamily, PlanPlatform};

/// Where something applies. What is not named does not matter; of several words one must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    #[serde(default)]
    os: Words<Os>,
    #[serde(default)]
    arch: Words<Arch>,
    #[serde(default)]
    libc: Words<Libc>,
    #[serde(default)]
    linux_family: Words<LinuxFamily>,
}

/// One word or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Words<T> {
    One(T),
    Any(Vec<T>),
}

impl<T> Default for Words<T> {
    fn default() -> Self {
        Self::Any(Vec::new())
    }
}

impl<T: PartialEq> Words<T> {
    fn accept(&self, value: &T) -> bool {
        match self {
            Self::One(word) => word == value,
            Self::Any(words) => words.is_empty() || words.contains(value),
        }
    }

    fn is_given(&self) -> bool {
        !matches!(self, Self::Any(words) if words.is_empty())
    }
}

impl When {
    /// Whether it applies there. A condition on the family does not apply where the family is unknown.
    pub fn applies(&self, target: &PlanPlatform) -> bool {
        let family =
            target.linux_family.map_or(!self.names_family(), |family| self.linux_family.accept(&family));
        let machine = self.os.accept(&target.os) && self.arch.accept(&target.arch);
        machine && self.libc.accept(&target.libc) && family
    }

    /// Whether the family of the distribution matters.
    pub fn names_family(&self) -> bool {
        self.linux_family.is_given()
    }
}
