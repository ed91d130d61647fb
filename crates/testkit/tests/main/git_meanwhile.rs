//! Git inside while a command runs and the user goes on with the same repository outside.

use std::path::Path;

use sandtable_testkit::env::TestEnv;

use crate::cli::Unused as _;
use crate::git_base::{each, inside};

/// So many files are added on either side: nearly every directory of loose objects is then in use by both.
const MANY: usize = 300;

/// What the user does meanwhile, step by step. Loose objects become packed and their directories go, come again, and go
/// again.
const OUTSIDE: [&[&[&str]]; 6] = [
    &[
        &["commit", "-q", "--allow-empty", "-m", "mine"],
        &["switch", "-q", "-c", "topic"],
        &["commit", "-q", "--allow-empty", "-m", "on a topic"],
    ],
    &[
        &["switch", "-q", "main"],
        &["commit", "-q", "--allow-empty", "-m", "more"],
        &["rebase", "-q", "topic"],
    ],
    &[&["gc", "-q", "--prune=now"]],
    &[
        &["switch", "-q", "topic"],
        &["commit", "-q", "--allow-empty", "-m", "loose again"],
        &["repack", "-q", "-a", "-d", "-f"],
    ],
    &[
        &["commit", "-q", "--amend", "--allow-empty", "-m", "other words"],
        &["reflog", "expire", "--expire=now", "--all"],
    ],
    &[&["switch", "-q", "--detach", "main"], &["branch", "-q", "-D", "topic"], &["gc", "-q", "--prune=now"]],
];

fn many(env: &TestEnv, source: &Path) {
    for number in 0..MANY {
        env.file(&source.join(format!("many/file-{number}")), format!("file {number}\n"));
    }
    env.git(source, &["add", "-A"]);
    env.git(source, &["commit", "-q", "-m", "many"]);
}

/// Git sees every object, a copy of the repository has them all, and the next commit holds one file.
fn works(env: &TestEnv, number: usize) {
    let script = format!(
        "git fsck --no-progress --no-dangling 2>&1; git status --porcelain 2>&1; git log --format=%s | wc -l
        git clone -q . /tmp/{number} 2>&1 && git -C /tmp/{number} fsck --no-progress --no-dangling 2>&1
        echo {number} > agent-{number}; git add agent-{number}; git commit -qm 'agent: {number}' 2>&1
        git show --format=%s --name-status HEAD"
    );
    let seen = inside(env, "a", &script);
    let expected = format!("{}\nagent: {number}\n\nA\tagent-{number}\n", number + 4);
    assert_eq!(seen, expected, "after {number} steps");
}

#[test]
fn a_running_command_has_a_whole_repository_whatever_the_user_does() {
    each(|env| {
        let source = env.repository("r");
        many(env, &source);
        let run = ["run", "-q", "-d", "--name", "a", "--", "sleep", "600"];
        env.sandtable().directory(&source).args(run).ended().expect_code(0).unused();
        let first = format!(
            "mkdir own; i=0; while [ $i -lt {MANY} ]; do echo agent $i > own/$i; i=$((i + 1)); done
            git add own; git commit -qm 'agent: many'"
        );
        assert_eq!(inside(env, "a", &first), "");
        works(env, 0);
        for (number, step) in OUTSIDE.iter().enumerate() {
            step.iter().for_each(|args| drop(env.git(&source, args)));
            works(env, number + 1);
        }
        assert_eq!(inside(env, "a", "git gc -q --prune=now 2>&1"), "");
        works(env, OUTSIDE.len() + 1);
        env.sandtable().args(["stop", "a"]).ended().expect_code(0).unused();
        works(env, OUTSIDE.len() + 2);
        env.git(&source, &["switch", "-q", "main"]);
        let merge = ["merge", "a", "--history", "-m", "merged", "--approve", "all"];
        env.sandtable().directory(&source).args(merge).ended().expect_code(0).unused();
        assert_eq!(env.git(&source, &["fsck", "--no-progress", "--no-dangling"]), "");
        assert_eq!(
            env.git(&source, &["log", "--format=%s", "--grep=^agent"]).lines().count(),
            OUTSIDE.len() + 4
        );
    });
}

/// Git freshens what it finds instead of writing it again, and a pack would be copied for that.
#[test]
fn a_commit_copies_no_pack_into_the_layer() {
    each(|env| {
        let source = env.repository("r");
        many(env, &source);
        env.git(&source, &["gc", "-q"]);
        let script = "echo x >> README; git commit -qam one; git revert --no-edit HEAD > /dev/null; git fsck --no-progress 2>&1
            git rev-list --count HEAD; touch /.sandtable/objects/x 2>&1 | grep -c 'Read-only file system'";
        let ended = env.run_script(&source, &["-q", "--name", "a"], script).expect_code(0);
        assert_eq!(ended.stdout, "5\n1\n");
        let objects = env.sandboxes().join("a/workspace.upper/.git/objects");
        assert!(!objects.join("pack").exists() && !objects.join("info/alternates").exists());
    });
}

#[test]
fn linked_worktrees_and_forks_borrow_and_a_list_from_elsewhere_stays_where_it_is() {
    const LIST: &str =
        "cat $(git rev-parse --git-common-dir)/objects/info/alternates; git fsck --no-progress 2>&1
        echo x > x; git add x; git commit -qm x; git log --format=%s | wc -l";
    each(|env| {
        let main = env.repository("r");
        let linked = env.root().join("linked");
        env.directory(&linked);
        env.git(&main, &["worktree", "add", "-q", linked.to_str().unwrap()]);
        let shown = env.run_script(&linked, &["-q", "--name", "linked"], LIST).expect_code(0);
        assert_eq!(shown.stdout, "/.sandtable/objects\n3\n");
        env.sandtable().args(["fork", "linked", "--name", "fork"]).ended().expect_code(0).unused();
        env.git(&main, &["gc", "-q", "--prune=now"]);
        assert_eq!(inside(env, "linked", "git fsck --no-progress 2>&1; git log --format=%s | wc -l"), "3\n");
        assert_eq!(inside(env, "fork", LIST), "/.sandtable/objects\n3\n");

        let other = main.join("other");
        env.git(&main, &["clone", "-q", "--shared", ".", "other"]);
        env.file(&other.join(".git/objects/info/alternates"), "../../../.git/objects\n");
        let shared = main.join(".git");
        let options = ["--rm", "-q", "-v", shared.to_str().unwrap()];
        let shown = env.run_script(&other, &options, LIST).expect_code(0);
        assert_eq!(shown.stdout, "../../../.git/objects\n3\n", "{}", shown.stderr);
    });
}
