//! The examples, run as a program of somebody else's would be.

use std::path::{Path, PathBuf};

use sandtable_testkit::env::TestEnv;
use sandtable_testkit::process::Run;

/// An example in a world of its own, with `sandtable` on the search path.
fn example(env: &TestEnv, name: &str, directory: &Path) -> Run {
    let here = std::env::current_exe().expect("a test is a file");
    let built: PathBuf = here
        .ancestors()
        .nth(2)
        .expect("it is in a folder of the target directory")
        .join("examples")
        .join(name);
    env.symlink(env.binary(), &env.root().join("bin/sandtable"));
    let path = format!("{}:/usr/bin:/bin", env.root().join("bin").display());
    env.run(built).directory(directory).variable("PATH", path)
}

#[test]
fn a_command_is_run_and_its_work_merged_and_undone() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let told = example(&env, "run_and_merge", &source).ended().expect_code(0).stdout;
    assert_eq!(told, "Added greeting.txt\nmerged\n");
    assert_eq!(env.git(&source, &["show", "HEAD:greeting.txt"]), "Hello from inside\n");
    assert_eq!(env.git(&source, &["status", "--porcelain"]), "");
    let undone = env.sandtable().args(["undo"]).directory(&source).ended().expect_code(0);
    assert!(undone.stderr.contains("merge"), "{}", undone.stderr);
    assert!(!source.join("greeting.txt").exists());
}

#[test]
fn a_fixer_works_on_a_recorded_state_and_its_result_is_merged() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.file(&source.join("README"), "This is teh program.\n");
    env.git(&source, &["add", "README"]);
    env.git(&source, &["commit", "-qm", "a typing error"]);
    let task = env.sandtable().args(["onboard"]).directory(&source).ended().expect_code(0).stdout;
    let worktree = env.root().join("worktree");
    let fixer = example(&env, "fixer", &source).arg(task.trim()).arg(&worktree);
    let told = fixer.ended().expect_code(0).stdout;
    assert!(told.contains("-This is teh program.\n+This is the program.\n"), "{told}");
    assert!(told.ends_with("merged\n"), "{told}");
    assert_eq!(env.git(&source, &["show", "HEAD:README"]), "This is the program.\n");
    assert_eq!(env.git(&source, &["log", "-1", "--format=%s"]).trim(), "Fix the spelling");
}
