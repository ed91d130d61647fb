//! Defaults and profiles, read from the table `profiles.toml` that is part of the executable.

use std::collections::BTreeMap;

use sandtable_sandbox::model::setting::Origin;
use sandtable_sandbox::model::spec::Profile;
use serde::Deserialize;

use super::key::Key;
use super::layer::Layer;
use super::value::Raw;

/// One line of the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    value: Value,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers; a test refuses a line without one"))]
    reason: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Switch(bool),
    Word(String),
}

/// What holds when nobody says anything.
pub(crate) fn defaults() -> Layer {
    layer(Profile::None, &Origin::Default)
}

/// What a profile says. No profile says nothing.
pub(crate) fn profile(profile: Profile) -> Layer {
    match profile {
        Profile::None => Layer::default(),
        named => layer(named, &Origin::Profile { name: named.to_string() }),
    }
}

fn layer(profile: Profile, origin: &Origin) -> Layer {
    let mut layer = Layer::default();
    for (word, line) in table().remove(profile.word()).expect("the table has every profile") {
        let key = Key::from_word(&word).expect("the table names settings only");
        let raw = match line.value {
            Value::Switch(on) => Raw::Switch(on),
            Value::Word(word) => Raw::Text(word.into()),
        };
        layer.set(key, raw, origin).expect("the table has known values only");
    }
    layer
}

fn table() -> BTreeMap<String, BTreeMap<String, Line>> {
    let table = include_str!(concat!(env!("OUT_DIR"), "/profiles.json"));
    serde_json::from_str(table).expect("the table is part of the executable and tested")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_reason_and_every_table_is_a_profile() {
        for (name, lines) in table() {
            assert!(name.parse::<Profile>().is_ok(), "{name}");
            for (key, line) in lines {
                assert!(line.reason.len() > 10, "{name}.{key}");
            }
        }
    }

    #[test]
    fn the_table_is_the_one_of_the_interface() {
        let row = |profile_name: Profile| {
            let layer = profile(profile_name).or(defaults());
            [Key::Network, Key::SshAgent, Key::GitConfig, Key::Secrets, Key::Cpus, Key::Memory, Key::Pids]
                .map(|key| layer.shown(key))
                .join(" ")
        };
        let rows: Vec<String> =
            Profile::ALL.iter().map(|profile| format!("{profile}: {}", row(*profile))).collect();
        insta::assert_snapshot!(rows.join("\n"), @r"
        none: none auto literal warn nothing nothing nothing
        dev: nat auto literal warn 2 4g 256
        safe: none off sanitized mask 2 4g 128
        tight: none off sanitized mask 1 2g 64
        offline: none off literal mask 2 4g 128
        ");
    }
}
