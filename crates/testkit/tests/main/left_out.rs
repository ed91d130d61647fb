//! What `apply` and `merge` do not bring is named: after one, a plain directory is what the sandbox has, but for that.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sandtable_testkit::env::{Caller, TestEnv};
use serde_json::Value;

use crate::cli::Unused as _;

/// What can happen to a tree, each a line of shell; some of it only git's trees do not notice.
const STEPS: [&str; 12] = [
    "mkdir -p new/empty/deep",
    "rmdir hollow",
    "chmod 600 a",
    "rm b && mkdir b",
    "rm d/* || true",
    "echo 1 > d/new",
    "rm -r e",
    "chmod 700 d",
    "mkdir -p f && echo 1 > f/file",
    "touch secret && chmod 600 secret",
    "rm -rf hollow && echo 1 > hollow",
    "echo 2 >> a",
];

fn plain(env: &TestEnv, name: &str) -> PathBuf {
    let top = env.root().join(name);
    for path in ["a", "b", "d/one", "d/two", "e/deep/file"] {
        env.file(&top.join(path), "text\n");
    }
    env.directory(&top.join("hollow"));
    // What changes within the tick of the clock in which a command starts may have changed after it: that would be drift.
    std::thread::sleep(std::time::Duration::from_millis(20));
    top
}

/// Every path with its mode and, of a file, its content.
fn tree(root: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs_err::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs_err::symlink_metadata(&path).unwrap();
            let content = if meta.is_file() { fs_err::read(&path).unwrap() } else { Vec::new() };
            if meta.is_dir() {
                waiting.push(path.clone());
            }
            found.insert(path.strip_prefix(root).unwrap().display().to_string(), (meta.mode(), content));
        }
    }
    found
}

fn named(answer: &str) -> BTreeSet<String> {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let left = answer["left_out"].as_array().unwrap();
    left.iter().map(|left| left["path"].as_str().unwrap().to_owned()).collect()
}

/// Every step alone, and mixtures in any order; a step that does not fit after another is passed over.
fn scripts() -> Vec<String> {
    let alone = STEPS.iter().map(|step| (*step).to_owned());
    let mut state: usize = 0x2545_f491;
    let mut dice = move || {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345) & 0x7fff_ffff;
        STEPS[(state >> 12) % STEPS.len()]
    };
    let mut one = || format!("{{ {}; }} 2>&1 || true", dice());
    let mixed = (0..10).map(|_| [one(), one(), one(), one(), one()].join("\n"));
    alone.chain(mixed.collect::<Vec<String>>()).collect()
}

#[test]
fn a_plain_directory_becomes_what_the_sandbox_has_and_goes_back() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        for (number, script) in scripts().into_iter().enumerate() {
            let source = plain(&env, &format!("plain-{number}"));
            let before = tree(&source);
            let name = format!("s{number}");
            env.run_script(&source, &["-q", "--name", &name], &script).expect_code(0).unused();
            let inside = env.root().join(format!("inside-{number}"));
            env.directory(&inside);
            let call = |words: &[&str]| env.sandtable().directory(&source).args(words).ended().expect_code(0);
            call(&["checkout", &name, inside.to_str().unwrap()]).unused();
            let named = named(&call(&["apply", &name, "--json"]).stdout);
            assert_eq!(named, BTreeSet::new(), "after `{script}`");
            assert_eq!(tree(&source), tree(&inside), "after `{script}`");
            let undone = env.sandtable().directory(&source).args(["undo"]).ended();
            if tree(&inside) != before {
                undone.expect_code(0).unused();
            }
            assert_eq!(tree(&source), before, "after `{script}` was taken back");
        }
    }
}

#[test]
fn what_the_user_made_of_it_meanwhile_stays_and_is_named() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    let source = plain(&env, "p");
    let script = "rmdir hollow; mkdir new; chmod 600 a; chmod 4644 b; mkdir -p .git/refs";
    env.run_script(&source, &["-q", "--name", "a"], script).expect_code(0).unused();
    env.file(&source.join("hollow/mine"), "mine\n");
    env.file(&source.join("new"), "mine\n");
    fs_err::set_permissions(source.join("a"), std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    let apply = env.sandtable().directory(&source).args(["apply", "a", "--json"]).ended().expect_code(0);
    let named = named(&apply.stdout);
    for path in ["hollow", "new", "a", "b"] {
        assert!(named.contains(path), "{path}: {named:?}");
    }
    let tree = tree(&source);
    assert_eq!(tree["hollow/mine"].1, b"mine\n");
    assert_eq!(tree["new"].1, b"mine\n");
    assert_eq!((tree["a"].0 & 0o7777, tree["b"].0 & 0o7777), (0o640, 0o644));
    assert!(!tree.contains_key(".git"), "{:?}", tree.keys());
}

#[test]
fn a_repository_gets_what_git_holds_and_the_rest_is_named() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    let source = env.repository("r");
    let script = "mkdir empty; chmod 600 README; rm docs/guide.txt";
    env.run_script(&source, &["-q", "--name", "a"], script).expect_code(0).unused();
    let merge = env.sandtable().directory(&source).args(["merge", "a", "-m", "x"]).ended().expect_code(0);
    for line in ["left out empty: ", "left out README: permissions", "left out docs: a directory"] {
        assert!(merge.stdout.contains(line), "{line}: {}", merge.stdout);
    }
    env.run_script(&source, &["-q", "--name", "b"], "mkdir other").expect_code(0).unused();
    let merge = env.sandtable().directory(&source).args(["merge", "b"]).ended().expect_code(0);
    assert!(
        merge.stdout.contains("left out other") && !merge.stdout.contains("has it all"),
        "{}",
        merge.stdout
    );
}

/// What cannot be recorded looks like a removal in a state: a file that became too large, a directory that is a pipe now.
#[test]
fn what_could_not_be_recorded_is_not_removed() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = plain(&env, "p");
    let before = tree(&source);
    let script = "truncate -s 5G a; rm -r d; mkfifo d; rm e/deep/file; echo 1 > new";
    env.run_script(&source, &["-q", "--name", "x"], script).expect_code(0).unused();
    let diff = env.sandtable().directory(&source).args(["diff", "x", "--name-status"]).ended().expect_code(0);
    assert_eq!(diff.stdout, "D\te/deep/file\nA\tnew\n");
    let apply = env.sandtable().directory(&source).args(["apply", "x"]).ended().expect_code(0);
    for path in ["a", "d/one", "d/two"] {
        assert!(apply.stdout.contains(&format!("left out {path}: it is no removal")), "{}", apply.stdout);
    }
    let applied = tree(&source);
    for path in ["a", "d", "d/one", "d/two"] {
        assert_eq!(applied[path], before[path], "{path}");
    }
    assert!(applied.contains_key("new") && !applied.contains_key("e/deep/file"));
    env.sandtable().directory(&source).args(["undo"]).ended().expect_code(0).unused();
    assert_eq!(tree(&source), before);

    let source = env.repository("r");
    let script = "truncate -s 5G README; rm -r docs; mkfifo docs; echo 1 > new";
    env.run_script(&source, &["-q", "--name", "y"], script).expect_code(0).unused();
    env.sandtable().directory(&source).args(["merge", "y"]).ended().expect_code(0).unused();
    assert_eq!(env.git(&source, &["diff", "--name-status", "HEAD~", "HEAD"]), "A\tnew\n");
    assert_eq!(env.git(&source, &["status", "--porcelain"]), "");
}
