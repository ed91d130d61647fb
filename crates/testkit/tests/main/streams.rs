//! What the command gets of the caller's streams: their bytes, not the files behind them.

use std::path::Path;

use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::Ended;
use sandtable_testkit::require;

use crate::cli::{Unused, assert_nothing_made};

/// Runs a shell script of the host in which `$0` is the executable.
fn around(env: &TestEnv, directory: &Path, script: &str) -> Ended {
    env.run("sh").args(["-c", script]).arg(env.binary()).directory(directory).ended()
}

#[test]
fn a_directory_as_a_stream_is_refused() {
    // Beneath a directory of the host the way up leads to its root, and to every socket there.
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let ended = around(&env, &source, "\"$0\" run -- stat -t ../../../../../etc < /");
        ended.expect_code(2).expect_stderr("is a directory").unused();
        assert_nothing_made(&env);
    }
}

#[test]
fn a_file_as_input_keeps_its_mode_and_times() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let before = env.fingerprint(&source);
        let attack = "touch -d @5 /proc/self/fd/0; chmod 777 /proc/self/fd/0; cat";
        let ended = around(&env, &source, &format!("\"$0\" run --rm -q -- sh -c '{attack}' < README"));
        assert_eq!(ended.expect_code(0).stdout, "A sample.\n");
        assert_eq!(before.differences(&env.fingerprint(&source)), [""; 0]);
    }
}

#[test]
fn a_file_as_output_cannot_be_made_a_program_of_its_owner() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let log = env.home().join("log");
        let run = "\"$0\" run --rm -q -- sh -c 'chmod 4777 /proc/self/fd/1; true' > \"$HOME/log\"";
        around(&env, &source, run).expect_code(0).unused();
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs_err::metadata(&log).unwrap().permissions());
        assert_eq!(mode & 0o7777, 0o644);
    }
}

#[test]
fn output_and_errors_in_one_file_keep_their_order_and_their_names() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let script = "echo 1; echo 2 >&2; echo 3; echo 4 > /dev/stderr; echo 5 > /dev/stdout";
        let to_a_file =
            format!("\"$0\" run --rm -q -- sh -c '{script}' > \"$HOME/log\" 2>&1; cat \"$HOME/log\"");
        assert_eq!(around(&env, &source, &to_a_file).expect_code(0).stdout, "1\n2\n3\n4\n5\n");
        let to_a_pipe = format!("\"$0\" run --rm -q -- sh -c '{script}' 2>&1 | cat");
        assert_eq!(around(&env, &source, &to_a_pipe).expect_code(0).stdout, "1\n2\n3\n4\n5\n");
    }
}

#[test]
fn input_that_the_command_did_not_read_is_left_for_the_next() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.file(&env.home().join("list"), "1\n2\n3\n");
    let script = "{ \"$0\" run --rm -q -- sh -c 'read line; echo inside $line'; cat; } < \"$HOME/list\"";
    assert_eq!(around(&env, &source, script).expect_code(0).stdout, "inside 1\n2\n3\n");
}

#[test]
fn a_large_file_arrives_whole_and_in_order_and_its_rest_is_left() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let numbers = "seq 1 2000000 > \"$HOME/numbers\"";
        let whole = "\"$0\" run --rm -q -- cat < \"$HOME/numbers\" > \"$HOME/copy\"";
        let same = "cmp \"$HOME/numbers\" \"$HOME/copy\"";
        // More than one piece, and not a whole number of them.
        let part = "{ \"$0\" run --rm -q -- head -c 1000001 > \"$HOME/copy\"; cat >> \"$HOME/copy\"; } < \"$HOME/numbers\"";
        let script = format!("{numbers} && {whole} && {same} && {part} && {same}");
        around(&env, &source, &script).expect_code(0).unused();
    }
}

#[test]
fn redirected_errors_do_not_end_up_on_the_terminal() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if require::program("script").is_none() {
        return require::skip("a terminal needs the program `script`");
    }
    let source = env.repository("r");
    let inner =
        format!("'{}' run --rm -q -- sh -c 'echo out; echo err >&2' 2> errors", env.binary().display());
    let ended = env.run("script").args(["-qec", &inner, "/dev/null"]).directory(&source).ended();
    let shown = ended.expect_code(0).stdout;
    assert!(shown.contains("out") && !shown.contains("err"), "{shown}");
    assert_eq!(fs_err::read_to_string(source.join("errors")).unwrap(), "err\n");
}
