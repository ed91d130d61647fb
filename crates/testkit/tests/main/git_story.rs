//! A day with a repository: its user works on outside while an agent commits inside, on every engine.

use std::path::Path;

use sandtable_testkit::container::{Contained, Kind};
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::Run;

use crate::cli::Unused as _;
use crate::git_inside::PROGRAMS;

/// What the user does before each of the agent's commits.
const OUTSIDE: [&[&[&str]]; 4] = [
    &[
        &["commit", "-q", "-am", "mine: the readme"],
        &["tag", "mine"],
        &["worktree", "add", "-q", "../beside", "old"],
    ],
    &[
        &["checkout", "-q", "-b", "topic"],
        &["mv", "docs", "papers"],
        &["commit", "-q", "-m", "mine: papers"],
        &["checkout", "-q", "main"],
        &["rm", "-q", "src/deep/er/util.c"],
        &["commit", "-q", "-m", "mine: less"],
        &["rebase", "-q", "--autostash", "topic"],
        &["branch", "-q", "-D", "old-too"],
    ],
    &[&["stash", "-q"], &["pack-refs", "--all"], &["gc", "-q"], &["checkout", "-q", "topic"]],
    &[&["checkout", "-q", "main"], &["stash", "pop", "-q"], &["gc", "-q", "--prune=now"]],
];

/// Commits as often as somebody touches a file in memory, each time a file of its own.
const AGENT: &str = "for n in 1 2 3 4; do until test -e /tmp/go-$n; do sleep 0.02; done
    echo $n > agent-$n.txt && git add agent-$n.txt && git commit -qm \"agent: $n\" && touch /tmp/done-$n; done; sleep 600";

/// The commits of the agent, the newest first, as git shows them.
const SHOW: &str = "git log --format='%s' --name-status --max-count=4; git log --format=%s | sed -n 5p; git branch --show-current";

fn shown() -> String {
    let commit = |n: u32| format!("agent: {n}\n\nA\tagent-{n}.txt\n");
    let commits: Vec<String> = (1..=4).rev().map(commit).collect();
    format!("{}second\nmain\n", commits.join(""))
}

/// Both sides of the story. `start` is `sandtable run` with what the engine needs, `call` any other command.
fn story(env: &TestEnv, source: &Path, start: &dyn Fn() -> Run, call: &dyn Fn() -> Run) {
    env.file(&env.home().join(".gitconfig"), "[user]\n\tname = Ann\n\temail = ann@example.invalid\n");
    let inside = |script: &str| {
        call().args(["exec", "-q", "a", "--", "sh", "-c", script]).ended().expect_code(0).stdout
    };
    env.directory(&env.root().join("beside"));
    for branch in ["old", "old-too"] {
        env.git(source, &["branch", branch]);
    }
    start().args(["-q", "-d", "--name", "a", "--", "sh", "-c", AGENT]).ended().expect_code(0).unused();
    // What is changed before the source was looked over is part of the base.
    while !env.sandboxes().join("a/base.json").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    for (number, commands) in OUTSIDE.iter().enumerate() {
        if number < 3 {
            env.file(&source.join("README"), format!("Mine, {number}.\n"));
        }
        for args in *commands {
            env.git(source, args);
        }
        let number = number + 1;
        inside(&format!("touch /tmp/go-{number}; until test -e /tmp/done-{number}; do sleep 0.02; done"));
    }
    assert_eq!(inside(SHOW), shown());
    call().args(["stop", "a"]).ended().expect_code(0).unused();
    // Between commands the files are those of the base too, so whatever is added is the agent's.
    assert_eq!(
        inside("cat README; git status --porcelain; git fsck --no-progress --no-dangling 2>&1"),
        "A sample.\n"
    );
    let more =
        "echo 5 > agent-5.txt; git add -A; git commit -qm 'agent: 5'; git show --format=%s --name-status";
    assert_eq!(inside(more), "agent: 5\n\nA\tagent-5.txt\n");

    env.git(source, &["commit", "-q", "-am", "mine: the rest"]);
    let (before, tip) =
        (env.git(source, &["rev-parse", "HEAD"]), ["merge", "a", "--history", "-m", "merged"]);
    call().directory(source).args(tip).ended().expect_code(0).unused();
    let brought = ["log", "--format=%s", "--name-status", "--no-merges", "--reverse", "--grep=^agent"];
    let commits: Vec<String> = (1..=5).map(|n| format!("agent: {n}\n\nA\tagent-{n}.txt\n")).collect();
    assert_eq!(env.git(source, &brought), commits.join(""));
    let all = env.git(source, &["diff", "--name-status", before.trim(), "HEAD"]);
    let files: Vec<String> = (1..=5).map(|n| format!("A\tagent-{n}.txt\n")).collect();
    assert_eq!(all, files.join(""));
    assert_eq!(env.git(source, &["status", "--porcelain"]), "");
    env.git(source, &["fsck", "--no-progress", "--strict"]);
}

