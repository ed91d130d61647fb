//! How often a test repeats itself, from one table (`counts.toml`), so that no number shrinks unseen.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::require;

/// One row of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    pub sampled: u32,
    pub long: u32,
    /// What the issue asks for; `long` is never less.
    pub asked: u32,
    pub why: String,
}

/// The whole table.
///
/// # Panics
/// If the table is broken.
pub fn table() -> BTreeMap<String, Count> {
    toml::from_str(include_str!("counts.toml")).expect("the table is checked by a test")
}

/// How often, in this run: `SANDTABLE_LONG=1` asks for the long number.
///
/// # Panics
/// If the table has no such row.
pub fn of(what: &str) -> u32 {
    let row = table().remove(what).unwrap_or_else(|| panic!("no row `{what}` in counts.toml"));
    if is_long() { row.long } else { row.sampled }
}

/// Whether the full counts are asked for.
pub fn is_long() -> bool {
    require::variable("SANDTABLE_LONG").as_deref() == Some("1")
}
