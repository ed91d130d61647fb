//! The place inside at which the objects of the source are shown: it never shows anything else, and the policy says so.

use std::os::unix::fs::symlink;
use std::path::Path;

use fs_err as fs;
use sandtable_testkit::env::TestEnv;

use crate::cli::Unused as _;
use crate::git_base::{each, inside};

/// What is shown at the place, and which of its objects git finds there.
const LOOK: &str = "cat /.sandtable/objects/id 2>&1; ls /.sandtable/objects | grep -c '^pack$'; true";
const NONE: &str = "cat: /.sandtable/objects/id: No such file or directory\n0\n";

/// A directory with an `objects` in it that no sandbox was shown.
fn keyring(env: &TestEnv) -> std::path::PathBuf {
    let keyring = env.root().join("keyring");
    env.file(&keyring.join("objects/id"), "PRIVATE KEY\n");
    keyring
}

/// Puts something else in the place of a git directory.
type Replace<'a> = &'a dyn Fn(&Path);

fn kept(env: &TestEnv, source: &Path, name: &str) {
    env.run_script(source, &["-q", "--name", name], "true").expect_code(0).unused();
}

#[test]
fn a_git_directory_that_was_replaced_lends_nothing() {
    each(|env| {
        let keyring = keyring(env);
        let other = env.repository("other").join(".git");
        let replace: [(&str, Replace<'_>); 4] = [
            ("link", &|source| symlink(&keyring, source.join(".git")).unwrap()),
            ("repository", &|source| symlink(&other, source.join(".git")).unwrap()),
            ("directory", &|source| drop(fs::rename(&keyring, source.join(".git")))),
            ("objects", &|source| {
                fs::create_dir(source.join(".git")).unwrap();
                symlink(other.join("objects"), source.join(".git/objects")).unwrap();
            }),
        ];
        for (name, replace) in replace {
            let source = env.repository(name);
            kept(env, &source, name);
            fs::rename(source.join(".git"), env.root().join(format!("{name}.was"))).unwrap();
            replace(&source);
            let ended = env.sandtable().args(["exec", "-q", name, "--", "sh", "-c", LOOK]).ended();
            let ended = ended.expect_code(0);
            assert_eq!(ended.stdout, NONE, "{name}");
            assert!(ended.stderr.contains("objects-replaced"), "{name}: {}", ended.stderr);
        }
    });
}

#[test]
fn a_git_directory_that_is_back_lends_again() {
    each(|env| {
        let source = env.repository("r");
        kept(env, &source, "a");
        let away = env.root().join("away");
        fs::rename(source.join(".git"), &away).unwrap();
        assert_eq!(inside(env, "a", LOOK), NONE);
        fs::rename(away, source.join(".git")).unwrap();
        assert_eq!(inside(env, "a", "git log --format=%s | wc -l; git fsck --no-progress 2>&1"), "2\n");
    });
}

#[test]
fn the_place_is_checked_when_it_is_mounted() {
    each(|env| {
        let source = env.repository("r");
        kept(env, &source, "a");
        let shown = env.sandtable().args(["inspect", "a", "--json"]).ended().expect_code(0).stdout;
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let found = find(&shown, "/.sandtable/objects").expect("the objects are among the mounts");
        assert!(found["identity"]["inode"].is_u64(), "{found}");
    });
}

/// The mount at a place, wherever in a document the mounts are.
fn find<'a>(value: &'a serde_json::Value, target: &str) -> Option<&'a serde_json::Value> {
    match value {
        serde_json::Value::Object(map) if map.get("target").is_some_and(|at| at == target) => Some(value),
        serde_json::Value::Object(map) => map.values().find_map(|value| find(value, target)),
        serde_json::Value::Array(list) => list.iter().find_map(|value| find(value, target)),
        _ => None,
    }
}

#[test]
fn nothing_is_lent_of_a_git_directory_that_is_covered() {
    const OLD: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES=/.sandtable/objects git cat-file -p";
    each(|env| {
        let source = env.repository("r");
        env.file(&source.join("secret"), "an old secret\n");
        env.git(&source, &["add", "secret"]);
        env.git(&source, &["commit", "-q", "-m", "secret"]);
        let blob = env.git(&source, &["rev-parse", "HEAD:secret"]).trim().to_owned();
        env.git(&source, &["rm", "-q", "secret"]);
        env.git(&source, &["commit", "-q", "-m", "clean"]);
        env.git(&source, &["gc", "-q"]);
        let empty = env.root().join("empty");
        env.directory(&empty);
        let script =
            format!("ls /.sandtable/objects 2>&1; mkdir /tmp/g; cd /tmp/g; git init -q; {OLD} {blob}");
        let none = "ls: cannot access '/.sandtable/objects': No such file or directory\n";
        for part in [".git", ".git/objects", ".git/objects/pack", ".git/hooks"] {
            let mask = format!("{}:{}", empty.display(), source.join(part).display());
            let ended = env.run_script(&source, &["-q", "--rm", "-v", &mask], &script).expect_code(128);
            assert_eq!(ended.stdout, none, "{part}");
        }
        for part in [".git", ".g*/", ".git/objects"] {
            let ended = env.run_script(&source, &["-q", "--rm", "--hide", part], &script).expect_code(128);
            assert_eq!(ended.stdout, none, "{part}");
        }
    });
}

#[test]
fn the_git_directory_of_a_linked_worktree_cannot_be_half_hidden() {
    each(|env| {
        let main = env.repository("r");
        let linked = env.root().join("linked");
        env.directory(&linked);
        env.git(&main, &["worktree", "add", "-q", linked.to_str().unwrap()]);
        for pattern in [".git", ".git/", ".g*", ".git/objects"] {
            let ended = env.run_script(&linked, &["-q", "--rm", "--hide", pattern], "true").expect_code(2);
            assert!(
                ended.stderr.contains("cannot hide the git directory of a linked worktree"),
                "{pattern}: {}",
                ended.stderr
            );
        }
    });
}

#[test]
fn the_policy_says_that_the_objects_are_shown() {
    each(|env| {
        let source = env.repository("r");
        let asked =
            |args: &[&str]| env.sandtable().directory(&source).args(args).ended().expect_code(0).stdout;
        let why = asked(&["policy", "why", "/.sandtable/objects"]);
        assert!(why.contains("the repository's objects"), "{why}");
        assert!(asked(&["policy", "show"]).contains("/.sandtable/objects"));
        assert!(asked(&["run", "--dry-run", "--", "true"]).contains("/.sandtable/objects"));
        assert!(asked(&["run", "--dry-run", "--json", "--", "true"]).contains("/.sandtable/objects"));
        let card = env.run_script(&source, &["-q", "--rm"], "cat /run/sandtable/policy.md").expect_code(0);
        assert!(card.stdout.contains("`/.sandtable/objects`"), "{}", card.stdout);
    });
}
