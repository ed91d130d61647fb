//! Nothing of the caller's environment gets in that is not on the list.

use proptest::prelude::*;

use super::machines::ann;
use super::{host, spec};
use crate::resolve::{CARD_VARIABLE, environment_rules, resolve};

const MADE: &[&str] = &["GIT_DISCOVERY_ACROSS_FILESYSTEM", "HOME", "PATH", "SHELL", "TMPDIR", CARD_VARIABLE];

/// Names as they occur, and names that look like allowed ones.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Z_]{1,12}",
        "(LC_|XLC_|GIT_|LD_|DBUS_|SSH_|TERM|LANG|PATH|HOME|USER)[A-Z_]{0,6}",
        "[A-Z]{1,6}_(TOKEN|KEY|SECRET|PASSWORD)",
    ]
}

/// The list, read independently of the code under test.
fn listed(name: &str) -> bool {
    environment_rules().iter().any(|rule| match rule.name.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => rule.name == name,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn only_listed_variables_get_in(
        variables in proptest::collection::btree_map(name(), "[ -~]{1,10}", 0..20),
    ) {
        let mut host = host(1000, "/home/ann", "/usr/bin");
        host.environment.extend(variables);
        let resolved = resolve(&spec("/home/ann/repo"), &host, &ann()).unwrap();
        for (name, variable) in &resolved.environment {
            prop_assert!(listed(name) || MADE.contains(&name.as_str()), "{} got in", name);
            if listed(name) {
                prop_assert_eq!(Some(&variable.value), host.environment.get(name));
            }
        }
    }
}

#[test]
fn names_that_must_never_be_listed_are_not() {
    for name in [
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "LD_PRELOAD",
        "XDG_RUNTIME_DIR",
        "GIT_DIR",
        "EDITOR",
        "BASH_ENV",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "SANDBOX",
    ] {
        assert!(!listed(name), "{name}");
    }
}

#[test]
fn the_shell_is_one_that_exists_inside() {
    let mut host = host(1000, "/home/ann", "/usr/bin");
    let shell = |host: &crate::host::Host| {
        resolve(&spec("/home/ann/repo"), host, &ann()).unwrap().environment["SHELL"].value.clone()
    };
    assert_eq!(shell(&host), "/usr/bin/fish");
    for other in ["/usr/bin/none", "/home/ann/bin/own", "fish"] {
        host.environment.insert("SHELL".to_owned(), other.to_owned());
        assert_eq!(shell(&host), "/bin/sh", "{other}");
    }
}

#[test]
fn a_listed_variable_that_is_no_text_is_named() {
    let mut host = host(1000, "/home/ann", "/usr/bin");
    host.odd_variables = vec!["LC_NAME".to_owned(), "SOME_KEY".to_owned()];
    let resolved = resolve(&spec("/home/ann/repo"), &host, &ann()).unwrap();
    let codes: Vec<&str> = resolved.warnings.iter().map(|warning| warning.text.as_str()).collect();
    assert_eq!(codes, ["`LC_NAME` is not valid UTF-8 and is not passed on"]);
}
