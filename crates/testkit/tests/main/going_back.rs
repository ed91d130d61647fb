//! Nothing is lost on the way back: what no state speaks of is as it was after `undo`, `redo` and `rollback`.

use std::path::{Path, PathBuf};

use sandtable_testkit::container::Contained;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::Run;
use sandtable_testkit::require;

use crate::cli::Unused;
use crate::git_inside::PROGRAMS;

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
        let all = env.fingerprint(&source);
        let git_time = fs_err::metadata(source.join(".git")).unwrap().modified().unwrap();
        let same = |what: &str| {
            assert_eq!(all.differences(&env.fingerprint(&source)), [""; 0], "{what}");
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
        // Files wait in `.git` before they are exchanged, which moves its time as every call of git does.
        std::fs::File::open(source.join(".git")).unwrap().set_modified(git_time).unwrap();
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
    let edited = env.fingerprint(&source);
    for way in ["undo", "redo"] {
        let _said = done(&env, &source, &[way, "."]);
        assert_eq!(edited.differences(&env.fingerprint(&source)), [""; 0], "{way}");
    }
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

/// Everything that no state can hold, made inside.
const UNHELD: &str = "mkfifo pipe; mkdir d; mkfifo d/pipe; echo s > secret; chmod 000 secret; truncate -s 5G huge; \
     mkdir locked; echo l > locked/l; chmod 000 locked; \
     git init -q nested; echo n > nested/f; git -C nested add f; \
     git -C nested -c user.name=a -c user.email=a@b commit -q -m one; rm -rf node_modules; echo k > keep";

/// Whether all of it is there.
const LOOK: &str = "set -e; test -p pipe; test -p d/pipe; test $(stat -c %s huge) = 5368709120; \
     test $(stat -c %a secret) = 0; chmod 600 secret; cat secret; chmod 000 secret; \
     test $(stat -c %a locked) = 0; chmod 700 locked; cat locked/l; chmod 000 locked; \
     git -C nested log -1 --format=%s; test ! -e node_modules";

#[test]
fn what_no_state_holds_survives_every_way_back_of_a_sandbox() {
    for (caller, mode) in [
        (Caller::Same, "overlay"),
        (Caller::ordinary(), "overlay"),
        (Caller::Same, "copy"),
        (Caller::ordinary(), "copy"),
    ] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = repository(&env);
        let name = ["--name", "a", "--mode", mode];
        env.run_script(&source, &name, UNHELD).expect_code(0).unused();
        let first = done(&env, &source, &["snapshot", "a"]).lines().next().unwrap().to_owned();
        let look = |after: &str| {
            let seen =
                env.sandtable().directory(&source).args(["exec", "-q", "a", "--", "sh", "-c", LOOK]).ended();
            assert_eq!(seen.expect_code(0).stdout, "s\nl\none\n", "{mode}, after {after}");
        };
        let _said = done(&env, &source, &["exec", "-q", "a", "--", "sh", "-c", "echo 2 >> keep"]);
        for step in [&["undo", "a"][..], &["redo", "a"], &["rollback", &first, "a"], &["undo", "a"]] {
            let _said = done(&env, &source, step);
            look(step[0]);
        }
    }
}

/// Made inside: a socket, and work in the files of a submodule, which are no part of a state.
const MORE_UNHELD: &str = "perl -e 'use Socket; socket(S,PF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un(q(socket))) or die'; \
     echo work > sub/work; echo changed > sub/file; echo k > keep";

/// A submodule `sub` with one file.
fn add_submodule(env: &TestEnv, source: &Path) {
    let sub = env.root().join("sub");
    env.file(&sub.join("file"), "as it was\n");
    for args in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "one"]] {
        env.git(&sub, args);
    }
    let from = sub.display().to_string();
    env.git(source, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "sub"]);
    env.git(source, &["commit", "-q", "-m", "with a submodule"]);
}

