//! The hosts of a rule: one name, the names below one, or a network.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::address::Cidr;
use crate::name::{Host, HostName};

use super::RuleFault;

/// Which hosts a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum HostPattern {
    /// `name`: this name alone.
    Exact(HostName),
    /// `*.name`: every name below it, at any depth, and not itself.
    Below(HostName),
    /// `.name`: it and every name below it.
    Within(HostName),
    Network(Cidr),
}

impl HostPattern {
    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Exact(own), Host::Name(name)) => own == name,
            (Self::Below(base), Host::Name(name)) => name.is_below(base),
            (Self::Within(base), Host::Name(name)) => name == base || name.is_below(base),
            (Self::Network(network), Host::Address(address)) => network.contains(*address),
            _ => false,
        }
    }

    /// The name that a pattern with more than one name is built on.
    pub fn wildcard_base(&self) -> Option<&HostName> {
        match self {
            Self::Below(base) | Self::Within(base) => Some(base),
            _ => None,
        }
    }
}

impl FromStr for HostPattern {
    type Err = RuleFault;

    /// Reads the form; whether it is too wide for a rule that allows is asked afterwards.
    fn from_str(text: &str) -> Result<Self, RuleFault> {
        if let Some(base) = text.strip_prefix("**.") {
            return Err(RuleFault::DoubleStar { base: base.to_owned() });
        }
        if let Some(base) = text.strip_prefix("*.") {
            return name(base).map(Self::Below);
        }
        if let Some(base) = text.strip_prefix('.') {
            return name(base).map(Self::Within);
        }
        if text.contains('*') {
            return Err(star(text));
        }
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(network) = inner.parse() {
            return Ok(Self::Network(network));
        }
        if inner.contains('/') {
            return inner.parse::<Cidr>().map(Self::Network).map_err(RuleFault::Network);
        }
        match text.parse::<Host>().map_err(RuleFault::Name)? {
            Host::Name(name) => Ok(Self::Exact(name)),
            Host::Address(address) => Err(RuleFault::OddAddress { address }),
        }
    }
}

fn name(text: &str) -> Result<HostName, RuleFault> {
    if text.contains('*') {
        return Err(star(text));
    }
    text.parse().map_err(RuleFault::Name)
}

fn star(text: &str) -> RuleFault {
    let base = text.rsplit('*').next().and_then(|rest| rest.split_once('.')).map(|(_, base)| base.to_owned());
    if text == "*" { RuleFault::Everything } else { RuleFault::PartialStar { base } }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => name.fmt(f),
            Self::Below(base) => write!(f, "*.{base}"),
            Self::Within(base) => write!(f, ".{base}"),
            Self::Network(network) if network.base().is_ipv6() => write!(f, "[{network}]"),
            Self::Network(network) => network.fmt(f),
        }
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}

impl TryFrom<String> for HostPattern {
    type Error = RuleFault;

    fn try_from(text: String) -> Result<Self, RuleFault> {
        text.parse()
    }
}

/// `suffixes.toml`.
#[derive(Deserialize)]
struct Suffixes {
    second_level: Vec<SecondLevel>,
    shared: Vec<Shared>,
}

#[derive(Deserialize)]
struct SecondLevel {
    label: String,
}

#[derive(Deserialize)]
struct Shared {
    suffix: String,
}

static SUFFIXES: LazyLock<Suffixes> =
    LazyLock::new(|| toml::from_str(include_str!("../data/suffixes.toml")).expect("a test reads this file"));

/// Whether names below this one belong to whoever registers them: `com`, `co.uk`.
pub(super) fn is_public_suffix(name: &HostName) -> bool {
    let labels: Vec<&str> = name.labels().collect();
    match labels[..] {
        [_] => true,
        [second, top] => top.len() == 2 && SUFFIXES.second_level.iter().any(|it| it.label == second),
        _ => false,
    }
}

/// Whether names below this one belong to customers of a provider: `github.io`.
pub(crate) fn is_shared_hosting(name: &HostName) -> bool {
    let is_at_or_below = |suffix: &str| {
        let suffix: HostName = suffix.parse().expect("a test reads this file");
        *name == suffix
            || suffix.is_below(name)
            || (name.is_below(&suffix) && depth(name) <= depth(&suffix) + 1)
    };
    SUFFIXES.shared.iter().any(|it| is_at_or_below(&it.suffix))
}

fn depth(name: &HostName) -> usize {
    name.labels().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_suffixes_can_be_read() {
        assert!(SUFFIXES.shared.iter().all(|it| it.suffix.parse::<HostName>().is_ok()));
        assert!(SUFFIXES.second_level.iter().all(|it| !it.label.contains('.')));
    }
}
