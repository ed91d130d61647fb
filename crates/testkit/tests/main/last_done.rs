//! Commands that name no sandbox agree on what was done last, and the way back of a merge is that of this merge.

use std::path::Path;

use sandtable_testkit::env::{Caller, TestEnv};

use crate::cli::Unused;

fn done(env: &TestEnv, directory: &Path, args: &[&str]) -> String {
    let done = env.sandtable().directory(directory).args(args).ended().expect_code(0);
    done.stdout + &done.stderr
}

fn refused(env: &TestEnv, directory: &Path, args: &[&str]) -> String {
    let ended = env.sandtable().directory(directory).args(args).ended();
    assert_ne!(ended.code, 0, "{args:?}: {}", ended.stderr);
    ended.stdout + &ended.stderr
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
