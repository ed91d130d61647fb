//! What a sandbox stands on while its source moves: during a command, between two, and when the source is gone.

use std::ffi::OsString;
use std::path::Path;

use sandtable_testkit::env::{Caller, TestEnv};

use crate::cli::Unused;

/// What users do to a source beside a sandbox.
const DAMAGES: [&str; 4] = ["edit", "delete", "switch", "remove"];

/// A repository with a second branch, an ignored file and an untracked one.
fn source(env: &TestEnv, name: &str) -> std::path::PathBuf {
    let source = env.repository(name);
    env.git(&source, &["checkout", "-q", "-b", "other"]);
    env.file(&source.join("README"), "Another sample.\n");
    env.git(&source, &["commit", "-q", "-a", "-m", "third"]);
    env.git(&source, &["checkout", "-q", "main"]);
    env.file(&source.join(".git/info/exclude"), "*.o\n");
    env.file(&source.join("a.o"), "object\n");
    env.file(&source.join("free"), "untracked\n");
    source
}

fn damage(env: &TestEnv, source: &Path, how: &str) {
    match how {
        "edit" => ["README", "free", "a.o"].iter().for_each(|name| env.file(&source.join(name), "new\n")),
        "delete" => {
            fs_err::remove_dir_all(source.join("src")).unwrap();
            fs_err::remove_file(source.join("README")).unwrap();
        }
        "switch" => drop(env.git(source, &["checkout", "-q", "other"])),
        _ => fs_err::remove_dir_all(source).unwrap(),
    }
}

/// What the source held when the sandbox was made, as the script `LOOK` shows it.
const LOOK: &str = "cat README free src/main.c";
const SEEN: &str = "A sample.\nuntracked\nint main(void) { return 0; }\n";

#[test]
fn a_command_on_a_recorded_base_never_sees_its_source_move() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        for how in DAMAGES {
            let source = source(&env, how);
            let run = ["run", "-q", "-d", "--base", "store", "--name", how, "--", "sleep", "600"];
            env.sandtable().directory(&source).args(run).ended().expect_code(0).unused();
            damage(&env, &source, how);
            // While the first command runs: git, ignored files and all.
            let script =
                format!("{LOOK} a.o; git status --porcelain; git branch --show-current; echo 1 > own");
            let inside = |script: &str| {
                let exec = ["exec", "-q", how, "--", "sh", "-c", script];
                env.sandtable().args(exec).ended().expect_code(0).stdout
            };
            assert_eq!(inside(&script), format!("{SEEN}object\n?? free\nmain\n"), "{how}");
            env.sandtable().args(["stop", how]).ended().expect_code(0).unused();
            // And after it.
            assert_eq!(inside(&format!("{LOOK} own")), format!("{SEEN}1\n"), "{how}");
            let diff = env.sandtable().args(["diff", how, "--name-status"]).ended().expect_code(0);
            assert_eq!(diff.stdout, "A\town\n", "{how}");
            env.sandtable().args(["rm", how]).ended().expect_code(0).unused();
        }
    }
}

#[test]
fn a_sandbox_goes_on_from_what_it_recorded_when_its_source_moved_between_two_commands() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        for how in DAMAGES {
            let source = source(&env, how);
            let done = |args: &[&str]| env.sandtable().args(args).ended().expect_code(0).stdout;
            env.run_script(&source, &["-q", "--name", how], "echo 1 > own").expect_code(0).unused();
            let first = done(&["snapshot", how]).trim().to_owned();
            damage(&env, &source, how);
            let script = format!("{LOOK} own; echo 2 > own; rm free");
            assert_eq!(done(&["exec", "-q", how, "--", "sh", "-c", &script]), format!("{SEEN}1\n"), "{how}");
            assert_eq!(done(&["diff", how, "--name-status"]), "D\tfree\nA\town\n", "{how}");
            done(&["rollback", &first, how]);
            let look = format!("{LOOK} own");
            assert_eq!(done(&["exec", "-q", how, "--", "sh", "-c", &look]), format!("{SEEN}1\n"), "{how}");
            let out = env.home().join(how);
            done(&["checkout", &first, out.to_str().unwrap()]);
            assert_eq!(fs_err::read_to_string(out.join("README")).unwrap(), "A sample.\n", "{how}");
            let other = format!("{how}-2");
            done(&["fork", &first, "--name", &other]);
            let forked = done(&["exec", "-q", &other, "--", "sh", "-c", &look]);
            assert_eq!(forked, format!("{SEEN}1\n"), "{how}");
            done(&["rm", &other]);
            done(&["rm", how]);
        }
    }
}

