//! Policy as data: every line names something and says why it is there.

use std::path::PathBuf;

use serde::Deserialize;

/// A name or pattern and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reasoned {
    pub name: String,
    pub reason: String,
}

/// A path and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReasonedPath {
    pub(super) path: PathBuf,
    pub(super) reason: String,
}

/// A policy file that is part of the program, by its name without ending. The build script made it JSON.
macro_rules! policy {
    ($name:literal) => {
        $crate::resolve::data::parsed(include_str!(concat!(env!("OUT_DIR"), "/", $name, ".json")))
    };
}

pub(super) use policy;

/// Reads a policy file that is part of the program.
pub(super) fn parsed<T: for<'a> Deserialize<'a>>(json: &'static str) -> T {
    serde_json::from_str(json).expect("every policy file is read by a test")
}

#[cfg(test)]
mod tests {

    const FILES: &[(&str, &str)] = &[
        ("agents", include_str!("agents.toml")),
        ("environment", include_str!("environment.toml")),
        ("expose", include_str!("expose.toml")),
        ("filesystems", include_str!("filesystems.toml")),
        ("flags", include_str!("flags.toml")),
        ("gitconfig", include_str!("gitconfig.toml")),
        ("gitcredentials", include_str!("gitcredentials.toml")),
        ("macos", include_str!("macos.toml")),
        ("mounts", include_str!("mounts.toml")),
        ("secrets", include_str!("secrets.toml")),
        ("system", include_str!("system.toml")),
        ("toolchains", include_str!("toolchains.toml")),
    ];

    fn without_reason(table: &toml::Table) -> Vec<String> {
        let entries = table.values().filter_map(toml::Value::as_array).flatten();
        let reason = |entry: &toml::Value| {
            entry.get("reason").and_then(toml::Value::as_str).is_some_and(|text| text.len() > 5)
        };
        entries.filter(|entry| !reason(entry)).map(|entry| format!("{entry:?}")).collect()
    }

    #[test]
    fn every_line_of_policy_has_a_reason() {
        for (name, text) in FILES {
            let table: toml::Table = toml::from_str(text).unwrap();
            assert!(!table.is_empty());
            assert_eq!(without_reason(&table), Vec::<String>::new(), "{name}.toml");
        }
    }

    #[test]
    fn a_line_without_a_reason_is_found() {
        let table = toml::from_str("a = [{ name = \"x\" }, { name = \"y\", reason = \"because\" }]").unwrap();
        assert_eq!(without_reason(&table).len(), 1);
    }
}
