//! Defaults and profiles: those of the table `profiles.toml`, which is part of the executable, and those that
//! configuration files define beside them.

use std::collections::BTreeMap;

use sandtable_sandbox::model::profile::{BuiltIn, Profile};
use sandtable_sandbox::model::setting::Origin;
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
pub(super) fn defaults() -> Layer {
    let mut layer = Layer::default();
    for key in Key::ALL {
        let Some(default) = key.row().default else { continue };
        let raw = Raw::from_variable(key.kind(), default.value.into());
        raw.and_then(|raw| layer.set(*key, raw, &Origin::Default)).expect("the table has known values only");
    }
    layer
}

/// The profiles that files define.
pub(super) type Defined = BTreeMap<Profile, Layer>;

/// What a profile says, `None` if there is no such profile. No profile says nothing. Ours cannot be redefined.
pub(super) fn profile(profile: &Profile, defined: &Defined) -> Option<Layer> {
    match profile.built_in() {
        Some(BuiltIn::None) => Some(Layer::default()),
        Some(ours) => Some(layer(ours, &Origin::Profile { name: ours.to_string() })),
        None => defined.get(profile).cloned(),
    }
}

/// The names of all profiles there are.
pub(super) fn names(defined: &Defined) -> Vec<String> {
    let ours = BuiltIn::ALL.iter().map(ToString::to_string);
    ours.chain(defined.keys().map(ToString::to_string)).collect()
}

fn layer(profile: BuiltIn, origin: &Origin) -> Layer {
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
            assert!(name.parse::<BuiltIn>().is_ok(), "{name}");
            for (key, line) in lines {
                assert!(line.reason.len() > 10, "{name}.{key}");
            }
        }
    }

    #[test]
    fn the_table_is_the_one_of_the_interface() {
        let row = |ours: BuiltIn| {
            let layer = profile(&ours.into(), &Defined::new()).expect("one of ours").or(defaults());
            [Key::Network, Key::SshAgent, Key::GitConfig, Key::Secrets, Key::Cpus, Key::Memory, Key::Pids]
                .map(|key| layer.shown(key))
                .join(" ")
        };
        let rows: Vec<String> =
            BuiltIn::ALL.iter().map(|profile| format!("{profile}: {}", row(*profile))).collect();
        insta::assert_snapshot!(rows.join("\n"), @r"
        none: none auto literal warn nothing nothing nothing
        dev: nat auto literal warn 2 4g 256
        safe: none off sanitized mask 2 4g 128
        tight: none off sanitized mask 1 2g 64
        offline: none off literal mask 2 4g 128
        ");
    }
}