#[test]
fn a_user_works_on_while_an_agent_commits() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let start = || env.sandtable().directory(&source).arg("run");
        story(&env, &source, &start, &|| env.sandtable());
    }
}

#[test]
fn a_user_works_on_while_an_agent_commits_in_a_container() {
    Contained::each(Contained::new, |world, source| {
        let start = || world.starting(&source).args(PROGRAMS);
        story(&world.env, &source, &start, &|| world.sandtable());
    });
}

/// Has rootless Podman do something else first, for calls with a word in them.
fn interposed(world: &Contained, call: &str, script: &str) {
    let podman = world.env.root().join("bin/podman");
    let text = fs_err::read_to_string(&podman).unwrap();
    let text = text.replacen('\n', &format!("\ncase \"$*\" in *{call}*) {script};; esac\n"), 1);
    fs_err::write(&podman, text).unwrap();
}

/// Rootless Podman on a kernel that lets no ordinary user mount an overlay in its namespace.
#[test]
fn where_rootless_podman_cannot_hold_a_warning_says_so() {
    let Some(world) = Contained::new(Kind::Podman, Caller::ordinary()) else { return };
    let source = world.env.repository("r");
    interposed(&world, "__ground", "echo 'not here' >&2; exit 1");
    let ended = world.run_script(&source, &["--name", "a"], "cat README; echo more >> README");
    let ended = ended.expect_code(0).expect_stderr("[git-follows-source]").expect_stderr("not here");
    assert_eq!(ended.stdout, "A sample.\n");
    assert!(ended.stderr.contains("M README"), "{}", ended.stderr);
    assert_eq!(world.left(), [""; 0]);
}

/// The namespace goes between the mount and the container.
#[test]
fn on_a_ground_that_is_gone_rootless_podman_starts_nothing() {
    let Some(world) = Contained::new(Kind::Podman, Caller::ordinary()) else { return };
    let source = world.env.repository("r");
    let migrate = "/usr/bin/podman --root $ROOT/p/s --runroot $ROOT/p/r --tmpdir $ROOT/p/t system migrate";
    let root = world.env.root().display().to_string();
    interposed(&world, "--sig-proxy=false", &migrate.replace("$ROOT", &root));
    let ended = world.run_script(&source, &["--name", "a"], "ls > /dev/null; echo ran");
    assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("workspace.ground/all"), "{}", ended.stderr);
    assert_eq!(world.left(), [""; 0]);
}

/// What is mounted in Podman's namespace goes with its container, and with the next command after a kill.
#[test]
fn nothing_stays_mounted_in_the_namespace_of_rootless_podman() {
    let Some(world) = Contained::new(Kind::Podman, Caller::ordinary()) else { return };
    let source = world.env.repository("r");
    let mounts = || {
        let all = world.engine(&["unshare", "cat", "/proc/self/mountinfo"]);
        all.lines().filter(|line| line.contains(".ground")).map(str::to_owned).collect::<Vec<_>>()
    };
    world.run_script(&source, &["-q", "--name", "a"], "true").expect_code(0).unused();
    assert_eq!(mounts(), [""; 0]);
    let run = ["-q", "-d", "--name", "b", "--", "sh", "-c", "sleep 600"];
    world.starting(&source).args(run).ended().expect_code(0).unused();
    assert_eq!(mounts().len(), 2, "{:?}", mounts());
    let container = world.engine(&["ps", "--format", "{{.Names}}"]);
    let label = "{{index .Config.Labels \"sandtable.pid\"}}";
    let supervisor = world.engine(&["inspect", "--format", label, container.trim()]);
    world.run("kill").args(["-9", supervisor.trim()]).ended().expect_code(0).unused();
    let ended = || world.sandtable().args(["exec", "-q", "b", "--", "cat", "README"]).ended();
    let mut again = ended();
    for _ in 0..50 {
        if again.code == 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
        again = ended();
    }
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(again.stdout, "A sample.\n");
    assert_eq!(mounts(), [""; 0]);
    assert_eq!(world.left(), [""; 0]);
}
