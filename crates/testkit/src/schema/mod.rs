//! Holds the answers against the schemas in `docs/schema`, with as much of JSON Schema as those use. A
//! keyword that is not known here is an error, so that no schema promises what no test looks at.

mod findings;

pub use findings::findings;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

/// Checks that an answer has the shape its schema promises.
///
/// # Panics
/// If it has not, naming the place.
pub fn check(file: &str, answer: &impl Serialize) {
    let answer = serde_json::to_value(answer).expect("plain data");
    if let Err(why) = Schemas::default().matches(&read(file), &answer, "$") {
        panic!("{file}: {why}\n{answer:#}");
    }
}

fn read(file: &str) -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/");
    let text = fs_err::read_to_string(format!("{path}{file}")).expect("the schema is there");
    serde_json::from_str(&text).expect("a schema is JSON")
}

#[derive(Default)]
struct Schemas(BTreeMap<String, Value>);

impl Schemas {
    fn matches(&mut self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let Some(rules) = schema.as_object() else { return Err(format!("{at}: schema is no object")) };
        for (keyword, rule) in rules {
            let holds = match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" => true,
                "$ref" => {
                    let target = self.target(rule.as_str().expect("a reference is text"));
                    self.matches(&target, value, at)?;
                    true
                }
                "type" => rule == kind(value),
                "const" => rule == value,
                "enum" => rule.as_array().expect("a list").contains(value),
                "pattern" => value.as_str().is_none_or(|text| pattern(rule).is_match(text)),
                "maxLength" => value
                    .as_str()
                    .is_none_or(|text| text.chars().count() as u64 <= rule.as_u64().expect("a number")),
                "minimum" => value.as_i64() >= rule.as_i64(),
                "maximum" => value.as_i64() <= rule.as_i64(),
                "anyOf" => self.count(rule, value, at) >= 1,
                "oneOf" => self.count(rule, value, at) == 1,
                "items" => {
                    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.matches(rule, item, &format!("{at}[{i}]"))?;
                    }
                    true
                }
                "required" => {
                    let missing = rule.as_array().expect("a list").iter().find(|key| !has(value, key));
                    missing.map_or(Ok(true), |key| Err(format!("{at}: {key} is missing")))?
                }
                "properties" | "additionalProperties" | "propertyNames" => {
                    self.members(rules, value, at)?;
                    true
                }
                other => return Err(format!("{at}: keyword `{other}` is not known to this test")),
            };
            if !holds {
                return Err(format!("{at}: `{keyword}` does not hold: {rule} for {value}"));
            }
        }
        Ok(())
    }

    fn members(&mut self, rules: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
        for (key, member) in value.as_object().into_iter().flatten() {
            let at = format!("{at}.{key}");
            if let Some(schema) = rules.get("propertyNames") {
                self.matches(schema, &Value::from(key.as_str()), &at)?;
            }
            let named = rules.get("properties").and_then(|properties| properties.get(key));
            match named.or(rules.get("additionalProperties")) {
                Some(Value::Bool(false)) => return Err(format!("{at}: not in the schema")),
                Some(schema) => self.matches(schema, member, &at)?,
                None => {}
            }
        }
        Ok(())
    }

    fn count(&mut self, schemas: &Value, value: &Value, at: &str) -> usize {
        let schemas = schemas.as_array().expect("a list");
        schemas.iter().filter(|schema| self.matches(schema, value, at).is_ok()).count()
    }

    fn target(&mut self, reference: &str) -> Value {
        let (file, pointer) = reference.split_once('#').expect("a file and a place in it");
        let document = self.0.entry(file.to_owned()).or_insert_with(|| read(file));
        document.pointer(pointer).unwrap_or_else(|| panic!("`{reference}` leads nowhere")).clone()
    }
}

/// Schemas use the part of ECMA's expressions that every library knows.
fn pattern(rule: &Value) -> regex_lite::Regex {
    let text = rule.as_str().expect("a pattern is text");
    regex_lite::Regex::new(text).unwrap_or_else(|error| panic!("`{text}`: {error}"))
}

fn has(value: &Value, key: &Value) -> bool {
    key.as_str().is_some_and(|key| value.get(key).is_some())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "$.sandboxes[0].colour: not in the schema")]
    fn a_field_that_is_not_promised_is_found() {
        let entry = serde_json::json!({ "name": "a", "colour": "red" });
        check("ls.json", &serde_json::json!({ "schema": 1, "sandboxes": [entry] }));
    }

    #[test]
    fn every_keyword_is_looked_at_and_an_unknown_one_is_an_error() {
        let holds = |schema: Value, value: Value| Schemas::default().matches(&schema, &value, "$").is_ok();
        let json = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let id = json(r#"{ "type": "string", "pattern": "^[0-9a-f]{4}$" }"#);
        assert!(
            holds(id.clone(), "12af".into())
                && !holds(id.clone(), "12aF".into())
                && !holds(id, "12af0".into())
        );
        let short = json(r#"{ "maxLength": 2 }"#);
        assert!(holds(short.clone(), "äö".into()) && !holds(short, "abc".into()));
        assert!(!holds(json(r#"{ "uniqueItems": true }"#), json("[1]")));
    }
}
