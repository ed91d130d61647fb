//! Commands that name no sandbox agree on what was done last, and the way back of a merge is that of this merge.

use std::path::Path;

use sandtable_testkit::env::{Caller, TestEnv};

use crate::adversity::ready;
use crate::cli::Unused;

fn killed(env: &TestEnv, source: &Path, name: &str) {
    let mut child = ready(env, source, &["--name", name], "echo work > work; echo ready; sleep 60");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn done(env: &TestEnv, directory: &Path, args: &[&str]) -> String {
    let done = env.sandtable().directory(directory).args(args).ended().expect_code(0);
    done.stdout + &done.stderr
}

fn refused(env: &TestEnv, directory: &Path, args: &[&str]) -> String {
    let ended = env.sandtable().directory(directory).args(args).ended();
    assert_ne!(ended.code, 0, "{args:?}: {}", ended.stderr);
    ended.stdout + &ended.stderr
}

/// The `undo` that a merge says takes it back, as words.
fn advertised(said: &str) -> Vec<String> {
    let line = said.lines().find(|line| line.contains("takes it back")).unwrap_or_else(|| panic!("{said}"));
    let words = line.split('`').nth(1).unwrap();
    words.trim_start_matches("sandtable ").split(' ').map(str::to_owned).collect()
}

#[test]
fn an_interrupted_sandbox_is_the_last_thing_done() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        env.run_script(&source, &["--name", "good"], "echo good > good").expect_code(0).unused();
        killed(&env, &source, "bad");
        let said = done(&env, &source, &["undo"]);
        assert!(said.contains("`run` in sandbox bad was undone"), "{said}");
        assert_eq!(done(&env, &source, &["diff", "--name-status"]), "");
        assert_eq!(done(&env, &source, &["exec", "-q", "good", "--", "cat", "good"]), "good\n");
        let said = done(&env, &source, &["redo"]);
        assert!(said.contains("`run` in sandbox bad was done again"), "{said}");
        assert_eq!(done(&env, &source, &["diff", "--name-status"]), "A\twork\n");
    }
}

/// Neither when work is recorded, nor whether it can be, says when it was done.
#[test]
fn a_merge_after_an_interrupted_sandbox_is_the_last_thing_done() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        env.run_script(&source, &["--name", "good"], "echo good > good").expect_code(0).unused();
        for broken in [false, true] {
            killed(&env, &source, "bad");
            let said = done(&env, &source, &["merge", "good"]);
            assert!(said.contains("A good"), "{said}");
            if broken {
                fs_err::remove_dir_all(env.sandboxes().join("bad/workspace.upper")).unwrap();
            } else {
                // Records what `bad` did.
                let _said = done(&env, &source, &["log"]);
            }
            let said = done(&env, &source, &["undo"]);
            assert!(said.contains("`merge` of sandbox good was undone"), "{said}");
            assert_eq!(said.contains("`bad`"), broken, "{said}");
            let said = done(&env, &source, &["redo"]);
            assert!(said.contains("`merge` of sandbox good was done again"), "{said}");
            let _said = done(&env, &source, &["undo"]);
            if !broken {
                let said = done(&env, &source, &["undo"]);
                assert!(said.contains("`run` in sandbox bad was undone"), "{said}");
            }
            let _said = done(&env, &source, &["rm", "-f", "bad"]);
        }
    }
}

#[test]
fn the_log_has_what_an_interrupted_sandbox_did() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "good"], "true").expect_code(0).unused();
    for args in [&["log"][..], &["log", "bad"]] {
        killed(&env, &source, "bad");
        let said = done(&env, &source, args);
        let runs = said.lines().filter(|line| line.contains("  run  ")).count();
        assert_eq!(runs, 1, "{args:?}: {said}");
        let _said = done(&env, &source, &["rm", "bad"]);
    }
}

#[test]
fn a_snapshot_of_an_interrupted_sandbox_is_taken_back_without_changing_a_file() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    killed(&env, &source, "bad");
    let work = || done(&env, &source, &["diff", "bad", "--name-status"]);
    let _said = done(&env, &source, &["snapshot", "bad"]);
    let said = done(&env, &source, &["undo", "bad"]);
    assert!(said.contains("`snapshot` in sandbox bad was undone"), "{said}");
    assert_eq!(work(), "A\twork\n");
    let said = done(&env, &source, &["undo", "bad"]);
    assert!(said.contains("`run` in sandbox bad was undone"), "{said}");
    assert_eq!(work(), "");
}

