//! Attacks of the lists that no probe on this engine can show, each with the reason (`out_of_scope.toml`).
//! `docs/threat-model.md` prints them.

use serde::Deserialize;

/// The table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutOfScope {
    pub attack: Vec<Entry>,
}

/// One attack.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub id: String,
    /// What the attack is, in a few words.
    pub what: String,
    pub reason: String,
}

/// # Panics
/// If the table is broken.
pub fn table() -> OutOfScope {
    toml::from_str(include_str!("out_of_scope.toml")).expect("the table is checked by a test")
}

/// The table as the lines of a Markdown list.
pub fn markdown() -> String {
    let line = |entry: Entry| format!("- `{}` {}: {}\n", entry.id, entry.what, entry.reason);
    table().attack.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_says_why() {
        for entry in table().attack {
            assert!(!entry.what.is_empty() && entry.reason.len() > 20, "{}", entry.id);
            assert!(entry.id.starts_with("box/"), "{}", entry.id);
        }
    }
}
