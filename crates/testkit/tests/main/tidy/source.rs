//! What code may contain, and who may know whom.

use std::collections::BTreeMap;

use super::{Source, assert_none, product, rust};

#[test]
fn unsafe_code_is_only_in_the_sys_folder() {
    let words = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "(unsafe_code", "#[unsafe("];
    let outside = |file: &Source| !file.is_below("crates/launch/src/sys");
    // `forbid` is the one mention that is welcome anywhere.
    let found: Vec<String> = rust()
        .iter()
        .filter(|file| outside(file) && !file.path.ends_with("tidy/source.rs"))
        .flat_map(|file| file.naming(&words))
        .filter(|line| !line.contains("#![forbid(unsafe_code)]"))
        .collect();
    assert_none("unsafe code outside of launch/src/sys", &found);
}

#[test]
fn every_other_crate_forbids_unsafe_code() {
    let roots = [
        "crates/app/src/lib.rs",
        "crates/bench/src/lib.rs",
        "crates/bench/src/main.rs",
        "crates/cli/src/main.rs",
        "crates/egress/src/lib.rs",
        "crates/merge/src/lib.rs",
        "crates/protocol/src/lib.rs",
        "crates/sandbox/src/lib.rs",
        "crates/store/src/lib.rs",
        "crates/testkit/src/lib.rs",
        "crates/tools/src/lib.rs",
        "crates/unpack/src/lib.rs",
    ];
    let files = rust();
    for root in roots {
        let file = files.iter().find(|file| file.path.ends_with(root)).unwrap_or_else(|| panic!("no {root}"));
        assert!(file.text.contains("#![forbid(unsafe_code)]"), "{root} does not forbid unsafe code");
    }
}

#[test]
fn only_the_command_line_prints_reads_the_environment_and_exits() {
    let words = ["println!", "print!(", "env::var", "env::vars", "process::exit(", "dbg!("];
    let found: Vec<String> = library().iter().flat_map(|file| file.naming(&words)).collect();
    assert_none("printing, the environment and exiting are for the command line", &found);
}

/// The product without its command line.
fn library() -> Vec<&'static Source> {
    product().into_iter().filter(|file| !file.is_below("crates/cli") && !is_outside_the_rule(file)).collect()
}

/// Build scripts talk to cargo; fail points are told by a variable and never shipped; examples are programs of others.
fn is_outside_the_rule(file: &Source) -> bool {
    file.path.ends_with("build.rs")
        || file.is_below("crates/app/examples")
        || file.path.ends_with("launch/src/failpoint.rs")
}

#[test]
fn the_environment_is_read_in_one_file() {
    let words = ["env::var", "env::vars"];
    let found: Vec<String> = product()
        .iter()
        .filter(|file| !file.path.ends_with("crates/cli/src/env.rs") && !is_outside_the_rule(file))
        .flat_map(|file| file.naming(&words))
        .collect();
    assert_none("the environment is read in cli/src/env.rs", &found);
}

#[test]
fn no_code_outside_the_engines_names_one() {
    let words = [
        "::Native",
        "::Docker",
        "::Podman",
        "::Seatbelt",
        "\"native\"",
        "\"docker\"",
        "\"podman\"",
        "\"seatbelt\"",
    ];
    // Besides the engines and the words for them, which settings have too: the one place that chooses, and the ways to
    // bring an agent in.
    let may = |file: &Source| {
        let places = ["engine", "model", "resolve/engine.rs", "resolve/ssh_agent"];
        places.iter().any(|place| file.is_below(&format!("crates/sandbox/src/{place}")))
            || file.is_below("crates/app/src/config")
    };
    let ours = |file: &Source| {
        ["sandbox", "merge", "tools", "app"].iter().any(|name| file.is_below(&format!("crates/{name}")))
    };
    let found: Vec<String> = product()
        .iter()
        .filter(|file| ours(file) && !may(file))
        .flat_map(|file| file.naming(&words))
        .collect();
    assert_none("an engine is named outside of engine/ and model/", &found);
}