#[test]
fn sockets_and_work_in_submodules_survive_every_way_back_of_a_sandbox() {
    if sandtable_testkit::require::program("perl").is_none() {
        return sandtable_testkit::require::skip("the socket is made by perl");
    }
    for (caller, mode) in [(Caller::Same, "overlay"), (Caller::ordinary(), "overlay"), (Caller::Same, "copy")]
    {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        add_submodule(&env, &source);
        env.run_script(&source, &["--name", "a", "--mode", mode], MORE_UNHELD).expect_code(0).unused();
        let first = done(&env, &source, &["snapshot", "a"]).lines().next().unwrap().to_owned();
        let _said = done(&env, &source, &["exec", "-q", "a", "--", "sh", "-c", "echo 2 >> keep"]);
        for (step, keep) in [
            (&["undo", "a"][..], "k\n"),
            (&["redo", "a"], "k\n2\n"),
            (&["rollback", &first, "a"], "k\n"),
            (&["undo", "a"], "k\n2\n"),
        ] {
            let _said = done(&env, &source, step);
            let look = "test -S socket && cat sub/work sub/file keep";
            let seen =
                env.sandtable().directory(&source).args(["exec", "-q", "a", "--", "sh", "-c", look]).ended();
            let seen = seen.expect_code(0);
            assert_eq!(seen.stdout, format!("work\nchanged\n{keep}"), "{mode}, after {step:?}");
            assert!(seen.stderr.contains("`socket` is a socket"), "{mode}, after {step:?}: {}", seen.stderr);
        }
        assert_eq!(fs_err::read_to_string(source.join("sub/file")).unwrap(), "as it was\n");
    }
}

#[test]
fn what_would_be_lost_is_named_and_the_way_back_refused() {
    for mode in ["overlay", "copy"] {
        let Some(env) = TestEnv::of_the_executable() else { return };
        let source = env.repository("r");
        env.run_script(&source, &["--name", "a", "--mode", mode], "echo one > f").expect_code(0).unused();
        let _said = done(&env, &source, &["exec", "-q", "a", "--", "sh", "-c", "rm f; mkfifo f"]);
        let refused = env.sandtable().directory(&source).args(["undo", "a"]).ended();
        assert!(refused.code != 0 && refused.stderr.contains("`f`"), "{mode}: {}", refused.stderr);
        let _said = done(&env, &source, &["exec", "-q", "a", "--", "test", "-p", "f"]);
        // What the source has is in no layer.
        let replaced = [
            ("README", "rm README; mkfifo README"),
            ("docs", "rm -r docs; mkfifo docs"),
            ("build.sh", "rm build.sh; mkdir build.sh; mkfifo build.sh/p"),
        ];
        for (path, script) in replaced {
            env.run_script(&source, &["-q", "--name", "b", "--mode", mode], "echo one > g")
                .expect_code(0)
                .unused();
            let _said = done(&env, &source, &["exec", "-q", "b", "--", "sh", "-c", script]);
            let refused = env.sandtable().directory(&source).args(["undo", "b"]).ended();
            assert!(refused.code != 0 && refused.stderr.contains(path), "{mode}: {}", refused.stderr);
            let _said = done(&env, &source, &["rm", "--force", "b"]);
        }
    }
}

/// Made inside, and held by no state: of each kind one.
const NONE_HELD: &str = "mkfifo pipe; truncate -s 5G huge; echo work > sub/work; git init -q nested; echo n > nested/n; \
                         echo s > secret; chmod 0 secret; echo x > x";

/// What is said of these. Root may read everything.
fn unheld(env: &TestEnv) -> Vec<(&'static str, &'static str, &'static str)> {
    let mut all = vec![
        ("pipe", "is a named pipe", "fifo"),
        ("huge", "is larger than 4 GiB", "too-large"),
        ("sub", "holds the files of another repository", "submodule"),
        ("nested/.git", "is the git directory of a repository within", "repository"),
    ];
    if env.caller() != Caller::Same || !require::is_root() {
        all.push(("secret", "may not be read", "unreadable"));
    }
    all
}

