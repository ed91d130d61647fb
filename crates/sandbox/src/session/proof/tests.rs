use serde_json::{Value, json};

use super::*;
use crate::model::diagnosis::Diagnose as _;
use crate::model::resolved::EngineName;
use crate::model::spec::{Network, Secrets};
use crate::session::record::ExitOrigin;

fn id(digit: char) -> ObjectId {
    digit.to_string().repeat(40).parse().unwrap()
}

fn proof() -> Proof {
    let policy = Policy {
        digest: "d".to_owned(),
        engine: EngineName::ALL[0],
        image: None,
        directory: "/r".to_owned(),
        network: Network::None,
        secrets: Secrets::Warn,
        hide: Vec::new(),
        limits: BTreeMap::new(),
        mounts: [("/r".to_owned(), "the state".to_owned())].into(),
        tools: BTreeMap::new(),
        tools_made_on: BTreeMap::new(),
        environment: [("PATH".to_owned(), Some("/bin".to_owned())), ("KEY".to_owned(), None)].into(),
    };
    Proof {
        schema: SCHEMA,
        snap_sha: id('1'),
        tree: id('2'),
        state: "3".repeat(64),
        before: Some(id('4')),
        diff: Some(Difference::default()),
        command: vec!["make".to_owned(), "\u{e9}\"\n".to_owned()],
        policy,
        enforcement: [(Control::Seccomp, Observed::Enforced)].into(),
        machine: Machine {
            system: "linux".to_owned(),
            kernel: "6.1".to_owned(),
            architecture: "x86_64".to_owned(),
            sandtable: "0".to_owned(),
        },
        exit: Exit { code: 0, signal: None, origin: ExitOrigin::Command },
        stdout_sha256: sha256(b""),
        stderr_sha256: sha256(b""),
        after: After { tree: id('5'), state: "6".repeat(64) },
        at_ms: 7,
        follows: Link { number: 8, hash: "9".repeat(64) },
        sha256: String::new(),
    }
    .sealed()
}

#[test]
fn a_proof_is_read_as_it_was_written_however_it_is_laid_out() {
    let proof = proof();
    let canonical = proof.canonical();
    assert_eq!(Proof::read(canonical.as_bytes()).unwrap(), proof);
    let value: Value = serde_json::from_str(&canonical).unwrap();
    assert_eq!(Proof::read(format!("{value:#}\n").as_bytes()).unwrap().canonical(), canonical);
}

#[test]
fn there_is_one_canonical_form() {
    let value: Value =
        serde_json::from_str("{ \"b\": [1, {\"z\": null, \"a\": \"\\u00e9\"}], \"a\": true }").unwrap();
    assert_eq!(canonical(&value), "{\"a\":true,\"b\":[1,{\"a\":\"\u{e9}\",\"z\":null}]}");
}

/// Every value of a proof, by its place.
fn places(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            members.iter().for_each(|(name, value)| {
                places(value, &format!("{place}/{}", name.replace('/', "~1")), found);
            });
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(at, value)| places(value, &format!("{place}/{at}"), found));
        }
        _ => found.push(place.to_owned()),
    }
}

#[test]
fn whatever_is_changed_in_a_proof_is_noticed() {
    let value: Value = serde_json::from_str(&proof().canonical()).unwrap();
    let mut all = Vec::new();
    places(&value, "", &mut all);
    assert!(all.len() > 30, "{all:?}");
    for place in all {
        let mut changed = value.clone();
        let at = changed.pointer_mut(&place).unwrap();
        *at = match &*at {
            Value::String(text) if text.len() == 40 => text.replace(&text[..1], "a").into(),
            Value::String(text) => format!("{text}x").into(),
            Value::Number(number) => (number.as_i64().unwrap() + 1).into(),
            Value::Bool(truth) => (!truth).into(),
            Value::Array(_) => json!(["x"]),
            Value::Object(_) => json!({ "x": "y" }),
            Value::Null => "x".into(),
        };
        let read = Proof::read(changed.to_string().as_bytes());
        assert!(read.is_err(), "{place} may be anything: {changed}");
    }
    // Somebody who does it right is found out by the operations of the store.
    let forged = Proof { exit: Exit { code: 1, ..proof().exit }, ..proof() }.sealed();
    assert!(Proof::read(forged.canonical().as_bytes()).is_ok());
}

#[test]
fn what_is_no_proof_is_told_from_a_false_one() {
    for text in ["", "{}", "[]", "{\"schema\": 2}", "{\"schema\": 1}"] {
        let error = Proof::read(text.as_bytes()).unwrap_err();
        assert!(!error.is_false() && error.code() == "not-a-proof", "{text}: {error}");
    }
    let more = proof().canonical().replacen('{', "{\"more\":1,", 1);
    assert!(matches!(Proof::read(more.as_bytes()), Err(ProofError::Malformed(_))));
    let changed = proof().canonical().replace("\"code\":0", "\"code\":1");
    assert!(Proof::read(changed.as_bytes()).unwrap_err().is_false());
}

#[test]
fn every_field_that_differs_is_named() {
    let old = proof();
    assert_eq!(compare(&old, &Proof { at_ms: 9, ..old.clone() }.sealed()), []);
    let mut new = old.clone();
    new.exit.code = 2;
    new.command = vec!["make".to_owned()];
    new.machine.kernel = "6.2".to_owned();
    new.policy.environment.remove("KEY");
    new.policy.mounts.insert("/more".to_owned(), "empty".to_owned());
    let named: Vec<(String, Weight)> =
        compare(&old, &new).into_iter().map(|field| (field.field, field.weight)).collect();
    let expected = [
        ("command", Weight::Decides),
        ("exit.code", Weight::Decides),
        ("machine.kernel", Weight::Noted),
        ("policy.environment.KEY", Weight::Decides),
        ("policy.mounts./more", Weight::Decides),
    ];
    assert_eq!(named, expected.map(|(name, weight)| (name.to_owned(), weight)));
    let code = compare(&old, &new).into_iter().find(|field| field.field == "exit.code").unwrap();
    assert_eq!((code.was.as_deref(), code.is.as_deref()), (Some("0"), Some("2")));
}
