use std::collections::BTreeMap;

use sandtable_sandbox::model::path::{BoxPath, HostPath};
use sandtable_sandbox::model::tool::ProvidedDep;

use super::*;
use crate::plan::Plan;

fn plan(steps: &serde_json::Value) -> Plan {
    serde_json::from_value(serde_json::json!({
        "format": 1, "name": "thing", "version": "2",
        "platform": {"os": "linux", "arch": "x86_64", "libc": "glibc"},
        "steps": steps, "provides": {"binaries": ["bin/thing"]},
        "verify": [{"command": ["thing", "--version"]}],
    }))
    .unwrap()
}

fn dependency(name: &str) -> ProvidedDep {
    let place = BoxPath::new(format!("/opt/sandtable/tools/{name}-1")).unwrap();
    ProvidedDep {
        name: name.parse().unwrap(),
        version: "1".parse().unwrap(),
        key: "0".repeat(64),
        source: HostPath::new(format!("/store/{name}")).unwrap(),
        search: vec![place.join("bin")],
        place,
        env: BTreeMap::new(),
        made_on: None,
    }
}

fn actions(steps: &serde_json::Value, tools: &[ProvidedDep]) -> Vec<Action> {
    let plan = plan(steps);
    let mut lowering = Lowering::new(&plan, tools, 2);
    plan.steps.iter().enumerate().flat_map(|(number, step)| lowering.step(number, step)).collect()
}

fn commands(steps: &serde_json::Value) -> Vec<Command> {
    actions(steps, &[dependency("zig"), dependency("make")])
        .into_iter()
        .filter_map(|action| match action {
            Action::Run(command) => Some(command),
            _ => None,
        })
        .collect()
}

#[test]
fn a_build_knows_its_tools_and_nothing_of_the_caller() {
    let steps = serde_json::json!([{"action": "configure_make", "source": "src", "outputs": ["bin/thing"],
        "configure_arguments": ["--disable-x"], "make_arguments": ["V=1"]}]);
    let found = commands(&steps);
    let shown: Vec<String> = found.iter().map(Command::shown).collect();
    assert_eq!(
        shown,
        ["./configure --prefix=/opt/sandtable/tools/thing-2 --disable-x", "make -j2 V=1", "make V=1 install"]
    );
    let environment = &found[0].environment;
    assert_eq!(found[0].directory.to_string(), "/build/src");
    assert_eq!(environment["CC"], "/build/.sandtable/bin/cc");
    assert!(environment["PATH"].starts_with(
        "/build/.sandtable/bin:/opt/sandtable/tools/zig-1/bin:/opt/sandtable/tools/make-1/bin:/usr/local/bin:"
    ));
    assert_eq!(environment["ZIG_GLOBAL_CACHE_DIR"], "/opt/sandtable/tools/zig-1/cache");
    let names: Vec<&str> = environment.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "AR",
            "CC",
            "CMAKE_PREFIX_PATH",
            "CPPFLAGS",
            "CXX",
            "HOME",
            "LANG",
            "LC_ALL",
            "LDFLAGS",
            "PATH",
            "PKG_CONFIG_LIBDIR",
            "RANLIB",
            "SOURCE_DATE_EPOCH",
            "TERM",
            "TMPDIR",
            "ZIG_GLOBAL_CACHE_DIR",
            "ZIG_LOCAL_CACHE_DIR"
        ]
    );
}

#[test]
fn without_a_compiler_among_the_dependencies_the_systems_is_taken() {
    let steps = serde_json::json!([{"action": "configure_make", "source": "src", "outputs": ["bin/thing"]}]);
    let found = actions(&steps, &[]);
    assert!(!found.iter().any(|action| matches!(action, Action::Write { .. })), "{found:?}");
    let Some(Action::Run(configure)) = found.first() else { panic!("it is configured first") };
    for name in ["CC", "CXX", "PKG_CONFIG_LIBDIR", "LDFLAGS"] {
        assert!(!configure.environment.contains_key(name), "{name}");
    }
}

