//! What differs between two plans, by the places of what is in them.
//!
//! Lists of things that have names are compared by name, not by position: a dependency that moved is no change.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::Plan;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Where, as in `dependencies[cmake].downloads[cmake.whl].sha256`.
    pub place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// Everything that differs, in the order of places.
pub fn diff(old: &Plan, new: &Plan) -> Vec<Change> {
    let (old, new) = (leaves(old), leaves(new));
    let mut places: Vec<&String> = old.keys().chain(new.keys()).collect();
    places.sort();
    places.dedup();
    let change = |place: &String| {
        let (old, new) = (old.get(place), new.get(place));
        (old != new).then(|| Change { place: place.clone(), old: old.cloned(), new: new.cloned() })
    };
    places.into_iter().filter_map(change).collect()
}

fn leaves(plan: &Plan) -> BTreeMap<String, String> {
    let value = serde_json::to_value(plan).expect("a plan has only keys that are text");
    let mut found = BTreeMap::new();
    collect(&value, String::new(), &mut found);
    found
}

fn collect(value: &Value, place: String, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
                collect(field, place, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                // Files have unique names in a plan, and so have dependencies; a step has neither.
                let name =
                    if item.get("action").is_some() { None } else { item.get("file").or(item.get("name")) };
                let key = name.and_then(Value::as_str).map_or_else(|| index.to_string(), str::to_owned);
                collect(item, format!("{place}[{key}]"), found);
            }
        }
        Value::String(text) => drop(found.insert(place, text.clone())),
        other => drop(found.insert(place, other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn only_what_differs_is_named_and_order_is_no_difference() {
        let make = |dependencies: &str, version: &str| {
            plan(&format!(
                r#"{{"format": 1, "name": "a", "version": "{version}",
                "platform": {{"os": "linux", "arch": "x86_64", "libc": "glibc"}},
                "steps": [], "provides": {{}}, "dependencies": [{dependencies}]}}"#
            ))
        };
        let leaf =
            |name: &str, version: &str| make("", version).to_json().replace("\"a\"", &format!("\"{name}\""));
        let two = |b: &str, c: &str| format!("{},{}", leaf("b", b), leaf("c", c));
        let turned = format!("{},{}", leaf("c", "1"), leaf("b", "1"));
        assert_eq!(diff(&make(&two("1", "1"), "1"), &make(&turned, "1")), []);
        let found = diff(&make(&two("1", "1"), "1"), &make(&two("1", "2"), "3"));
        let places: Vec<&str> = found.iter().map(|change| change.place.as_str()).collect();
        assert_eq!(places, ["dependencies[c].version", "version"]);
        let found = diff(&make(&leaf("b", "1"), "1"), &make("", "1"));
        assert!(
            found.iter().all(|change| change.new.is_none() && change.place.starts_with("dependencies[b]."))
        );
    }
}
