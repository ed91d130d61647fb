//! The states of sandboxes: recorded by every command, looked at, gone back to.

use sandtable_testkit::env::{Caller, TestEnv};

use crate::cli::Unused;

#[test]
fn a_sandbox_goes_back_and_forth_between_its_states() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let before = env.fingerprint(&source);
        let cat = || env.sandtable().args(["exec", "-q", "box", "--", "cat", "f"]).ended().stdout;
        let done = |args: &[&str]| env.sandtable().args(args).ended().expect_code(0);
        env.run_script(&source, &["--name", "box"], "echo one > f").expect_code(0).unused();
        let first = done(&["snapshot", "box"]).stdout.trim().to_owned();
        done(&["exec", "-q", "box", "--", "sh", "-c", "echo two > f"]).unused();
        assert_eq!(done(&["diff", &first, "box", "--name-status"]).stdout, "M\tf\n");
        env.sandtable().args(["diff", &first, "box", "--exit-code"]).ended().expect_code(1).unused();
        done(&["rollback", &first, "box"]).unused();
        assert_eq!(cat(), "one\n");
        done(&["undo", "box"]).unused();
        assert_eq!(cat(), "two\n");
        done(&["redo", "box"]).unused();
        assert_eq!(cat(), "one\n");
        done(&["fork", &first, "--name", "other"]).unused();
        let theirs = ["exec", "-q", "other", "--", "sh", "-c", "cat f; echo three > f"];
        assert_eq!(done(&theirs).stdout, "one\n");
        assert_eq!(cat(), "one\n");
        assert_eq!(done(&["diff", "box", "other", "--name-status"]).stdout, "M\tf\n");
        let graph = env.sandtable().directory(&source).args(["log", "--graph"]).ended().expect_code(0).stdout;
        let drawn: Vec<&str> = graph.lines().map(|line| line.split("  ").next().unwrap()).collect();
        // The fork and what came after the first state are two lines of descent from it.
        assert_eq!(drawn, ["*", "| *", "|/", "*", "*"], "{graph}");
        let noted = done(&["snapshot", "box", "-m", "it works", "--parent", &first, "--json"]).stdout;
        assert!(noted.contains(&format!("\"parent\": \"{first}\"")), "{noted}");
        assert!(done(&["log", "box", "--json"]).stdout.contains("\"message\": \"it works\""));
        let target = source.to_str().unwrap();
        let refused = env.sandtable().args(["checkout", &first, target]).ended().expect_code(2);
        assert!(refused.stderr.contains("is a source"), "{}", refused.stderr);
        assert_eq!(before.differences(&env.fingerprint(&source)), [""; 0]);
    }
}

#[test]
fn what_moves_in_the_source_is_not_seen_inside() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.root().join("r");
        env.directory(&source.join("d"));
        for (name, text) in [("kept", "old\n"), ("gone", "here\n"), ("d/e", "deep\n")] {
            env.file(&source.join(name), text);
        }
        env.run_script(&source, &["--name", "box"], "echo mine > own").expect_code(0).unused();
        env.file(&source.join("kept"), "new\n");
        fs_err::remove_file(source.join("gone")).unwrap();
        fs_err::remove_dir_all(source.join("d")).unwrap();
        env.file(&source.join("more"), "");
        let script = "cat kept gone d/e own; ls";
        let seen = env.sandtable().args(["exec", "-q", "box", "--", "sh", "-c", script]).ended();
        assert_eq!(seen.expect_code(0).stdout, "old\nhere\ndeep\nmine\nd\ngone\nkept\nown\n");
    }
}

#[test]
fn git_reads_the_store_and_a_checkout_is_the_state() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "box"], "mkdir -p a/b; echo x > a/b/c; ln -s nowhere l")
        .expect_code(0)
        .unused();
    let path = env.sandtable().directory(&source).args(["store", "path"]).ended().expect_code(0).stdout;
    let git = |args: &[&str]| {
        let all: Vec<&str> = ["--git-dir", path.trim()].into_iter().chain(args.iter().copied()).collect();
        env.git(env.root(), &all)
    };
    git(&["fsck", "--strict"]);
    assert_eq!(git(&["log", "--all", "--topo-order", "--format=%s"]), "run\nthe source\n");
    let out = env.root().join("out");
    env.sandtable().args(["checkout", "box"]).arg(&out).ended().expect_code(0).unused();
    assert_eq!(fs_err::read_to_string(out.join("a/b/c")).unwrap(), "x\n");
    assert_eq!(fs_err::read_link(out.join("l")).unwrap().to_str(), Some("nowhere"));
    let full = env.root().join("full");
    env.directory(&full);
    env.file(&full.join("f"), "");
    let refused = env.sandtable().args(["checkout", "box"]).arg(&full).ended().expect_code(2);
    assert!(refused.stderr.contains("is not empty"), "{}", refused.stderr);
    let sound = env.sandtable().directory(&source).args(["store", "fsck", "--deep"]).ended();
    assert!(sound.expect_code(0).stdout.contains("all is as it was written"));
}