/// What depends on the engine asks for a property of it: `EngineTraits`.
#[test]
fn no_code_outside_the_engines_asks_whether_there_is_a_container() {
    let words =
        ["container.is_some()", "container.is_none()", "is_container(", "makes_views(", "makes_groups("];
    let is_engine = |file: &Source| file.is_below("crates/sandbox/src/engine");
    let found: Vec<String> = product()
        .iter()
        .filter(|file| {
            file.is_below("crates/sandbox") || file.is_below("crates/tools") || file.is_below("crates/app")
        })
        .filter(|file| !is_engine(file))
        .flat_map(|file| file.naming(&words))
        .collect();
    assert_none("the kind of the engine decides; ask its traits", &found);
}

/// The executable is type-checked for macOS only where a standard library for that can be had.
#[test]
fn systems_differ_by_file() {
    let words = [
        "target_os",
        "os::linux",
        "openat2",
        "statx(",
        "syncfs",
        "inotify",
        "memfd_create",
        "pipe_with",
        "socket_peercred",
        "SocketFlags",
        "OFlags::PATH",
        "OFlags::TMPFILE",
        "OFlags::NOATIME",
        "/proc/self/fd/{",
    ];
    // Besides the code of Linux and what is asked of each system: lists of modules, and what is there for one of them.
    let may = |file: &Source| {
        let places = [
            "crates/launch",
            "crates/store/src/os",
            "crates/sandbox/src/os",
            "crates/sandbox/src/facts/machine.rs",
            "crates/cli/src/main.rs",
            "crates/cli/src/env.rs",
            "crates/cli/src/error.rs",
            "crates/cli/src/commands/doctor",
        ];
        places.iter().any(|place| file.is_below(place))
    };
    let found: Vec<String> =
        product().iter().filter(|file| !may(file)).flat_map(|file| file.naming(&words)).collect();
    assert_none("what only one system has is named in os/ and in launch", &found);
}

#[test]
fn files_are_small() {
    let long = |file: &Source| {
        let (code, all) = (file.code().count(), file.text.lines().count());
        (code > 500 || all > 800)
            .then(|| format!("{}: {code} lines of code, {all} in all", file.path.display()))
    };
    let found: Vec<String> = rust().iter().filter_map(long).collect();
    assert_none("at most 500 lines of code and 800 lines in all", &found);
}

/// What grows beyond its limit has taken in what belongs into another crate.
#[test]
fn crates_are_no_larger_than_their_task() {
    for (name, most) in [("cli", 8_000), ("sandbox", 24_000)] {
        let files = product().into_iter().filter(|file| file.is_below(&format!("crates/{name}")));
        let is_line = |line: &&str| !line.trim().is_empty();
        let lines: usize = files.map(|file| file.code().map(|(_, line)| line).filter(is_line).count()).sum();
        println!("{name}: {lines} lines of code");
        assert!(
            (1_000..=most).contains(&lines),
            "{name} has {lines} lines of code, at most {most} are its limit"
        );
    }
}

/// A public type that needs its module to be told from others of its name is imported under other names.
#[test]
fn no_public_type_has_a_name_that_two_others_have() {
    let kinds = ["struct", "enum", "trait", "type", "union"];
    let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
    for file in product() {
        let Some(name) = file.path.iter().nth(1).and_then(|name| name.to_str()) else { continue };
        for (_, line) in file.code() {
            let mut words = line.trim_start().split(|sign: char| !sign.is_alphanumeric() && sign != '_');
            if words.next() == Some("pub") && words.next().is_some_and(|word| kinds.contains(&word)) {
                // A macro's `$name` is none.
                if let Some(named) = words.next().filter(|named| !named.is_empty()) {
                    *found.entry((name.to_owned(), named.to_owned())).or_default() += 1;
                }
            }
        }
    }
    assert!(found.len() > 500, "{} types were found", found.len());
    let often = found.into_iter().filter(|(_, count)| *count > 2);
    let often: Vec<String> =
        often.map(|((name, named), count)| format!("{name}: {named} {count} times")).collect();
    assert_none("public types of one name", &often);
}

#[test]
fn nothing_is_left_to_do() {
    let words =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("todo", "!("), concat!("unimplemented", "!(")];
    let files = rust();
    let marked = |file: &Source| -> Vec<String> {
        let lines = file.text.lines().enumerate();
        lines
            .filter(|(_, line)| words.iter().any(|word| line.contains(word)))
            .map(|(index, line)| format!("{}:{}: {}", file.path.display(), index + 1, line.trim()))
            .collect()
    };
    let found: Vec<String> = files.iter().flat_map(marked).collect();
    assert_none("unfinished", &found);
}

