//! Input that must be refused: 2 where the user has to change something, nothing made, a message that names
//! the value.

use std::path::Path;

use sandtable_testkit::env::TestEnv;
use sandtable_testkit::process::Ended;
use sandtable_testkit::require;

use crate::cli::{Unused, assert_nothing_made};

#[test]
fn an_unknown_value_of_any_option_is_2() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    for option in ["--engine", "--network", "--profile", "--mode", "--git-config", "--name"] {
        let ended = env.run_script(&source, &[option, "No-Such!"], "echo it-ran");
        assert_refused(&env, &ended, "No-Such!");
    }
    let ended = env.run_script(&source, &["--no-such-option"], "echo it-ran");
    assert_refused(&env, &ended, "--no-such-option");
}

#[test]
fn an_unknown_value_of_any_variable_is_2() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    for variable in
        ["SANDTABLE_ENGINE", "SANDTABLE_NETWORK", "SANDTABLE_PROFILE", "SANDTABLE_MODE", "LLXPRT_SANDBOX"]
    {
        let run = env.sandtable().directory(&source).variable(variable, "no-such");
        let ended = run.args(["run", "--", "echo", "it-ran"]).ended();
        assert_refused(&env, &ended, "no-such");
        assert!(ended.stderr.contains(variable), "{variable}: {}", ended.stderr);
    }
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let run =
        env.sandtable().directory(&source).variable("SANDTABLE_ENGINE", "").variable("SANDTABLE_NETWORK", "");
    run.args(["run", "--rm", "--", "true"]).ended().expect_code(0).unused();
}

#[test]
fn the_root_directory_and_the_home_are_refused_as_a_workspace() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let home = env.home();
    for place in [Path::new("/"), &home, env.root()] {
        let ended = run_in(&env, place);
        assert_refused(&env, &ended, place.to_str().unwrap());
    }
}

#[test]
fn a_workspace_that_is_missing_or_a_file_is_refused() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    env.file(&env.root().join("file"), "");
    for name in ["missing", "file"] {
        let place = env.root().join(name);
        let ended = run_in(&env, &place);
        assert_refused(&env, &ended, place.to_str().unwrap());
    }
}

#[test]
fn a_broken_configuration_file_is_refused() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let file = env.home().join(".config/sandtable/config.toml");
    for text in ["network = ", "no-such-key = 1", "network = \"no-such\"", "network = 7"] {
        env.file(&file, text);
        let ended = env.run_script(&source, &[], "echo it-ran");
        assert_refused(&env, &ended, "config.toml");
    }
}

#[test]
fn a_project_file_may_not_widen_the_policy_and_has_no_unknown_keys() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    for text in ["network = \"host\"", "no-such-key = 1", "network = "] {
        env.file(&source.join(".sandtable.toml"), text);
        let ended = env.run_script(&source, &[], "echo it-ran");
        assert_refused(&env, &ended, ".sandtable.toml");
    }
}

#[test]
fn a_mount_that_escapes_by_a_link_is_refused() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.file(&env.home().join("secret/key"), "canary");
    env.symlink(env.home().join("secret"), &source.join("escape"));
    let mount = format!("{}:/mnt/escape:ro", source.join("escape").display());
    let ended = env.run_script(&source, &["-v", &mount], "echo it-ran");
    assert_refused(&env, &ended, "escape");
}

#[test]
fn a_mount_of_something_missing_is_refused() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let missing = format!("{}:/mnt/x:ro", env.root().join("missing").display());
    for mount in [missing.as_str(), "relative:also-relative", "/etc:/mnt/x:sideways"] {
        let ended = env.run_script(&source, &["-v", mount], "echo it-ran");
        assert_refused(&env, &ended, "");
    }
}

#[test]
fn a_name_that_is_taken_is_refused() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "twice"], "true").expect_code(0).unused();
    let ended = env.run_script(&source, &["--name", "twice"], "echo it-ran").expect_code(2);
    assert!(ended.stderr.contains("twice") && !ended.stdout.contains("it-ran"), "{}", ended.stderr);
}

#[test]
fn a_sandbox_that_is_not_there_is_refused() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    for verb in ["inspect", "stop", "rm"] {
        env.sandtable().args([verb, "nobody"]).ended().expect_code(2).expect_stderr("nobody").unused();
    }
    env.sandtable()
        .args(["exec", "nobody", "--", "true"])
        .ended()
        .expect_code(2)
        .expect_stderr("nobody")
        .unused();
}

/// The machine, not the user's input, would have to change where the state cannot be written.
#[test]
fn a_state_directory_that_cannot_be_written_is_125() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    if !require::is_root() {
        return require::skip("a read-only file system needs root");
    }
    let data = env.root().join("frozen");
    env.directory(&data);
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && shift && exec \"$@\"";
    let frozen = ["unshare", "--mount", "sh", "-c", script, "sh", data.to_str().unwrap()];
    let run = env.sandtable().directory(&source).args(["run", "--", "echo", "it-ran"]);
    let ended = run.variable("XDG_DATA_HOME", &data).through(frozen).ended().expect_code(125);
    assert!(ended.stderr.contains("frozen") && !ended.stdout.contains("it-ran"), "{}", ended.stderr);
}

fn run_in(env: &TestEnv, place: &Path) -> Ended {
    env.sandtable().arg("run").arg("-C").arg(place).args(["--", "echo", "it-ran"]).ended()
}

/// Refused with 2, the value named, nothing made, nothing run.
#[track_caller]
fn assert_refused(env: &TestEnv, ended: &Ended, value: &str) {
    assert_eq!(ended.code, 2, "for `{value}`: {} {}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains(value), "`{value}` is not named: {}", ended.stderr);
    assert!(!ended.stdout.contains("it-ran"), "it ran");
    assert_nothing_made(env);
}

#[test]
fn a_name_that_is_almost_right_and_a_line_of_shell_are_recognised() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["-q", "--name", "tryout"], "true").expect_code(0).unused();
    let said = |code: i32, args: &[&str]| {
        env.sandtable().directory(&source).args(args).ended().expect_code(code).stderr
    };
    for args in [&["exec", "tryuot", "--", "true"][..], &["diff", "tryot"], &["log", "tryou"]] {
        let text = said(2, args);
        assert!(text.contains("did you mean `tryout`?"), "{text}");
    }
    assert!(!said(2, &["log", "something-else"]).contains("did you mean"));
    let text = said(127, &["run", "-q", "--", "true && false"]);
    assert!(text.contains("sh -c"), "{text}");
    assert!(!said(127, &["run", "-q", "--", "no-such-program"]).contains("sh -c"));
}