#[test]
fn what_cannot_be_recorded_keeps_nobody_from_the_way_back_by_name() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "good"], "echo good > good").expect_code(0).unused();
    killed(&env, &source, "bad");
    fs_err::remove_dir_all(env.sandboxes().join("bad/workspace.upper")).unwrap();
    let said = refused(&env, &source, &["undo"]);
    assert!(said.contains("`bad`"), "{said}");
    let said = done(&env, &source, &["undo", "good"]);
    assert!(said.contains("in sandbox good was undone"), "{said}");
}

#[test]
fn the_advertised_way_back_is_that_of_this_merge_wherever_it_went() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let (one, other) = (env.repository("one"), env.repository("other"));
        let tree = env.root().join("tree");
        env.directory(&tree);
        env.git(&one, &["worktree", "add", "-q", "-b", "tree", tree.to_str().unwrap()]);
        let tip = |directory: &Path| env.git(directory, &["rev-parse", "HEAD"]);
        let places = [one.as_path(), other.as_path(), tree.as_path()];
        env.run_script(&one, &["--name", "a"], "echo a > a").expect_code(0).unused();
        env.run_script(&other, &["--name", "b"], "echo b > b").expect_code(0).unused();
        env.run_script(&one, &["--name", "c"], "echo c > c").expect_code(0).unused();
        // Another one that a bare `undo --merge` would mean.
        let _said = done(&env, &other, &["merge", "b"]);
        let into = tree.to_str().unwrap();
        for (from, words, to) in [
            (&other, &["merge", "a"][..], &one),
            (&tree, &["merge", "a"], &one),
            (&other, &["apply", "a"], &one),
            (&one, &["merge", "c", "--into", into], &tree),
            (&one, &["merge", "a"], &one),
        ] {
            let before = places.map(tip);
            let said = done(&env, from, words);
            assert!(from == to || said.contains(to.to_str().unwrap()), "{words:?} from {from:?}: {said}");
            let back = advertised(&said);
            // Whatever happens meanwhile.
            let _said =
                done(&env, &other, &["apply", "b", "--into", env.root().join("home").to_str().unwrap()]);
            env.run_script(&one, &["--rm"], "true").expect_code(0).unused();
            let back: Vec<&str> = back.iter().map(String::as_str).collect();
            let undone = done(&env, from, &back);
            assert!(undone.contains("was undone"), "{back:?}: {undone}");
            assert_eq!(places.map(tip), before, "{words:?}, {back:?}: {undone}");
            assert!(!to.join("a").exists() && !to.join("c").exists(), "{words:?}, {back:?}: {undone}");
        }
    }
}

#[test]
fn the_way_back_of_a_merge_is_not_that_of_a_later_one() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "a"], "echo a > a").expect_code(0).unused();
    env.run_script(&source, &["--name", "b"], "echo b > b").expect_code(0).unused();
    let first = advertised(&done(&env, &source, &["merge", "a"]));
    let second = advertised(&done(&env, &source, &["merge", "b"]));
    let tip = env.git(&source, &["rev-parse", "HEAD"]);
    let words = |back: &[String]| back.iter().map(String::clone).collect::<Vec<String>>();
    let step = |back: &[String]| env.sandtable().directory(&source).args(words(back)).ended();
    let early = step(&first);
    assert!(early.code != 0 && early.stderr.contains("sandbox b"), "{first:?}: {}", early.stderr);
    assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), tip);
    step(&second).expect_code(0).expect_stderr("of sandbox b was undone").unused();
    step(&first).expect_code(0).expect_stderr("of sandbox a was undone").unused();
    let again = step(&first);
    assert_ne!(again.code, 0, "{}", again.stderr);
}

#[test]
fn a_merge_into_another_branch_is_not_in_the_way() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let tip = env.git(&source, &["rev-parse", "main"]);
    env.run_script(&source, &["--name", "a"], "echo a > a").expect_code(0).unused();
    env.run_script(&source, &["--name", "b"], "echo b > b").expect_code(0).unused();
    let first = advertised(&done(&env, &source, &["merge", "a"]));
    env.git(&source, &["switch", "-q", "-c", "feature"]);
    let _said = done(&env, &source, &["merge", "b"]);
    env.git(&source, &["switch", "-q", "main"]);
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    let said = done(&env, &source, &first);
    assert!(said.contains("of sandbox a was undone"), "{said}");
    assert_eq!(env.git(&source, &["rev-parse", "main"]), tip);
}