#[test]
fn lints_are_expected_with_a_reason_and_never_allowed() {
    let found: Vec<String> = rust()
        .iter()
        .filter(|file| !file.path.ends_with("tidy/source.rs"))
        .flat_map(|file| file.naming(&["#[allow(", "#![allow("]))
        .collect();
    assert_none("use #[expect(…, reason)]", &found);
}

/// A system may refuse a thread. `spawn` of the standard library panics then; a `Builder` returns the error.
#[test]
fn a_thread_that_cannot_be_made_is_an_error_and_no_panic() {
    let panicking = ["thread::spawn(", "scope.spawn(", "s.spawn("];
    let is_test = |file: &&Source| file.path.to_string_lossy().ends_with("tests.rs");
    let files = product();
    let found: Vec<String> =
        files.iter().filter(|file| !is_test(file)).flat_map(|file| file.naming(&panicking)).collect();
    assert_none("a thread without a way to fail", &found);
}

/// Programs of the host that start outside a sandbox, each with where it comes from. A new one comes from
/// `resolve::helper` as well, which passes over what is worked on.
const STARTS: [(&str, &str); 8] = [
    ("doctor/tools.rs", "`helper`"),
    ("engine/nat.rs", "`helper`, by the plan"),
    ("engine/oci/image.rs", "`helper`, by the plan"),
    ("engine/ssh_agent/desktop.rs", "`helper`, by the plan"),
    ("engine/ssh_agent/tunnel.rs", "`helper`, by the plan"),
    ("facts/machine.rs", "whoever asks for its output: engines, found by `helper`, and `/sbin/mount`"),
    ("merge/src/git.rs", "fixed directories of the system"),
    ("tools/src/fetch/client.rs", "`helper`, by the command line"),
];

/// Where the word PATH is written, and why that finds no program of the host.
const PATHS: [(&str, &str); 9] = [
    ("resolve/search.rs", "the directories, for `helper` and for what is seen inside"),
    ("resolve/environment.rs", "PATH inside"),
    ("resolve/tools.rs", "PATH inside"),
    ("resolve/toolchains.rs", "says why something is seen inside"),
    ("engine/seatbelt/lower.rs", "PATH inside"),
    ("tools/src/build/make.rs", "PATH of a build, inside"),
    ("tools/src/execute/lower.rs", "PATH of a build, inside"),
    ("tools/src/plan/variable.rs", "a name that no tool may set"),
    ("cli/src/ui/tool.rs", "a heading"),
];

/// What is worked on puts directories of its own on PATH, so there is one way from a name to a program.
#[test]
fn programs_of_the_host_are_found_in_one_place() {
    let files = product();
    let outside = |words: &[&str], may: &[&str]| -> Vec<String> {
        let kept = files.iter().filter(|file| !may.iter().any(|place| is_at(file, place)));
        kept.flat_map(|file| file.naming(words)).filter(|line| !line.contains("value_name")).collect()
    };
    let asked = ["Question::Program", "facts.program("];
    let may =
        ["facts/mod.rs", "facts/answer.rs", "facts/machine.rs", "facts/recorded.rs", "resolve/helpers.rs"];
    assert_none("a program is looked for by `resolve::helper`", &outside(&asked, &may));
    let list = ["search::directories(", "split_paths("];
    let may = ["resolve/helpers.rs", "resolve/search.rs", "resolve/toolchains.rs"];
    assert_none("the caller's PATH is read by `resolve::helper`", &outside(&list, &may));
    assert_none(
        "PATH is written where it is not known to be harmless",
        &outside(&["\"PATH\""], &PATHS.map(|it| it.0)),
    );
    assert_none(
        "a program is started that comes from nobody knows where",
        &outside(&["Cli::new("], &STARTS.map(|it| it.0)),
    );
    for (place, _) in STARTS.iter().chain(&PATHS) {
        assert!(files.iter().any(|file| is_at(file, place)), "{place} is not there any more");
    }
}

/// Whether a file is at a place that is named by the end of its path.
fn is_at(file: &Source, place: &str) -> bool {
    file.path.ends_with(place)
}