#[test]
fn cmake_configures_builds_and_installs_to_the_final_place() {
    let steps = serde_json::json!([{"action": "cmake_build", "source": "src", "outputs": ["bin/thing"],
        "arguments": ["-DX=1"]}]);
    let shown: Vec<String> = commands(&steps).iter().map(Command::shown).collect();
    assert_eq!(shown.len(), 3);
    assert!(shown[0].starts_with("cmake -S /build/src -B /build/.sandtable/cmake-0 -G Unix Makefiles"));
    assert_eq!(shown[1], "cmake --build /build/.sandtable/cmake-0 --parallel 2");
    assert_eq!(shown[2], "cmake --install /build/.sandtable/cmake-0");
}

#[test]
fn what_a_step_sets_is_seen_by_those_after_it() {
    let steps = serde_json::json!([
        {"action": "run_command", "command": ["first"]},
        {"action": "set_env", "vars": {"FLAG": "1"}},
        {"action": "run_command", "command": ["second"], "directory": "d", "env": {"MORE": "2"}},
        {"action": "run_command", "command": ["third"]},
    ]);
    let found = commands(&steps);
    let has = |index: usize, name: &str| found[index].environment.contains_key(name);
    assert!(!has(0, "FLAG") && has(1, "FLAG") && has(2, "FLAG"));
    assert!(has(1, "MORE") && !has(2, "MORE"));
    assert_eq!(found[1].directory.to_string(), "/build/d");
}

#[test]
fn names_are_arguments_and_never_script() {
    let steps = serde_json::json!([{"action": "install_binaries", "executables": ["bin/x"],
        "files": [{"from": "$(reboot)`x`", "to": "bin/x"}]}]);
    let found = commands(&steps);
    assert_eq!(found[0].argv[..2], ["sh", "-c"]);
    assert!(!found[0].argv[2].contains("reboot"));
    assert_eq!(found[0].argv[4..], ["/build/$(reboot)`x`", "/opt/sandtable/tools/thing-2/bin/x"]);
}

#[test]
fn programs_of_packages_are_small_scripts() {
    let steps = serde_json::json!([
        {"action": "npm_exec", "packages": [{"file": "a.tgz", "to": "node_modules/a"}],
         "binaries": {"a": "node_modules/a/it's.js"}},
        {"action": "pip_install", "wheels": ["b.whl"], "binaries": {"b": "b.cli:run"}},
    ]);
    let plan = plan(&steps);
    let mut lowering = Lowering::new(&plan, &[], 1);
    let actions: Vec<Action> =
        plan.steps.iter().enumerate().flat_map(|(number, step)| lowering.step(number, step)).collect();
    let texts: Vec<&str> = actions
        .iter()
        .filter_map(|action| match action {
            Action::Write { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        texts[0],
        "#!/bin/sh\nexec node '/opt/sandtable/tools/thing-2/lib/node_modules/a/it'\\''s.js' \"$@\"\n"
    );
    assert!(
        texts[1].contains("from b.cli import run as main")
            && texts[1].starts_with("#!/bin/sh\nexec python3 -c '")
    );
}

#[test]
fn a_program_that_was_not_found_is_named() {
    let said = "checking for x\nsh: 1: m4: not found\n./configure: line 7: bison: command not found\nmake[2]: flex: No such \
                file or directory\nenv: ‘ruby’: No such file or directory\ngcc: error: x.c: No such file or directory\nsh: 1: m4: not \
                found\nthe page was not found\n/usr/bin/env: 'lua': No such file or directory\n";
    assert_eq!(missing_commands(said), ["m4", "bison", "flex", "ruby", "lua"]);
}

#[test]
fn the_base_is_small_and_has_a_shell() {
    let names: Vec<&str> = base_commands().collect();
    assert!(names.contains(&"sh") && names.contains(&"sed"));
    for never in ["cc", "gcc", "make", "cmake", "m4", "curl", "sudo", "pkg-config"] {
        assert!(!names.contains(&never), "{never} has to be declared");
    }
    let unique: std::collections::BTreeSet<&&str> = names.iter().collect();
    assert_eq!(unique.len(), names.len());
}

#[test]
fn packages_are_installed_by_the_commands_of_their_manager() {
    let steps =
        serde_json::json!([{"action": "system_packages", "manager": "apt", "packages": ["m4", "bc"]}]);
    let found = commands(&steps);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].shown().ends_with(" update") && found[1].shown().ends_with(" install m4 bc"),
        "{found:?}"
    );
    assert_eq!(found[1].environment["DEBIAN_FRONTEND"], "noninteractive");
}
