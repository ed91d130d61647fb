//! What we depend on, and who depends on whom.

use std::collections::{BTreeMap, BTreeSet};

use sandtable_testkit::process::Run;
use sandtable_testkit::require::{skip, variable, workspace};

use super::{Source, assert_none, sources};

const MOST_PACKAGES: usize = 220;

/// Packages of which two versions are there, and why nothing can be done about it.
const TWICE: [(&str, &str); 5] = [
    ("syn", "serde and thiserror have moved on, clap and landlock have not"),
    (
        "cpufeatures",
        "the newer one is there for proptest alone; the hash with collision detection has the older",
    ),
    ("getrandom", "the older one is there for ring, the newer one for tempfile and proptest"),
    ("windows-sys", "the older one is there for ring, and neither is built on a system that we support"),
    (
        "hashbrown",
        "the line diff has not moved on; the newer one is locked for a feature that is off, and never built",
    ),
];

#[test]
fn crates_depend_only_downwards() {
    let may: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("store", &[][..]),
        ("bench", &[]),
        ("protocol", &[]),
        ("egress", &[]),
        ("launch", &["protocol"]),
        ("unpack", &["store"]),
        ("sandbox", &["store", "unpack", "protocol", "launch"]),
        ("tools", &["store", "unpack", "protocol", "launch", "sandbox"]),
        ("merge", &["store", "protocol", "launch", "sandbox"]),
        ("app", &["store", "protocol", "launch", "sandbox", "tools", "merge"]),
        ("cli", &["app", "tools", "merge", "sandbox", "protocol", "launch"]),
        ("testkit", &["store", "unpack", "protocol", "launch", "sandbox", "tools", "merge", "app"]),
    ]);
    let mut found = Vec::new();
    for (name, manifest) in manifests() {
        let allowed =
            may.get(name.as_str()).unwrap_or_else(|| panic!("crate `{name}` has no place in the order"));
        for section in ["dependencies", "build-dependencies"] {
            let ours = keys(&manifest, section)
                .into_iter()
                .filter_map(|key| Some(key.strip_prefix("sandtable-")?.to_owned()));
            let wrong = ours.filter(|other| !allowed.contains(&other.as_str()));
            found.extend(wrong.map(|other| format!("{name} uses {other}")));
        }
    }
    assert_none("a dependency against the order", &found);
}

#[test]
fn fail_points_are_never_on_by_themselves() {
    let mut found = Vec::new();
    for (name, manifest) in manifests() {
        let features = manifest.get("features").and_then(toml::Value::as_table).cloned().unwrap_or_default();
        let text = |value: &toml::Value| format!("{value:?}").contains("failpoints");
        found.extend(
            features.get("default").filter(|value| text(value)).map(|_| format!("{name}: default features")),
        );
        let others = features.iter().filter(|(feature, value)| *feature != "failpoints" && text(value));
        found.extend(others.map(|(feature, _)| format!("{name}: feature `{feature}`")));
        let dependencies = manifest.get("dependencies").map(|value| format!("{value:?}")).unwrap_or_default();
        found.extend(dependencies.contains("failpoints").then(|| format!("{name}: a dependency")));
    }
    let top: toml::Table = fs_err::read_to_string(workspace().join("Cargo.toml")).unwrap().parse().unwrap();
    let top = format!("{:?}", top["workspace"]["dependencies"]);
    found.extend(top.contains("failpoints").then(|| "the workspace's dependencies".to_owned()));
    assert_none("fail points without being asked for", &found);
}

#[test]
fn packages_are_few_and_there_once() {
    let lock: toml::Table = fs_err::read_to_string(workspace().join("Cargo.lock")).unwrap().parse().unwrap();
    let packages = lock["package"].as_array().unwrap();
    assert!(packages.len() <= MOST_PACKAGES, "{} packages, at most {MOST_PACKAGES}", packages.len());

    let mut seen = BTreeSet::new();
    let names = packages.iter().map(|package| package["name"].as_str().unwrap());
    let twice: BTreeSet<&str> = names.filter(|name| !seen.insert(*name)).collect();
    let known: BTreeSet<&str> = TWICE.iter().map(|(name, _)| *name).collect();
    let new: Vec<String> = twice.difference(&known).map(|name| (*name).to_owned()).collect();
    assert_none("packages in two versions", &new);
    let gone: Vec<String> = known.difference(&twice).map(|name| (*name).to_owned()).collect();
    assert_none("no longer in two versions, so no longer to be listed", &gone);
}

#[test]
fn licences_are_those_we_know() {
    let Some(metadata) = metadata() else { return skip("cargo cannot tell about packages here") };
    let deny = fs_err::read_to_string(workspace().join("deny.toml")).unwrap();
    let allowed = allowed_licences(&deny);
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 5, "cargo knows of {} packages only", packages.len());
    let found: Vec<String> = packages
        .iter()
        .map(|package| (package["name"].as_str().unwrap(), package["license"].as_str().unwrap_or("none")))
        .filter(|(_, licence)| !is_fine(licence, &allowed))
        .map(|(name, licence)| format!("{name}: {licence}"))
        .collect();
    assert_none("a licence that deny.toml does not allow", &found);
}

/// The list that `cargo deny` reads as well.
fn allowed_licences(deny: &str) -> Vec<String> {
    let deny: toml::Table = deny.parse().unwrap();
    let allowed = deny["licenses"]["allow"].as_array().unwrap();
    allowed.iter().map(|licence| licence.as_str().unwrap().to_owned()).collect()
}

/// Whether one of the choices consists of allowed licences only.
fn is_fine(expression: &str, allowed: &[String]) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    let is_allowed = |choice: &str| allowed.iter().any(|licence| licence == choice.trim());
    // `(A OR B) AND C` without its parentheses: every part joined by AND needs one good choice.
    plain.split(" AND ").all(|part| part.split(" OR ").any(is_allowed))
}

#[test]
fn a_licence_is_judged_by_its_choices() {
    let allowed = allowed_licences("[licenses]\nallow = ['MIT', 'Unicode-3.0']");
    for fine in ["MIT OR GPL-3.0", "(MIT OR Apache-2.0) AND Unicode-3.0", "MIT/Apache-2.0"] {
        assert!(is_fine(fine, &allowed), "{fine}");
    }
    for wrong in ["GPL-3.0", "MIT AND GPL-3.0", "none", "Apache-2.0"] {
        assert!(!is_fine(wrong, &allowed), "{wrong}");
    }
}

fn metadata() -> Option<serde_json::Value> {
    let run = ["HOME", "PATH", "CARGO_HOME", "RUSTUP_HOME"].iter().fold(
        Run::new(variable("CARGO")?, &workspace()),
        |run, name| match variable(name) {
            Some(value) => run.variable(name, value),
            None => run,
        },
    );
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let args = ["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform"];
    let ended = run.args(args).arg(target).ended();
    serde_json::from_str(&ended.stdout).ok()
}

/// Our crates by folder name, with what their manifests say.
fn manifests() -> Vec<(String, toml::Table)> {
    let parse = |file: &Source| {
        let folder = file.path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        (folder, file.text.parse().unwrap())
    };
    sources("toml").iter().filter(|file| file.path.ends_with("Cargo.toml")).map(parse).collect()
}

fn keys(manifest: &toml::Table, section: &str) -> Vec<String> {
    manifest
        .get(section)
        .and_then(toml::Value::as_table)
        .map(|table| table.keys().cloned().collect())
        .unwrap_or_default()
}
