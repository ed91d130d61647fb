//! What `rm` and `prune` remove is recorded before, or the answer says that it is not.

use std::path::Path;

use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::require;

use crate::adversity::ready;
use crate::cli::Unused;

/// A sandbox whose supervisor was killed after its command wrote `work`.
fn killed(env: &TestEnv, source: &Path, options: &[&str]) {
    let mut child = ready(env, source, options, "echo work > work; echo ready; sleep 60");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The same in a sandbox that is there.
fn killed_later(env: &TestEnv, name: &str) {
    let words = ["exec", name, "--", "sh", "-c", "echo work > work; echo ready; sleep 60"];
    let mut child = env.sandtable().args(words).started();
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 6]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}

fn done(env: &TestEnv, args: &[&str]) -> String {
    let done = env.sandtable().directory(env.root().join("r")).args(args).ended().expect_code(0);
    done.stdout + &done.stderr
}

/// The state that a message says brings the work back.
fn promised(said: &str) -> &str {
    let found = said.split("`sandtable fork ").nth(1).and_then(|rest| rest.split('`').next());
    found.unwrap_or_else(|| panic!("no state is named: {said}"))
}

#[test]
fn what_is_removed_can_be_brought_back_as_it_says() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let back = |name: &str, said: &str| {
            done(&env, &["fork", promised(said), "--name", name]);
            assert_eq!(done(&env, &["exec", "-q", name, "--", "cat", "work"]), "work\n", "{name}: {said}");
        };
        for mode in ["overlay", "copy"] {
            killed(&env, &source, &["--name", "a", "--mode", mode]);
            back(&format!("interrupted-{mode}"), &done(&env, &["rm", "a"]));
        }
        env.run_script(&source, &["--name", "b"], "echo old > work").expect_code(0).unused();
        killed_later(&env, "b");
        back("later", &done(&env, &["rm", "b"]));
        let mut child = ready(&env, &source, &["--name", "c"], "echo work > work; echo ready; sleep 60");
        back("running", &done(&env, &["rm", "-f", "c"]));
        child.wait().unwrap();
        killed(&env, &source, &["--name", "d"]);
        let said = done(&env, &["prune", "--all"]);
        back(
            "pruned",
            said.lines().find(|line| line.contains("d:") && line.contains("fork")).unwrap_or(&said),
        );
    }
}

#[test]
fn what_no_state_holds_is_named_when_it_goes() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "a"], "mkfifo pipe; echo x > x").expect_code(0).unused();
    let said = done(&env, &["rm", "a"]);
    assert!(said.contains("`pipe` is a named pipe"), "{said}");
}

/// What is to be recorded may be more than anybody wants to wait for.
#[test]
fn what_is_removed_by_force_is_not_recorded_first() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    for mode in ["overlay", "copy"] {
        let options = ["--name", "a", "--mode", mode];
        env.run_script(&source, &options, "echo old > work").expect_code(0).unused();
        killed_later(&env, "a");
        let said = done(&env, &["rm", "-f", "a"]);
        assert!(said.contains("was not recorded and is lost: it was removed by force"), "{mode}: {said}");
        done(&env, &["fork", promised(&said), "--name", mode]);
        assert_eq!(done(&env, &["exec", "-q", mode, "--", "cat", "work"]), "old\n", "{mode}: {said}");
    }
    env.run_script(&source, &["--name", "b"], "echo work > work").expect_code(0).unused();
    let said = done(&env, &["rm", "-f", "b"]);
    assert!(said.contains("fork") && !said.contains("lost"), "what is recorded already is not lost: {said}");
}

#[test]
fn work_that_cannot_be_recorded_goes_only_by_force() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let stores = env.sandboxes().with_file_name("stores");
    // Without its store and without its source nobody knows what it was made on.
    env.run_script(&source, &["--name", "a"], "echo work > work").expect_code(0).unused();
    env.run_script(&source, &["--name", "lost"], "echo work > work").expect_code(0).unused();
    fs_err::remove_dir_all(&stores).unwrap();
    fs_err::rename(&source, env.root().join("elsewhere")).unwrap();
    let upper = env.sandboxes().join("a/workspace.upper/work");
    for words in [&["rm", "a"][..], &["prune", "--all"]] {
        let refused = env.sandtable().args(words).ended();
        assert!(refused.code != 0 && upper.exists(), "{words:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("`a`") && refused.stderr.contains("rm -f a"), "{}", refused.stderr);
    }
    let gone = env.sandtable().args(["rm", "-f", "a"]).ended().expect_code(0);
    assert!(gone.stderr.contains("not recorded") && !gone.stderr.contains("fork"), "{}", gone.stderr);
    assert!(!upper.exists());
    // Nor is it known of one whose record is lost, while its last command is not recorded.
    env.file(&env.sandboxes().join("lost/unrecorded"), "");
    fs_err::remove_file(env.sandboxes().join("lost/sandbox.json")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let refused = env.sandtable().args(["rm", "lost"]).ended();
    assert!(refused.code != 0 && refused.stderr.contains("rm -f lost"), "{}", refused.stderr);
    env.sandtable().args(["rm", "-f", "lost"]).ended().expect_code(0).unused();
}

#[test]
fn on_a_full_disk_nothing_unrecorded_is_removed_unheard() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if !require::is_root() {
        return require::skip("mounting a small disk needs root");
    }
    let source = env.repository("r");
    // The disk is mounted in a namespace that ends with the script.
    let script = "mount -t tmpfs -o size=64m small \"$XDG_DATA_HOME\" || exit 99
        \"$0\" run -q --name kept -- sh -c 'echo kept > kept' || exit 98
        \"$0\" run -q --name full -- sh -c 'echo work > made; cat /dev/zero > big'
        \"$0\" rm full; echo rm $?
        test -e \"$XDG_DATA_HOME/sandtable/sandboxes/full/workspace.upper/made\" && echo there
        \"$0\" rm kept; echo kept $?
        \"$0\" rm -f full; echo force $?
        \"$0\" ls -q";
    env.directory(&env.home().join(".local/share"));
    let ended = env.run("sh").args(["-c", script]).arg(env.binary()).through(["unshare", "-m"]);
    let ended = ended.directory(&source).ended();
    assert_eq!(ended.stdout, "rm 125\nthere\nkept 0\nforce 0\n", "{}", ended.stderr);
}