#[test]
fn the_first_commit_promises_no_way_back() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let work = "echo a > a; git add a; git -c user.name=A -c user.email=a@example.invalid commit -qm inside; echo b > b";
    for (name, way) in [("empty", &["merge", "a"][..]), ("below", &["merge", "a", "--history"])] {
        let source = env.root().join(name);
        env.directory(&source);
        env.git(&source, &["init", "-q", "-b", "main"]);
        env.run_script(&source, &["--name", "a"], work).expect_code(0).unused();
        let said = done(&env, &source, way);
        assert!(!said.contains("undo"), "{said}");
        let tip = env.git(&source, &["rev-parse", "HEAD"]);
        for undo in [&["undo"][..], &["undo", "--merge"]] {
            let said = refused(&env, &source, undo);
            assert!(
                said.contains("the first commit of `main`") && said.contains("git update-ref -d HEAD"),
                "{said}"
            );
            assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), tip);
        }
        env.git(&source, &["update-ref", "-d", "HEAD"]);
        assert_eq!(env.git(&source, &["status", "--porcelain"]), "A  a\nA  b\n");
        let _said = done(&env, &source, &["rm", "a"]);
    }
}

#[test]
fn a_merge_is_taken_back_on_its_own_branch_only() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let tips = || env.git(&source, &["for-each-ref", "--format=%(refname) %(objectname)"]);
        env.run_script(&source, &["--name", "a"], "echo a > a").expect_code(0).unused();
        let _said = done(&env, &source, &["merge", "a"]);
        for (switch, words) in [
            (&["switch", "-q", "-c", "feature"][..], "`feature`"),
            (&["switch", "-q", "--detach"], "no branch"),
        ] {
            env.git(&source, switch);
            let before = tips();
            let said = refused(&env, &source, &["undo", "--merge"]);
            assert!(said.contains("`main`") && said.contains(words), "{said}");
            assert!(said.contains("git switch main"), "{said}");
            assert_eq!(tips(), before);
        }
        env.git(&source, &["switch", "-q", "main"]);
        let _said = done(&env, &source, &["undo", "--merge"]);
        assert!(!source.join("a").exists());
        // The branch `feature` still has the commit; one that is where `main` was is not moved by `redo` either.
        env.git(&source, &["switch", "-q", "-c", "third"]);
        let before = tips();
        let said = refused(&env, &source, &["redo", "--merge"]);
        assert!(said.contains("`main`") && said.contains("`third`"), "{said}");
        assert_eq!(tips(), before);
        env.git(&source, &["switch", "-q", "main"]);
        let _said = done(&env, &source, &["redo", "--merge"]);
        assert!(source.join("a").exists());
    }
}

#[test]
fn a_refused_way_back_says_which_one_and_what_helps() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "a"], "echo agent >> README").expect_code(0).unused();
    let _said = done(&env, &source, &["merge", "a"]);
    env.file(&source.join("README"), "mine\n");
    let said = refused(&env, &source, &["undo", "--merge"]);
    assert!(said.contains("sandbox a") && said.contains("git stash"), "{said}");
    assert!(!said.contains("commit or") && !said.contains("apply"), "{said}");
    env.git(&source, &["commit", "-q", "-a", "-m", "mine"]);
    let merge = env.git(&source, &["rev-parse", "--short=12", "HEAD~"]);
    let said = refused(&env, &source, &["undo", "--merge"]);
    assert!(said.contains("sandbox a") && said.contains("`main`"), "{said}");
    assert!(said.contains(&format!("git revert {}", merge.trim())), "{said}");
    env.git(&source, &["reset", "-q", "--hard", "HEAD~"]);
    let _said = done(&env, &source, &["undo", "--merge"]);
    env.git(&source, &["commit", "-q", "--allow-empty", "-m", "other"]);
    let said = refused(&env, &source, &["redo", "--merge"]);
    assert!(
        said.contains("sandbox a") && said.contains(&format!("git cherry-pick {}", merge.trim())),
        "{said}"
    );
}
