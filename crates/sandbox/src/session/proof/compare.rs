//! Two proofs, field by field.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{Proof, canonical};
use crate::model::choice::choice;

/// A field that is not the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Its place, like `exit.code`.
    pub field: String,
    /// `None` where it was not there.
    pub was: Option<String>,
    pub is: Option<String>,
    pub weight: Weight,
}

choice! {
    /// Whether a difference means that the proof does not hold.
    Weight { Decides = "decides", Noted = "noted" }
}

/// What differs from one run to the next by itself.
const OWN: [&str; 4] = ["at_ms", "sha256", "policy.digest", "follows"];
/// What may differ while everything that was proven is the same.
const NOTED: &str = "machine";

/// Every field in which two proofs differ, by its name.
pub fn compare(old: &Proof, new: &Proof) -> Vec<Field> {
    let (old, new) = (flat(&old.value()), flat(&new.value()));
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let differs =
        |name: &&&String| !OWN.iter().any(|own| is_within(name, own)) && old.get(**name) != new.get(**name);
    names
        .iter()
        .filter(differs)
        .map(|name| Field {
            field: (*name).clone(),
            was: old.get(*name).cloned(),
            is: new.get(*name).cloned(),
            weight: if is_within(name, NOTED) { Weight::Noted } else { Weight::Decides },
        })
        .collect()
}

fn is_within(name: &str, above: &str) -> bool {
    name.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Every value with its place. A list is one value: its items have no names.
fn flat(value: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![(String::new(), value)];
    while let Some((place, value)) = open.pop() {
        match value {
            Value::Object(members) => open.extend(members.iter().map(|(name, value)| {
                (if place.is_empty() { name.clone() } else { format!("{place}.{name}") }, value)
            })),
            other => {
                found.insert(place, canonical(other));
            }
        }
    }
    found
}
