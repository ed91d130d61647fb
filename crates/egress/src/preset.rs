//! Sets of rules with a name, as data: `@anthropic`, `@github`. A package manager is a set as well, and its hosts come from
//! the settings of the user's client, which the caller has read.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::rule::RuleFault;

/// One rule of a preset.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresetRule {
    pub rule: String,
    pub why: String,
}

/// A package manager.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ecosystem {
    /// The program whose settings name the hosts.
    pub client: String,
    pub why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hosts {
    host: Vec<PresetRule>,
}

#[derive(Deserialize)]
struct Ecosystems {
    ecosystem: BTreeMap<String, Ecosystem>,
}

/// Hosts by ecosystem, as the clients are set.
pub type ClientHosts = BTreeMap<String, Vec<String>>;

static HOSTS: LazyLock<BTreeMap<String, Hosts>> = LazyLock::new(|| {
    let read = |text| toml::from_str::<BTreeMap<String, Hosts>>(text).expect("a test reads this file");
    let mut all = read(include_str!("data/agents.toml"));
    all.extend(read(include_str!("data/hosts.toml")));
    all
});

static ECOSYSTEMS: LazyLock<BTreeMap<String, Ecosystem>> = LazyLock::new(|| {
    let read: Ecosystems =
        toml::from_str(include_str!("data/ecosystems.toml")).expect("a test reads this file");
    read.ecosystem
});

/// The names of all presets, in order.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = HOSTS.keys().chain(ECOSYSTEMS.keys()).map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// The package managers, so that a caller knows which clients to ask.
pub fn ecosystems() -> &'static BTreeMap<String, Ecosystem> {
    &ECOSYSTEMS
}

/// The rules behind a name (without its `@`).
pub fn rules(name: &str, clients: &ClientHosts) -> Result<Vec<PresetRule>, RuleFault> {
    if let Some(hosts) = HOSTS.get(name) {
        return Ok(hosts.host.clone());
    }
    let Some(ecosystem) = ECOSYSTEMS.get(name) else {
        let known = names().into_iter().map(|it| format!("@{it}")).collect();
        return Err(RuleFault::UnknownPreset { name: name.to_owned(), known });
    };
    let hosts = clients.get(name).filter(|hosts| !hosts.is_empty()).ok_or_else(|| {
        RuleFault::NoClientHosts { ecosystem: name.to_owned(), client: ecosystem.client.clone() }
    })?;
    let why = format!("from the settings of {}", ecosystem.client);
    Ok(hosts.iter().map(|host| PresetRule { rule: host.clone(), why: why.clone() }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{Action, Rule};

    #[test]
    fn every_rule_of_every_preset_is_a_rule() {
        for (name, hosts) in HOSTS.iter() {
            assert!(!ECOSYSTEMS.contains_key(name) && !hosts.host.is_empty(), "{name}");
            for preset in &hosts.host {
                Rule::parse(&preset.rule, Action::Allow, name).unwrap_or_else(|error| panic!("{error}"));
            }
        }
        assert!(names().contains(&"anthropic") && names().contains(&"npm"));
    }

    #[test]
    fn an_ecosystem_is_what_its_client_says() {
        let mirror = ClientHosts::from([("npm".to_owned(), vec!["mirror.example.org:8443".to_owned()])]);
        let rules = |clients| rules("npm", clients);
        assert_eq!(rules(&mirror).expect("hosts")[0].rule, "mirror.example.org:8443");
        let fault = rules(&ClientHosts::new()).expect_err("no hosts");
        assert_eq!(fault.to_string(), "the hosts of `@npm` come from the settings of `npm`, which name none");
    }
}