/// Each command that shows a state or makes one of it names what the state does not hold.
fn named_every_time(env: &TestEnv, source: &Path, run: &Run, sandtable: &dyn Fn() -> Run) {
    let all = unheld(env);
    let check = |what: &[&str], said: &str| {
        for (path, why, _) in &all {
            assert!(said.contains(&format!("`{path}` {why}")), "{what:?}, {path}: {said}");
        }
    };
    let ended = |args: &[&str]| sandtable().directory(source).args(args).ended().expect_code(0);
    check(&["run"], &run.clone().args(["--", "sh", "-c", NONE_HELD]).ended().expect_code(0).stderr);
    let id = ended(&["snapshot", "a"]).stdout.trim().to_owned();
    let place = |name: &str| env.home().join(name).to_str().unwrap().to_owned();
    let (out, patch) = (place("out"), place("patch"));
    for args in [
        &["exec", "a", "--", "true"][..],
        &["diff", "a"],
        &["diff", "a", "--stat"],
        &["export", "a", "--patch", &patch],
        &["export", "a", "--branch", "work"],
        &["merge", "a", "--dry-run"],
        &["merge", "a"],
        &["apply", "a"],
        &["checkout", "a", &out],
        &["exec", "-q", "a", "--", "true"],
        &["fork", "a", "--name", "b"],
        &["verify", "a"],
        &["verify", "a", "--", "true"],
        &["exec", "a", "--", "sh", "-c", "echo y > y"],
        &["undo", "a"],
        &["redo", "a"],
        &["rollback", &id, "a"],
        &["rollback", &id, &out],
    ] {
        let said = ended(args);
        check(args, &(said.stdout + &said.stderr));
    }
    let json = |args: &[&str]| -> serde_json::Value { serde_json::from_str(&ended(args).stdout).unwrap() };
    let merged = json(&["merge", "a", "--dry-run", "--json"]);
    assert!(merged["notes"].as_array().unwrap().iter().any(|note| note["code"] == "left-out"), "{merged}");
    for args in [
        &["diff", "a", "--json"][..],
        &["verify", "a", "--json"],
        &["checkout", "a", &place("again"), "--json"],
    ] {
        let answer = json(args);
        for (path, _, why) in &all {
            let is_it = |left: &serde_json::Value| left["path"] == *path && left["why"] == *why;
            assert!(answer["left_out"].as_array().unwrap().iter().any(is_it), "{args:?}, {path}: {answer}");
        }
    }
}

#[test]
fn what_no_state_holds_is_named_every_time() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        add_submodule(&env, &source);
        let run = env.sandtable().directory(&source).args(["run", "--name", "a"]);
        named_every_time(&env, &source, &run, &|| env.sandtable());
    }
}

#[test]
fn what_no_state_of_a_container_holds_is_named_every_time() {
    Contained::each(Contained::new, |world, source| {
        add_submodule(&world.env, &source);
        let run = world.starting(&source).args(PROGRAMS).args(["--name", "a"]);
        named_every_time(&world.env, &source, &run, &|| world.sandtable());
    });
}

/// A state that had it does not bring it back: `undo` of its removal says so.
#[test]
fn what_an_undo_cannot_bring_back_is_named() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "a"], "mkfifo pipe; echo x > x").expect_code(0).unused();
    let _said = done(&env, &source, &["exec", "a", "--", "sh", "-c", "rm pipe; echo y > x"]);
    let undone = done(&env, &source, &["undo", "a"]);
    assert!(undone.contains("`pipe` is a named pipe"), "{undone}");
}

#[test]
fn the_way_back_of_a_merge_is_that_of_the_merge_whatever_came_after() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let before = env.git(&source, &["rev-parse", "HEAD"]);
    env.run_script(&source, &["--name", "a"], "echo a > a").expect_code(0).unused();
    let tried = done(&env, &source, &["merge", "--dry-run"]);
    assert!(tried.contains("sandbox a") && tried.contains("dry run, nothing was touched"), "{tried}");
    let merged = done(&env, &source, &["merge"]);
    assert!(merged.contains("sandbox a") && merged.contains("`undo --merge "), "{merged}");
    env.run_script(&source, &["--name", "b"], "echo b > b").expect_code(0).unused();
    let back = done(&env, &source, &["undo", "--merge"]);
    assert!(back.contains("`merge` of sandbox a was undone"), "{back}");
    assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), before);
    let _said = done(&env, &source, &["redo", "--merge"]);
    assert_ne!(env.git(&source, &["rev-parse", "HEAD"]), before);
    let back = done(&env, &source, &["undo", "b"]);
    assert!(back.contains("`run` in sandbox b was undone"), "{back}");
    env.sandtable().directory(&source).args(["undo", "--merge", "b"]).ended().expect_code(2).unused();
}

