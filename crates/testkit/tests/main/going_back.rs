//! Nothing is lost on the way back: what no state speaks of is as it was after `undo`, `redo` and `rollback`.

use std::path::{Path, PathBuf};

use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::fingerprint::Fingerprint;

use crate::cli::Unused;

/// A repository with files that git ignores.
fn repository(env: &TestEnv) -> PathBuf {
    let source = env.repository("r");
    env.file(&source.join(".gitignore"), ".env\nnode_modules/\n");
    env.git(&source, &["add", "-A"]);
    env.git(&source, &["commit", "-q", "-m", "rules"]);
    env.file(&source.join(".env"), "SECRET=1\n");
    env.file(&source.join(".git/info/exclude"), "notes\n");
    env.file(&source.join("notes"), "mine\n");
    env.directory(&source.join("node_modules/m"));
    env.file(&source.join("node_modules/m/index.js"), "1\n");
    env.directory(&source.join("venv"));
    env.file(&source.join("venv/.gitignore"), "*\n");
    env.file(&source.join("venv/python"), "#!\n");
    source
}

fn done(env: &TestEnv, directory: &Path, args: &[&str]) -> String {
    let done = env.sandtable().directory(directory).args(args).ended().expect_code(0);
    done.stdout + &done.stderr
}

/// The newest state of the source, as the log has it.
fn state(env: &TestEnv, source: &Path) -> String {
    let log: serde_json::Value = serde_json::from_str(
        &env.sandtable().directory(source).args(["log", "--json", "."]).ended().expect_code(0).stdout,
    )
    .unwrap();
    log["operations"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .find_map(|one| one["after"].as_str())
        .unwrap()
        .to_owned()
}

#[test]
fn files_that_git_ignores_survive_every_way_back_of_a_directory() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = repository(&env);
        let all = Fingerprint::of(&source, &[]);
        let same = |what: &str| {
            assert_eq!(all.differences(&Fingerprint::of(&source, &[])), [""; 0], "{what}");
        };
        env.run_script(&source, &["--name", "a"], "true").expect_code(0).unused();
        let of_run = state(&env, &source);
        let _said = done(&env, &source, &["snapshot"]);
        let said = done(&env, &source, &["undo"]);
        assert!(said.contains("`snapshot`") && said.contains("no file"), "{said}");
        same("undo of a snapshot");
        let _said = done(&env, &source, &["redo", "."]);
        same("redo of a snapshot");
        let said = done(&env, &source, &["rollback", &of_run, "."]);
        assert!(said.contains("node_modules"), "{said}");
        same("rollback to the state of a run");
        env.file(&source.join("new"), "since\n");
        let _said = done(&env, &source, &["rollback", &of_run, "."]);
        same("a new file is gone");
        let _said = done(&env, &source, &["undo", "."]);
        assert_eq!(fs_err::read_to_string(source.join("new")).unwrap(), "since\n");
        assert_eq!(fs_err::read_to_string(source.join("venv/python")).unwrap(), "#!\n");
    }
}

#[test]
fn undoing_a_snapshot_keeps_what_the_user_wrote_since() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = repository(&env);
    let _said = done(&env, &source, &["snapshot"]);
    env.file(&source.join("README.md"), "edited\n");
    let _said = done(&env, &source, &["snapshot"]);
    let edited = Fingerprint::of(&source, &[]);
    let _said = done(&env, &source, &["undo", "."]);
    let _said = done(&env, &source, &["redo", "."]);
    assert_eq!(edited.differences(&Fingerprint::of(&source, &[])), [""; 0]);
}

#[test]
fn ignored_files_of_the_source_are_seen_inside_after_undo_and_redo() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = repository(&env);
        let script = "mkdir node_modules/.cache; echo 1 > node_modules/.cache/c";
        env.run_script(&source, &["--name", "a"], script).expect_code(0).unused();
        let _said = done(&env, &source, &["undo", "a"]);
        let _said = done(&env, &source, &["redo", "a"]);
        let seen = done(&env, &source, &["exec", "-q", "a", "--", "cat", "node_modules/m/index.js", ".env"]);
        assert_eq!(seen, "1\nSECRET=1\n");
    }
}
