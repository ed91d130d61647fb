//! Inside, git and files have one base, whatever the user does with the repository outside.

use std::path::{Path, PathBuf};

use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::fingerprint::Fingerprint;

use crate::cli::Unused as _;

/// Everything a user does to a repository, in an order in which each makes the one before it harder to get over.
const OUTSIDE: [&[&str]; 12] = [
    &["rm", "-q", "src/main.c"],
    &["commit", "-q", "-am", "my own work"],
    &["checkout", "-q", "-b", "topic"],
    &["commit", "-q", "--allow-empty", "-m", "on a topic"],
    &["tag", "mine"],
    &["checkout", "-q", "main"],
    &["commit", "-q", "--allow-empty", "-m", "more"],
    &["rebase", "-q", "topic"],
    &["branch", "-q", "-D", "old"],
    &["pack-refs", "--all"],
    &["gc", "-q", "--prune=now"],
    &["checkout", "-q", "--detach"],
];

/// The agent's only change, and what git shows of it.
pub(crate) const COMMIT: &str = "echo agent > agent.txt && git add -A && git commit -qm 'agent: add' && git show --format=%s --name-status HEAD";
pub(crate) const SHOWN: &str = "agent: add\n\nA\tagent.txt\n";
/// Where git is, and that nothing is out of step.
const WHERE: &str = "git status --porcelain --branch; git for-each-ref --format='%(refname)'; git fsck --no-progress --no-dangling 2>&1";

fn repository(env: &TestEnv, name: &str) -> PathBuf {
    let source = env.repository(name);
    env.git(&source, &["branch", "old"]);
    source
}

fn go_on(env: &TestEnv, source: &Path) {
    env.file(&source.join("README"), "Mine.\n");
    for args in OUTSIDE {
        env.git(source, args);
    }
}

pub(crate) fn inside(env: &TestEnv, name: &str, script: &str) -> String {
    env.sandtable().args(["exec", "-q", name, "--", "sh", "-c", script]).ended().expect_code(0).stdout
}

pub(crate) fn each(test: impl Fn(&TestEnv)) {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let identity = "[user]\n\tname = Ann\n\temail = ann@example.invalid\n";
        env.file(&env.home().join(".gitconfig"), identity);
        test(&env);
    }
}

#[test]
fn a_commit_between_two_commands_holds_the_work_of_the_sandbox_alone() {
    each(|env| {
        let source = repository(env, "r");
        env.run_script(&source, &["-q", "--name", "a"], "true").expect_code(0).unused();
        go_on(env, &source);
        assert_eq!(inside(env, "a", WHERE), "## main\nrefs/heads/main\nrefs/heads/old\n");
        assert_eq!(inside(env, "a", COMMIT), SHOWN);
        assert_eq!(inside(env, "a", "git log --format=%s | head -2"), "agent: add\nsecond\n");
    });
}

#[test]
fn a_commit_of_a_running_command_holds_the_work_of_the_sandbox_alone() {
    each(|env| {
        let source = repository(env, "r");
        let script = "touch ready; until test -e go; do sleep 0.02; done; echo agent > agent.txt; git add agent.txt; git commit -qm 'agent: add'; sleep 600";
        let run = ["run", "-q", "-d", "--name", "a", "--", "sh", "-c", script];
        env.sandtable().directory(&source).args(run).ended().expect_code(0).unused();
        assert_eq!(
            inside(env, "a", "git branch --show-current; until test -e ready; do sleep 0.02; done"),
            "main\n"
        );
        // Not the files: those of the source are seen as they are while a command runs.
        for args in OUTSIDE.iter().filter(|args| args[0] != "rm") {
            let args =
                if args.contains(&"-am") { &["commit", "-q", "--allow-empty", "-m", "mine"] } else { *args };
            env.git(&source, args);
        }
        let seen = inside(
            env,
            "a",
            &format!("touch go; until git log -1 --format=%s | grep -q agent; do sleep 0.02; done; {WHERE}"),
        );
        assert_eq!(seen, "## main\n?? go\n?? ready\nrefs/heads/main\nrefs/heads/old\n");
        let show = "git show --format=%s --name-status HEAD; git log --format=%s | sed -n 2p";
        assert_eq!(inside(env, "a", show), format!("{SHOWN}second\n"));
        env.sandtable().args(["stop", "a"]).ended().expect_code(0).unused();
        assert_eq!(inside(env, "a", show), format!("{SHOWN}second\n"));
    });
}

#[test]
fn the_history_that_comes_back_is_that_commit_alone() {
    each(|env| {
        let source = repository(env, "r");
        env.run_script(&source, &["-q", "--name", "a"], "true").expect_code(0).unused();
        env.file(&source.join("README"), "Mine.\n");
        env.git(&source, &["commit", "-q", "-am", "my own work"]);
        assert_eq!(inside(env, "a", COMMIT), SHOWN);
        env.git(&source, &["gc", "-q"]);
        let merge = env.sandtable().directory(&source).args(["merge", "a", "--history", "-m", "merged"]);
        merge.ended().expect_code(0).unused();
        let brought = env.git(&source, &["log", "--format=%s", "--name-status", "--no-merges", "-2"]);
        assert!(
            brought.contains("agent: add\n\nA\tagent.txt\n") && brought.contains("M\tREADME"),
            "{brought}"
        );
        assert_eq!(fs_err::read_to_string(source.join("README")).unwrap(), "Mine.\n");
        assert_eq!(env.git(&source, &["status", "--porcelain"]), "");
    });
}