#[test]
fn a_file_that_was_being_pinned_when_somebody_was_killed_is_written_anew() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = source(&env, "source");
        env.run_script(&source, &["-q", "--name", "a"], "echo 1 > own").expect_code(0).unused();
        damage(&env, &source, "edit");
        let look = ["exec", "-q", "a", "--", "sh", "-c", LOOK];
        assert_eq!(env.sandtable().args(look).ended().expect_code(0).stdout, SEEN);
        // As a kill would have left it in the middle of the first of the two files.
        let sandbox = env.sandboxes().join("a");
        let paths = ["README", "free"].map(OsString::from);
        let pinning = serde_json::json!({ "schema": 1, "made": paths });
        env.file(&sandbox.join("pinning.json"), pinning.to_string());
        env.file(&sandbox.join("workspace.pins/README"), "");
        fs_err::remove_file(sandbox.join("workspace.pins/free")).unwrap();
        assert_eq!(env.sandtable().args(look).ended().expect_code(0).stdout, SEEN);
        assert!(!sandbox.join("pinning.json").exists());
    }
}

#[test]
fn nothing_is_pinned_before_it_is_written_down() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = source(&env, "source");
    env.run_script(&source, &["-q", "--name", "a"], "echo 1 > own").expect_code(0).unused();
    damage(&env, &source, "edit");
    let sandbox = env.sandboxes().join("a");
    let pinned = || ["README", "free"].map(|name| sandbox.join("workspace.pins").join(name).exists());
    // Nobody can write it down.
    let in_the_way = sandbox.join("pinning.json.draft");
    env.directory(&in_the_way);
    let look = ["exec", "-q", "a", "--", "sh", "-c", LOOK];
    let unpinned = env.sandtable().args(look).ended().expect_code(0);
    assert!(unpinned.stderr.contains("pinning.json") && unpinned.stderr.contains("[source-not-compared]"));
    assert_eq!(pinned(), [false, false]);
    fs_err::remove_dir(in_the_way).unwrap();
    assert_eq!(env.sandtable().args(look).ended().expect_code(0).stdout, SEEN);
    assert_eq!(pinned(), [true, true]);
}

#[test]
fn what_is_removed_under_a_running_command_is_back_for_the_next() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        for how in DAMAGES {
            let source = source(&env, how);
            let run = ["run", "-q", "-d", "--name", how, "--", "sleep", "600"];
            env.sandtable().directory(&source).args(run).ended().expect_code(0).unused();
            // A state is there as soon as what the sandbox stands on is.
            env.sandtable().args(["snapshot", how]).ended().expect_code(0).unused();
            damage(&env, &source, how);
            env.sandtable()
                .args(["exec", "-q", how, "--", "sh", "-c", "echo 1 > own || true"])
                .ended()
                .unused();
            env.sandtable().args(["stop", how]).ended().expect_code(0).unused();
            let exec = ["exec", "-q", how, "--", "sh", "-c", LOOK];
            assert_eq!(env.sandtable().args(exec).ended().expect_code(0).stdout, SEEN, "{how}");
        }
    }
}

#[test]
fn a_live_workspace_stands_on_nothing_else() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let refused = env.run_script(&source, &["--mode", "live", "--base", "store"], "true");
    refused.expect_code(2).expect_stderr("the workspace is the source itself").unused();
}
