//! Real builds with real tools: cmake, make, zig and pkg-config from their registry, everything else without a network.

use sandtable_sandbox::model::platform::Os;
use sandtable_testkit::counts;
use sandtable_testkit::process::Run;
use sandtable_testkit::require::{pass_over, say, skip, variable, workspace};
use sandtable_tools::assemble::Shelf;
use sandtable_tools::builtin;
use sandtable_tools::plan::{Arch, Libc, Plan, PlanPlatform};
use sandtable_tools::recipe::Recipe;
use serde_json::Value;

use crate::world::{World, possible};

/// A library with a program, built by cmake; that asks pkg-config on the way and says where its tools were found.
const CMAKE: &str = r#"
format = 1
name = "greeting"
version = "1.0"
description = "says hello"

[[steps]]
action = "run_command"
command = ["sh", "-c", '''
mkdir src
cat > src/hello.c <<'END'
#include <stdio.h>
int main(void) { puts("greeting 1.0"); return 0; }
END
cat > src/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(greeting C)
find_program(PKG pkg-config REQUIRED)
file(WRITE ${CMAKE_BINARY_DIR}/found "${CMAKE_COMMAND}\n${CMAKE_MAKE_PROGRAM}\n${PKG}\n")
add_executable(greeting hello.c)
install(TARGETS greeting DESTINATION bin)
install(FILES ${CMAKE_BINARY_DIR}/found DESTINATION share)
END
for tool in cmake make zig pkg-config; do command -v $tool; done > places
cat /proc/net/dev > interfaces
''']

[[steps]]
action = "cmake_build"
source = "src"
outputs = ["bin/greeting"]

[[steps]]
action = "install_binaries"
files = [{ from = "places", to = "share/places" }, { from = "interfaces", to = "share/interfaces" }]
executables = []

[verify]
command = ["greeting"]
pattern = "greeting {version}"

[provides]
binaries = ["bin/greeting"]
"#;

/// A program with a `configure` and a makefile.
const CONFIGURE: &str = r#"
format = 1
name = "classic"
version = "2.1"
description = "is configured and made"

[[steps]]
action = "run_command"
command = ["sh", "-c", '''
cat > classic.c <<'END'
#include <stdio.h>
int main(void) { printf("classic %s\n", VERSION); return 0; }
END
cat > configure <<'END'
#!/bin/sh
for word; do case $word in --prefix=*) prefix=${word#*=};; esac; done
printf '%s\n' "prefix = $prefix" "CC = $CC" 'classic: classic.c' '	$(CC) -DVERSION=\"2.1\" -o $@ $<' \
  'install: classic' '	mkdir -p $(prefix)/bin && cp classic $(prefix)/bin/' > Makefile
END
mkdir tree && mv classic.c configure tree && chmod 755 tree/configure
''']

[[steps]]
action = "configure_make"
source = "tree"
outputs = ["bin/classic"]

[verify]
command = ["classic"]
pattern = "classic {version}"

[provides]
binaries = ["bin/classic"]
"#;

fn planned(text: &str) -> Value {
    let recipe = Recipe::parse(text).unwrap();
    let shelf = Shelf::new(builtin::recipes(), &[]).unwrap();
    let platform = PlanPlatform { os: Os::Linux, arch: Arch::X86_64, libc: Libc::Glibc, linux_family: None };
    let plan: Plan = shelf.plan(&recipe, platform).unwrap();
    serde_json::from_str(&plan.to_json()).unwrap()
}

/// The call, with what a client needs to find its registry.
fn call(world: &World, plan: &Value) -> Run {
    let mut run = world.call(plan, &[]);
    for name in ["PATH", "HOME", "PIP_INDEX_URL", "PIP_CERT", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY"] {
        if let Some(value) = variable(name) {
            run = run.variable(name, value);
        }
    }
    run
}

/// The recipes with pinned sources, from plain downloads to whole builds, and what each step of them is.
const RECIPES: [(&str, &str); 8] = [
    ("esbuild", "download_archive"),
    ("sphinx", "pip_install"),
    ("glob", "npm_exec"),
    ("hub", "go_build"),
    ("gdbm", "configure_make"),
    ("libsixel", "meson_build"),
    ("choose", "cargo_build"),
    ("ninja-from-source", "cmake_build"),
];
/// How many of them are cheap enough for every run.
const CHEAP: usize = 2;