#[test]
fn a_message_that_is_the_word_snapshot_is_a_message() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "a"], "echo a > a").expect_code(0).unused();
    let first = done(&env, &source, &["snapshot", "a"]);
    let named = done(&env, &source, &["snapshot", "a", "-m", "snapshot"]);
    assert_ne!(first, named);
    assert_eq!(done(&env, &source, &["snapshot", "a"]), named);
}

#[test]
fn rollbacks_of_one_directory_at_once_all_succeed() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = repository(&env);
    let states = ["one\n", "two\n"].map(|text| {
        for n in 0..20 {
            env.file(&source.join(format!("many/{n}")), text);
        }
        env.sandtable().directory(&source).arg("snapshot").ended().expect_code(0).stdout.trim().to_owned()
    });
    std::thread::scope(|scope| {
        for n in 0..8 {
            let rollback = env.sandtable().directory(&source).args(["rollback", &states[n % 2], "."]);
            scope.spawn(move || rollback.ended().expect_code(0).unused());
        }
    });
    let left: Vec<String> =
        (0..20).map(|n| fs_err::read_to_string(source.join(format!("many/{n}"))).unwrap()).collect();
    assert!(left.windows(2).all(|two| two[0] == two[1]), "half of one and half of the other: {left:?}");
    assert_eq!(fs_err::read_to_string(source.join(".env")).unwrap(), "SECRET=1\n");
}

#[test]
fn an_apply_can_be_undone_and_done_again_whatever_is_collected() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = repository(&env);
    let there = env.repository("there");
    for (target, name) in [(&source, "a"), (&there, "b")] {
        env.run_script(&source, &["-q", "--name", name], "echo new > new").expect_code(0).unused();
        let status = || env.git(target, &["status", "--porcelain"]);
        let before = status();
        let _said = done(&env, &source, &["apply", name, "--into", target.to_str().unwrap()]);
        let _said = done(&env, &source, &["rm", name]);
        for step in ["undo", "redo", "undo"] {
            let _said = done(&env, &source, &["store", "gc"]);
            let _said = done(&env, target, &[step, "."]);
            assert_eq!(target.join("new").exists(), step == "redo", "{name} {step}");
        }
        assert_eq!(status(), before);
    }
}

#[test]
fn an_apply_whose_states_were_forgotten_is_refused_and_changes_nothing() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = repository(&env);
    let there = env.repository("there");
    env.run_script(&source, &["-q", "--name", "a"], "echo new > new").expect_code(0).unused();
    for target in [&source, &there] {
        let _said = done(&env, &source, &["apply", "a", "--into", target.to_str().unwrap()]);
    }
    let _said = done(&env, &source, &["rm", "a"]);
    let _said = done(&env, &source, &["store", "forget", "--yes"]);
    for target in [&source, &there] {
        let before = env.fingerprint(target);
        let refused = env.sandtable().directory(target).args(["undo", "."]).ended().expect_code(1);
        assert!(refused.stderr.contains("[state-collected]"), "{}", refused.stderr);
        assert_eq!(before.differences(&env.fingerprint(target)), [""; 0]);
    }
}

#[test]
fn a_checkout_over_an_earlier_one_names_what_it_did_not_touch() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = repository(&env);
    let out = env.root().join("out");
    let words = ["checkout", "a", out.to_str().unwrap()];
    env.run_script(&source, &["-q", "--name", "a"], "echo one > one").expect_code(0).unused();
    let _said = done(&env, &source, &words);
    env.file(&out.join(".env"), "MINE=1\n");
    let _said = done(&env, &source, &["exec", "-q", "a", "--", "sh", "-c", "echo two > one"]);
    let said = env.sandtable().directory(&source).args(words).ended().expect_code(0);
    assert!(said.stderr.contains("not part of the state, left unchanged: `.env`"), "{}", said.stderr);
    assert_eq!(fs_err::read_to_string(out.join(".env")).unwrap(), "MINE=1\n");
    assert_eq!(fs_err::read_to_string(out.join("one")).unwrap(), "two\n");
    let _said = done(&env, &source, &["exec", "-q", "a", "--", "sh", "-c", "echo three > one"]);
    let answer = done(&env, &source, &[&words[..], &["--json"]].concat());
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["spared"], serde_json::json!([".env"]), "{answer}");
}
