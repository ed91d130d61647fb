//! The programs of the system that every step sees.

use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Base {
    commands: Vec<Group>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    names: Vec<String>,
    #[serde(rename = "reason")]
    _reason: String,
}

static BASE: LazyLock<Base> =
    LazyLock::new(|| toml::from_str(include_str!("base.toml")).expect("a test reads it"));

/// Their names.
pub fn base_commands() -> impl Iterator<Item = &'static str> {
    BASE.commands.iter().flat_map(|group| group.names.iter().map(String::as_str))
}