/// A repository has more places than `HEAD`: each of these changes what the next commit is.
#[test]
fn what_the_user_is_in_the_middle_of_is_not_seen() {
    each(|env| {
        let source = repository(env, "r");
        env.run_script(&source, &["-q", "--name", "a"], "true").expect_code(0).unused();
        env.git(&source, &["checkout", "-q", "-b", "side"]);
        env.git(&source, &["commit", "-q", "--allow-empty", "-m", "theirs"]);
        env.git(&source, &["checkout", "-q", "main"]);
        env.git(&source, &["commit", "-q", "--allow-empty", "-m", "ours"]);
        env.git(&source, &["merge", "-q", "--no-commit", "--no-ff", "side"]);
        assert!(source.join(".git/MERGE_HEAD").exists());
        env.file(&source.join(".git/index.lock"), "");
        assert_eq!(inside(env, "a", COMMIT), SHOWN);
        assert_eq!(inside(env, "a", "git log -1 --format=%P | wc -w").trim(), "1");
    });
}

#[test]
fn a_linked_worktree_and_a_fork_have_the_same_base() {
    each(|env| {
        let main = repository(env, "r");
        let linked = env.root().join("linked");
        env.directory(&linked);
        env.git(&main, &["worktree", "add", "-q", linked.to_str().unwrap(), "old"]);
        env.run_script(&linked, &["-q", "--name", "a"], "true").expect_code(0).unused();
        env.file(&linked.join("README"), "Mine.\n");
        env.git(&linked, &["commit", "-q", "-am", "my own work"]);
        env.git(&linked, &["checkout", "-q", "-b", "topic"]);
        env.git(&linked, &["gc", "-q"]);
        assert_eq!(inside(env, "a", "git status --porcelain --branch"), "## old\n");
        assert_eq!(inside(env, "a", COMMIT), SHOWN);

        env.run_script(&main, &["-q", "--name", "b"], COMMIT).expect_code(0).unused();
        env.file(&main.join("README"), "Mine.\n");
        env.git(&main, &["commit", "-q", "-am", "my own work"]);
        env.sandtable().args(["fork", "b", "--name", "c"]).ended().expect_code(0).unused();
        assert_eq!(inside(env, "c", "git status --porcelain --branch"), "## main\n");
        assert_eq!(inside(env, "c", "git show --format=%s --name-status HEAD"), SHOWN);
        assert_eq!(inside(env, "c", "git log --format=%s | sed -n 2p"), "second\n");
    });
}

/// An index that is too large to be copied at every start.
#[test]
fn a_large_index_stays_what_it_was_and_the_users_own_is_not_touched() {
    each(|env| {
        let source = repository(env, "r");
        for number in 0..2500 {
            env.file(&source.join(format!("many/file-{number}")), "x\n");
        }
        env.git(&source, &["add", "many"]);
        env.git(&source, &["commit", "-q", "-m", "many"]);
        let index = fs_err::read(source.join(".git/index")).unwrap();
        // A smaller one is copied, and not linked.
        assert!(index.len() > 128 << 10, "{}", index.len());
        let script = "git status --porcelain; echo 1 > own; git add own; git status --porcelain";
        let seen = env.run_script(&source, &["-q", "--name", "a"], script).expect_code(0);
        assert_eq!(seen.stdout, "A  own\n");
        assert!(!seen.stderr.contains(".git"), "{}", seen.stderr);
        assert_eq!(fs_err::read(source.join(".git/index")).unwrap(), index);
        env.run_script(&source, &["-q", "--name", "b"], "true").expect_code(0).unused();
        env.git(&source, &["rm", "-q", "-r", "many"]);
        env.git(&source, &["commit", "-q", "-m", "none"]);
        assert_eq!(inside(env, "b", "git status --porcelain; ls many | wc -l").trim(), "2500");
    });
}

/// Every file of the source with the true number of its links.
#[test]
fn a_removed_sandbox_leaves_no_link_to_the_git_directory() {
    each(|env| {
        let source = repository(env, "r");
        // One of the files that are held by a link.
        env.git(&source, &["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
        let (before, held) = (Fingerprint::of(&source, &[]), env.fingerprint(&source));
        for options in [&["--name", "box"][..], &["--rm"]] {
            env.run_script(&source, options, "git status").expect_code(0).unused();
        }
        assert_ne!(before, Fingerprint::of(&source, &[]), "a living sandbox holds links");
        assert_eq!(held.differences(&env.fingerprint(&source)), [""; 0], "and nobody else does");
        env.sandtable().args(["fork", "box", "--name", "twin"]).ended().expect_code(0).unused();
        assert_eq!(held.differences(&env.fingerprint(&source)), [""; 0]);
        env.sandtable().args(["rm", "box", "twin"]).ended().expect_code(0).unused();
        assert_eq!(before.differences(&Fingerprint::of(&source, &[])), [""; 0]);
    });
}

/// Its references would lead to objects that went with it.
#[test]
fn of_a_repository_that_is_gone_nothing_is_held() {
    each(|env| {
        let source = repository(env, "r");
        let linked = env.root().join("linked");
        env.directory(&linked);
        env.git(&source, &["worktree", "add", "-q", linked.to_str().unwrap()]);
        env.run_script(&source, &["-q", "--name", "a"], "true").expect_code(0).unused();
        env.run_script(&linked, &["-q", "--name", "b"], "true").expect_code(0).unused();
        fs_err::rename(&linked, env.root().join("moved")).unwrap();
        fs_err::rename(&source, env.root().join("elsewhere")).unwrap();
        for name in ["a", "b"] {
            let script = "cat README; git status 2>&1 | cut -d: -f1,2";
            let exec = env.sandtable().args(["exec", name, "--", "sh", "-c", script]).ended();
            let seen = exec.expect_code(0).expect_stderr("source-replaced").stdout;
            assert!(seen.starts_with("A sample.\nfatal: not a git repository"), "{name}: {seen}");
        }
    });
}
