use super::key::KeyContext;
use super::*;

fn plan() -> Plan {
    serde_json::from_value(serde_json::json!({
        "format": 1, "name": "ninja", "version": "1.13.2",
        "platform": {"os": "linux", "arch": "x86_64", "libc": "glibc"},
        "downloads": [{
            "source": "pypi", "name": "ninja", "version": "1.13.2", "file": "ninja.whl",
            "sha256": "00".repeat(32), "size": 180_000,
        }],
        "steps": [
            {"action": "download_file", "file": "ninja.whl", "to": "ninja.whl"},
            {"action": "extract", "archive": "ninja.whl", "format": "zip", "to": "wheel"},
            {"action": "install_binaries",
             "files": [{"from": "wheel/ninja/bin/ninja", "to": "bin/ninja"}], "executables": ["bin/ninja"]},
        ],
        "verify": [{"command": ["ninja", "--version"], "patterns": ["1.13.2"]}],
        "provides": {"binaries": ["bin/ninja"]},
    }))
    .unwrap()
}

fn faults(plan: &Plan) -> String {
    plan.check().map_or_else(|error| error.to_string(), |()| "nothing".to_owned())
}

#[test]
fn a_plan_is_read_as_it_was_written() {
    let plan = plan();
    assert_eq!(faults(&plan), "nothing");
    assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
    assert_eq!(plan.place().to_string(), "/opt/sandtable/tools/ninja-1.13.2");
    assert_eq!(plan.search(), vec![plan.place().join("bin")]);
}

#[test]
fn the_canonical_form_does_not_depend_on_the_order_of_keys() {
    let plan = plan();
    let text = plan.to_json();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let again: Plan = serde_json::from_value(value).unwrap();
    assert_eq!(again.canonical(), plan.canonical());
    assert!(!String::from_utf8(plan.canonical()).unwrap().contains(": "));
}

#[test]
fn whatever_changes_the_result_changes_the_key() {
    let here = KeyContext { root_digest: "a", executor_version: 1 };
    let plan = plan();
    let mut keys = vec![
        plan.key(here),
        plan.key(KeyContext { root_digest: "b", ..here }),
        plan.key(KeyContext { executor_version: 2, ..here }),
    ];
    let mut other = plan.clone();
    other.downloads[0].sha256 = Sha256([1; 32]);
    keys.push(other.key(here));
    keys.push(
        Plan { dependencies: vec![Plan { name: "a".parse().unwrap(), ..plan.clone() }], ..plan.clone() }
            .key(here),
    );
    keys.push(
        Plan { dependencies: vec![Plan { name: "a".parse().unwrap(), ..other }], ..plan.clone() }.key(here),
    );
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count);
    assert_eq!(plan.key(here), plan.clone().key(here));
}

#[test]
fn dependencies_come_before_their_dependents_and_once() {
    let named =
        |name: &str, dependencies: Vec<Plan>| Plan { name: name.parse().unwrap(), dependencies, ..plan() };
    let leaf = named("leaf", vec![]);
    let top = named("top", vec![named("a", vec![leaf.clone()]), named("b", vec![leaf.clone()]), leaf]);
    let order: Vec<&str> = top.leaves_first().iter().map(|plan| plan.name.as_str()).collect();
    assert_eq!(order, ["leaf", "a", "b", "top"]);
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let mut bad = plan();
    bad.format = 9;
    bad.downloads.push(bad.downloads[0].clone());
    bad.downloads[0].url = Some("https://example.org/x".to_owned());
    bad.provides.env.insert("LD_PRELOAD".to_owned(), "x".to_owned());
    bad.provides.needs.insert("zig".parse().unwrap());
    bad.steps.push(Step::DownloadFile { file: "no".parse().unwrap(), to: "no".parse().unwrap() });
    let inner = Plan { name: "inner".parse().unwrap(), dependencies: vec![plan()], ..plan() };
    bad.dependencies.push(inner);
    let text = faults(&bad);
    for part in [
        "format 9",
        "two downloads",
        "has an address",
        "`LD_PRELOAD`",
        "needs `zig`",
        "takes `no`",
        "ninja → inner: `ninja` depends on itself",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn nesting_has_an_end() {
    let mut deep = plan();
    for number in 0..check::DEEPEST {
        deep = Plan { name: format!("p{number}").parse().unwrap(), dependencies: vec![deep], ..plan() };
    }
    assert!(faults(&deep).contains("nested deeper"), "{}", faults(&deep));
    let many =
        (0..check::MOST_PLANS).map(|number| Plan { name: format!("p{number}").parse().unwrap(), ..plan() });
    assert!(faults(&Plan { dependencies: many.collect(), ..plan() }).contains("more than 100"));
}

#[test]
fn unknown_words_and_composites_are_refused() {
    for (from, to) in [
        ("\"format\": 1,", "\"format\": 1, \"extra\": 1,"),
        ("download_file", "download"),
        ("\"strip\"", "\"strips\""),
        ("bin/ninja", "../ninja"),
        ("ninja.whl", "/etc/passwd"),
        ("1.13.2", "../1"),
    ] {
        let text = plan()
            .to_json()
            .replace("\"to\": \"wheel\"", "\"to\": \"wheel\", \"strip\": 1")
            .replace(from, to);
        assert!(Plan::from_json(&text).is_err(), "{from} → {to}");
    }
}

#[test]
fn a_patch_names_a_file_or_is_written_out() {
    let read = |patch: &str| {
        let text = format!(r#"{{"action": "apply_patch", "patch": {patch}, "strip": 1}}"#);
        serde_json::from_str::<Step>(&text)
    };
    for good in [r#"{"file": "a.patch"}"#, r#"{"data": "--- a\n+++ b\n"}"#] {
        let step = read(good).unwrap();
        assert_eq!(serde_json::from_str::<Step>(&serde_json::to_string(&step).unwrap()).unwrap(), step);
    }
    for bad in [r#"{"file": "../a.patch"}"#, r#"{"url": "x"}"#, r#"{"file": "a", "data": "b"}"#] {
        assert!(read(bad).is_err(), "{bad}");
    }
}