/// What pins are worth: everything is fetched by hash and made without a network, and the second time nothing is.
#[test]
fn recipes_with_pinned_sources_really_make_their_tools() {
    if std::env::consts::ARCH != "x86_64" || crate::world::libc() != "glibc" {
        return skip("the recipes of the build tools are for x86_64 and glibc");
    }
    if !possible() {
        return;
    }
    let world = World::new();
    let most = if counts::is_long() { RECIPES.len() } else { CHEAP };
    for (name, action) in &RECIPES[..most] {
        let path = workspace().join(format!("crates/testkit/recipes/{name}.toml"));
        let text = fs_err::read_to_string(path).unwrap();
        assert!(text.contains(&format!("action = \"{action}\"")), "{name}");
        let plan = planned(&text);
        let ended = call(&world, &plan).ended();
        let answer: Value =
            serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr));
        if answer["code"] == "tool-fetch" {
            // Not a failure of ours, and not to be had on every machine.
            say(&format!("skipped: {name}: a registry cannot be reached: {}", answer["error"]));
            continue;
        }
        if *name == "sphinx" && answer["code"] == "tool-verify" && !has_python_3_11() {
            say("skipped: two wheels of sphinx are for the Python of Debian 12");
            continue;
        }
        assert_eq!(answer["error"], Value::Null, "{name}: {answer} {}", ended.stderr);
        assert_ne!(answer["made"], 0, "{name}: {answer}");
        let again: Value = serde_json::from_str(&call(&world, &plan).ended().stdout).unwrap();
        assert_eq!(
            (&again["made"], &again["fetched"]),
            (&Value::from(0), &Value::from(0)),
            "{name}: {again}"
        );
    }
}

fn has_python_3_11() -> bool {
    std::path::Path::new("/usr/bin/python3.11").exists()
}

/// Both in one depot: what the first has made, the second finds.
#[test]
fn sources_are_built_by_tools_from_the_depot_without_a_network() {
    if !counts::is_long() {
        // Filling the compiler's cache alone takes minutes.
        return pass_over("sources are built in the long run only");
    }
    if std::env::consts::ARCH != "x86_64" || crate::world::libc() != "glibc" {
        return skip("the recipes of the build tools are for x86_64 and glibc");
    }
    if !possible() {
        return;
    }
    let world = World::new();
    let cmake = planned(CMAKE);
    let ended = call(&world, &cmake).ended();
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr));
    if answer["code"] == "tool-fetch" {
        // Not a failure of ours, and not to be had on every machine.
        return pass_over(&format!("the registry cannot be reached: {}", answer["error"]));
    }
    assert_eq!(
        (&answer["made"], &answer["error"]),
        (&Value::from(5), &Value::Null),
        "{answer} {}",
        ended.stderr
    );
    let source = std::path::PathBuf::from(answer["source"].as_str().unwrap());
    let places = fs_err::read_to_string(source.join("share/places")).unwrap();
    assert_eq!(places.lines().count(), 4, "{places}");
    assert!(places.lines().all(|line| line.starts_with("/opt/sandtable/tools/")), "{places}");
    let found = fs_err::read_to_string(source.join("share/found")).unwrap();
    assert!(found.lines().all(|line| line.starts_with("/opt/sandtable/tools/")), "{found}");

    let interfaces = fs_err::read_to_string(source.join("share/interfaces")).unwrap();
    let named: Vec<&str> =
        interfaces.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
    assert_eq!(named, ["lo"], "no network but its own");

    let ended = call(&world, &planned(CONFIGURE)).ended();
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr));
    let counts = (&answer["kept"], &answer["made"], &answer["fetched"]);
    assert_eq!(counts, (&Value::from(3), &Value::from(1), &Value::from(0)), "{answer} {}", ended.stderr);

    let again = call(&world, &cmake).ended();
    let answer: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(
        (&answer["kept"], &answer["made"], &answer["fetched"]),
        (&Value::from(1), &Value::from(0), &Value::from(0))
    );
}