#[test]
fn a_state_that_is_not_there_is_the_callers_mistake() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    for args in [&["diff", "0000", "1111"][..], &["undo", "box"], &["rollback", "0000", "box"]] {
        env.sandtable().args(args).ended().expect_code(2).unused();
    }
}

#[test]
fn work_comes_home_when_what_is_held_is_approved() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let script = "echo new > n; printf '#!/bin/sh\\n' > tool; chmod +x tool";
        env.run_script(&source, &["--name", "box"], script).expect_code(0).unused();
        let before = env.fingerprint(&source);
        let held = env.sandtable().args(["merge", "box"]).ended().expect_code(1);
        assert!(held.stdout.contains("held tool"), "{}", held.stdout);
        let named = ["merge", "box", "--approve", "tool", "--approve", "tol"];
        let named = env.sandtable().args(named).ended().expect_code(2).stdout;
        assert!(named.contains("tol: nothing is held there"), "{named}");
        assert!(named.contains("`--approve` one of these: `tool`"), "{named}");
        assert_eq!(before.differences(&env.fingerprint(&source)), [""; 0]);
        let merged = env.sandtable().args(["merge", "box", "--approve", "tool", "-m", "Add n"]).ended();
        merged.expect_code(0).unused();
        assert_eq!(env.git(&source, &["log", "-1", "--format=%s"]), "Add n\n");
        assert_eq!(env.git(&source, &["status", "--porcelain"]), "");
        assert_eq!(fs_err::read_to_string(source.join("n")).unwrap(), "new\n");
        let again = ["merge", "box", "--approve", "tool", "--approve", "n"];
        env.sandtable().args(again).ended().expect_code(0).unused();
        for bad in [
            &["merge", "nothing"][..],
            &["merge", "box", "--only", "../x"],
            &["merge", "box", "--only", "none"],
            &["merge", "box", "-m", ""],
            &["apply", "box", "-m", " "],
            &["export", "box"],
        ] {
            env.sandtable().args(bad).ended().expect_code(2).unused();
        }
        let unknown = env.sandtable().directory(&source).args(["undo", "--merge", "0123456789abcdef"]);
        let unknown = unknown.ended().expect_code(2).stderr;
        assert!(unknown.contains("neither the id of a merge or apply nor a directory"), "{unknown}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "box"], "echo more >> docs/guide.txt").expect_code(0).unused();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    fs_err::set_permissions(source.join("docs/guide.txt"), mode).unwrap();
    for way in ["merge", "apply"] {
        let said = env.sandtable().directory(&source).args([way, "box"]).ended();
        assert_ne!(said.code, 0, "{}", said.stdout);
        assert!(said.stderr.contains("cannot read `docs/guide.txt`"), "{}", said.stderr);
    }
}

#[test]
fn a_running_sandbox_is_recorded_as_of_one_moment() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let script = "i=0; while :; do i=$((i + 1)); echo $i > x; echo $i > y; done";
        let run = ["run", "-q", "-d", "--name", "box", "--", "sh", "-c", script];
        env.sandtable().directory(&source).args(run).ended().expect_code(0).unused();
        for round in 0..5 {
            let text = env.sandtable().args(["snapshot", "box", "--json"]).ended().expect_code(0).stdout;
            assert!(text.contains("\"consistency\": \"frozen\""), "{text}");
            let out = env.home().join(format!("out-{round}"));
            env.sandtable().args(["checkout", "box"]).arg(&out).ended().expect_code(0).unused();
            let number = |name: &str| fs_err::read_to_string(out.join(name)).unwrap_or_default();
            let number = |name: &str| number(name).trim().parse::<u64>().unwrap_or(0);
            // Between its two writes the second file is one behind, and while a file is written it is empty.
            let (x, y) = (number("x"), number("y"));
            assert!(x == 0 || y == 0 || x == y || x == y + 1, "{x} and {y}");
        }
        env.sandtable().args(["rm", "-f", "box"]).ended().expect_code(0).unused();
    }
}
