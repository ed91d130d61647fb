//! A command sees what the user changes while it runs. A commit inside that contains some of that is found and named.

use std::path::Path;
use std::time::Duration;

use sandtable_testkit::env::TestEnv;
use sandtable_testkit::process::Ended;

use crate::cli::Unused as _;
use crate::git_base::{each, inside};

/// Runs a script in a new sandbox `a`; once that has made `ready`, `outside` is done, and the script can go on.
fn meanwhile(env: &TestEnv, source: &Path, script: &str, outside: impl FnOnce() + Send) -> Ended {
    let upper = env.sandboxes().join("a/workspace.upper");
    let script = format!("touch ready; until test -e /tmp/go; do sleep 0.02; done; rm ready; {script}");
    std::thread::scope(|scope| {
        let user = scope.spawn(move || {
            let base = upper.with_file_name("base.json");
            while !(upper.join("ready").exists() && base.exists()) {
                std::thread::sleep(Duration::from_millis(20));
            }
            outside();
            inside(env, "a", "touch /tmp/go");
        });
        let ended = env.run_script(source, &["--name", "a"], &script);
        user.join().unwrap();
        ended
    })
}

fn merge(env: &TestEnv, source: &Path, words: &[&str]) -> (i32, String) {
    let ended = env.sandtable().directory(source).arg("merge").args(words).args(["-m", "merged"]).ended();
    (ended.code, format!("{}{}", ended.stdout, ended.stderr))
}

/// What the user changes: a file, a new one, and one that goes.
fn edit(env: &TestEnv, source: &Path) {
    env.file(&source.join("README"), "Mine.\n");
    env.file(&source.join("notes/mine.txt"), "Mine.\n");
    fs_err::remove_file(source.join("docs/guide.txt")).unwrap();
}

#[test]
fn a_commit_with_an_edit_of_the_users_is_named_and_not_brought_as_history() {
    each(|env| {
        let source = env.repository("r");
        let script =
            "echo agent > agent.txt; git add -A; git commit -qm 'agent: all'; git rev-parse --short=12 HEAD";
        let ended = meanwhile(env, &source, script, || edit(env, &source)).expect_code(0);
        let commit = ended.stdout.trim().to_owned();
        let ended = ended.expect_stderr("[mixed-commits]").expect_stderr(&commit);
        for path in ["`README`", "`notes/mine.txt`", "`docs/guide.txt`", "--base store"] {
            assert!(ended.stderr.contains(path), "{path}: {}", ended.stderr);
        }
        let told = env.sandtable().args(["inspect", "a", "--json"]).ended().expect_code(0).stdout;
        assert!(told.contains("\"mixed-commits\"") && told.contains(&commit), "{told}");

        env.git(&source, &["add", "-A"]);
        env.git(&source, &["commit", "-q", "-m", "my own work"]);
        let head = env.git(&source, &["rev-parse", "HEAD"]);
        let refused = |name: &str| {
            let (code, told) = merge(env, &source, &[name, "--history"]);
            assert_eq!(code, 1, "{told}");
            assert!(told.contains("README") && told.contains("leave out `--history`"), "{told}");
            assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), head);
        };
        refused("a");
        // The same content under another name is the same content.
        inside(env, "a", "git commit -q --amend -m 'agent: better words'");
        refused("a");
        env.sandtable().args(["fork", "a", "--name", "b"]).ended().expect_code(0).unused();
        refused("b");
        let (code, told) = merge(env, &source, &["a"]);
        assert_eq!(code, 0, "{told}");
        let brought = env.git(&source, &["show", "--format=%s", "--name-status", "--first-parent"]);
        assert_eq!(brought, "merged\n\nA\tagent.txt\n");
    });
}

/// An overlay keeps the directory that it found first: one that comes again is empty for the rest of the command.
#[test]
fn a_branch_switched_and_back_leaves_no_removal_in_what_is_brought() {
    each(|env| {
        let source = env.repository("r");
        env.git(&source, &["switch", "-q", "-c", "bare"]);
        env.git(&source, &["rm", "-q", "-r", "src"]);
        env.git(&source, &["commit", "-q", "-m", "no sources"]);
        env.git(&source, &["switch", "-q", "main"]);
        let script = "echo agent > agent.txt; git add agent.txt; git commit -qam 'agent: all'; kill $(cat /tmp/holder)";
        let outside = || {
            // Somebody is in the directory, so the kernel cannot forget it.
            inside(env, "a", "cd src; sleep 600 > /dev/null 2>&1 & echo $! > /tmp/holder");
            env.git(&source, &["switch", "-q", "bare"]);
            env.git(&source, &["switch", "-q", "main"]);
        };
        let ended = meanwhile(env, &source, script, outside).expect_code(0);
        let ended = ended.expect_stderr("[mixed-commits]").expect_stderr("--base store");
        assert!(ended.stderr.contains("`src/main.c`"), "{}", ended.stderr);
        let (code, told) = merge(env, &source, &["a", "--history"]);
        assert_eq!(code, 1, "{told}");
        let (code, told) = merge(env, &source, &["a"]);
        assert_eq!(code, 0, "{told}");
        let brought = env.git(&source, &["show", "--format=%s", "--name-status", "--first-parent"]);
        assert_eq!(brought, "merged\n\nA\tagent.txt\n");
    });
}

#[test]
fn a_commit_with_the_agents_own_work_is_brought_whatever_moved_meanwhile() {
    each(|env| {
        let source = env.repository("r");
        // The agent changes a file and takes that back again, while the user changes it too.
        let script =
            "echo x >> build.sh; git commit -qam 'agent: build'; git revert --no-edit HEAD > /dev/null
            echo agent > agent.txt; git add agent.txt; git commit -qm 'agent: add'";
        let outside = || {
            edit(env, &source);
            env.file(&source.join("build.sh"), "#!/bin/sh\necho mine\n");
        };
        let ended = meanwhile(env, &source, script, outside).expect_code(0);
        assert!(!ended.stderr.contains("[mixed-commits]"), "{}", ended.stderr);
        assert!(ended.stderr.contains("(drift)"), "{}", ended.stderr);
    });
}

#[test]
fn with_a_base_of_its_own_a_sandbox_takes_nothing_along() {
    each(|env| {
        let source = env.repository("r");
        let script = "touch ready; until test -e /tmp/go; do sleep 0.02; done; rm ready
            echo agent > agent.txt; git add -A; git commit -qm 'agent: all'; touch /tmp/done; sleep 600";
        let run = ["run", "-q", "-d", "--base", "store", "--name", "a", "--", "sh", "-c", script];
        env.sandtable().directory(&source).args(run).ended().expect_code(0).unused();
        edit(env, &source);
        inside(env, "a", "touch /tmp/go; until test -e /tmp/done; do sleep 0.02; done");
        env.sandtable().args(["stop", "a"]).ended().expect_code(0).unused();
        let shown = inside(env, "a", "git show --format=%s --name-status");
        assert_eq!(shown, "agent: all\n\nA\tagent.txt\n");
        env.git(&source, &["add", "-A"]);
        env.git(&source, &["commit", "-q", "-m", "my own work"]);
        let (code, told) = merge(env, &source, &["a", "--history"]);
        assert_eq!(code, 0, "{told}");
    });
}
