//! Families of distributions as data: `families.toml` says what each one is and how it installs packages.
//!
//! A root file system says itself of which family it is, in its `os-release`, and whether it is the real thing or
//! carries no more than the family's package manager. Nobody else's word counts for that, so an emulated one is
//! never shown as real.

mod release;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

pub use self::release::Release;
use super::plan::step::PackageManager;
use super::plan::{Libc, LinuxFamily};

/// What the names of packages take the place of.
const PACKAGES: &str = "{packages}";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Families {
    family: Vec<Family>,
}

/// One family.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    pub name: LinuxFamily,
    /// What its members call themselves, or whom they say they are like.
    ids: Vec<String>,
    /// The C library that its members have.
    pub libc: Libc,
    /// The shell that every member has.
    pub shell: String,
    /// The directories of its programs, as a PATH.
    pub search: String,
    /// The certificates that its programs trust.
    pub certificates: String,
    pub packages: Packages,
    #[serde(rename = "reason")]
    _reason: String,
}

/// A package manager.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    pub manager: PackageManager,
    /// The program without which nothing can be installed.
    pub program: String,
    pub environment: BTreeMap<String, String>,
    commands: Vec<Installing>,
    #[serde(rename = "reason")]
    _reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Installing {
    argv: Vec<String>,
    #[serde(rename = "reason")]
    _reason: String,
}

static FAMILIES: LazyLock<Families> =
    LazyLock::new(|| toml::from_str(include_str!("families.toml")).expect("a test reads it"));

/// What is known of a family.
pub fn family(name: LinuxFamily) -> &'static Family {
    FAMILIES.family.iter().find(|family| family.name == name).expect("a test finds each")
}

/// The package manager of that name.
pub fn packages(manager: PackageManager) -> &'static Packages {
    let all = FAMILIES.family.iter().map(|family| &family.packages);
    all.into_iter().find(|packages| packages.manager == manager).expect("a test finds each")
}

impl Packages {
    /// The commands that install `names`, in order.
    pub fn install(&self, names: &[String]) -> Vec<Vec<String>> {
        let words = |word: &String| if word == PACKAGES { names.to_vec() } else { vec![word.clone()] };
        self.commands.iter().map(|command| command.argv.iter().flat_map(words).collect()).collect()
    }
}
