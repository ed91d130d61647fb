//! What `run` and `exec` promise: exit codes, an untouched source, a summary that names every change.

use std::path::Path;

use sandtable_sandbox::session::record::{ChangeKind, ExitOrigin, Outcome};
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::Ended;
use sandtable_testkit::require;

/// What the issue does to a repository.
const SCRIPT: &str = "echo x >> README; mkdir d; echo y > d/f; rm -rf src";

#[test]
fn exit_code_of_the_command_passes_through() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--rm"], "exit 7").expect_code(7).unused();
    env.run_script(&source, &["--rm"], "exit 0").expect_code(0).unused();
}

#[test]
fn death_by_a_signal_is_128_and_its_number() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--rm"], "kill -TERM $$").expect_code(143).unused();
    env.run_script(&source, &["--rm"], "kill -KILL $$").expect_code(137).unused();
}

#[test]
fn a_command_that_is_not_there_is_127_and_one_that_cannot_be_run_is_126() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let run = |command: &str| env.sandtable().directory(&source).args(["run", "--rm", "--", command]).ended();
    run("/nonexistent").expect_code(127).expect_stderr("/nonexistent").unused();
    run("no-such-program").expect_code(127).expect_stderr("no-such-program").unused();
    run("/usr").expect_code(126).expect_stderr("/usr").unused();
    run("./README").expect_code(126).expect_stderr("README").unused();
}

#[test]
fn an_engine_that_is_missing_is_125_with_the_remedy_and_nothing_ran() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let run = env.sandtable().directory(&source).variable("PATH", "/nonexistent");
    let ended = run.args(["run", "--engine", "docker", "--", "/bin/echo", "it-ran"]).ended().expect_code(125);
    assert!(ended.stderr.contains("docker"), "{}", ended.stderr);
    assert!(!ended.stdout.contains("it-ran"));
    assert_nothing_made(&env);
}

#[test]
fn the_source_is_byte_identical_after_a_run() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let before = env.fingerprint(&source);
        env.run_script(&source, &[], SCRIPT).expect_code(0).unused();
        assert_eq!(before.differences(&env.fingerprint(&source)), [""; 0]);
        assert_eq!(env.git(&source, &["status", "--porcelain"]), "");
    }
}

#[test]
fn the_summary_names_every_change() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let ended = env.run_script(&source, &[], SCRIPT).expect_code(0);
    for path in ["README", "d/f", "src"] {
        assert!(ended.stderr.contains(path), "no {path} in {}", ended.stderr);
    }
    assert_eq!(ended.stdout, "", "standard output belongs to the command");
}

#[test]
fn the_report_lists_every_change() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let outcome = outcome_of(&env, &source, SCRIPT);
    let changes = outcome.changes.unwrap();
    let kind = |path: &str| changes.entries.iter().find(|entry| entry.path == path).map(|entry| entry.kind);
    assert_eq!(kind("README"), Some(ChangeKind::Modified));
    assert_eq!(kind("d/f"), Some(ChangeKind::Added));
    assert!(kind("src") == Some(ChangeKind::Removed) || kind("src/main.c") == Some(ChangeKind::Removed));
    let untouched = ["docs/guide.txt", "build.sh", "link"];
    assert!(untouched.iter().all(|path| kind(path).is_none()), "{:?}", changes.entries);
    assert_eq!(outcome.exit.origin, ExitOrigin::Command);
    assert_eq!(outcome.drift, []);
}

#[test]
fn the_report_shows_every_control_as_enforced() {
    use sandtable_protocol::report::{Control, Observed};
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let outcome = outcome_of(&env, &source, "true");
        let disk = outcome.enforcement.get(&Control::DiskLimit);
        assert!(matches!(disk, Some(Observed::Watched { .. })), "{disk:?}");
        for control in Control::ALL.into_iter().filter(|control| *control != Control::DiskLimit) {
            let wanted = (!Control::LIMITS.contains(&control)).then_some(&Observed::Enforced);
            assert_eq!(outcome.enforcement.get(&control), wanted, "{control}: limits were not asked for");
        }
    }
}

#[test]
fn exec_sees_what_run_left() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        env.run_script(&source, &["--name", "first"], SCRIPT).expect_code(0).unused();
        let exec = |args: &[&str]| {
            env.sandtable().directory(&source).args(["exec", "first", "--"]).args(args).ended()
        };
        assert_eq!(exec(&["cat", "d/f"]).expect_code(0).stdout, "y\n");
        exec(&["test", "-e", "src"]).expect_code(1).unused();
        exec(&["sh", "-c", "exit 9"]).expect_code(9).unused();
    }
}

#[test]
fn a_start_in_a_sub_directory_keeps_it() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let ended = env.run_script(&source.join("src/deep"), &["--rm"], "pwd; ls; git rev-parse --show-toplevel");
    let expected = format!("{0}/src/deep\ner\n{0}\n", source.display());
    assert_eq!(ended.expect_code(0).stdout, expected);
}

#[test]
fn standard_input_is_passed_on() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let script = "printf 'one\\ntwo' | \"$1\" run --rm -q -- cat";
    let ended = env.run("sh").args(["-c", script, "sh"]).arg(env.binary()).directory(&source).ended();
    assert_eq!(ended.expect_code(0).stdout, "one\ntwo");
}

#[test]
fn arguments_are_verbatim() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let odd = ["--", "printf", "[%s]", "a b", "$HOME", "*", "", "--rm", "\\"];
    let ended = env.sandtable().directory(&source).args(["run", "--rm", "-q"]).args(odd).ended();
    assert_eq!(ended.expect_code(0).stdout, "[a b][$HOME][*][][--rm][\\]");
}

/// The kernel's view of an overlay must not make git think that files changed.
#[test]
fn git_status_inside_opens_no_unchanged_file() {
    if require::program("strace").is_none() {
        return require::skip("strace is not there");
    }
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let script = "strace -f -qq -e trace=openat,open -o \"$HOME/trace\" git status --porcelain; cat \"$HOME/trace\"";
        let inside = env.run_script(&source, &["--rm", "-q"], script).expect_code(0);
        assert_eq!(worktree_files_opened(&inside), [""; 0]);
        assert!(!inside.stdout.contains(" M "), "{}", inside.stdout);

        // Where a file has changed, git does look: the test would notice.
        let script = format!("touch README; {script}");
        let touched = env.run_script(&source, &["--rm", "-q"], &script).expect_code(0);
        assert_eq!(worktree_files_opened(&touched).len(), 1, "{}", touched.stdout);
    }
}

/// The lines of a trace that open a file of the sample repository.
fn worktree_files_opened(traced: &Ended) -> Vec<&str> {
    assert!(traced.stdout.contains("openat"), "strace saw nothing: {} {}", traced.stdout, traced.stderr);
    let files = ["README\"", "main.c\"", "util.c\"", "guide.txt\"", "build.sh\""];
    traced.stdout.lines().filter(|line| files.iter().any(|file| line.contains(file))).collect()
}

#[test]
fn a_directory_can_be_renamed_inside() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let before = env.fingerprint(&source);
    let ended = env.run_script(&source, &[], "mv src moved && cat moved/main.c").expect_code(0);
    assert!(ended.stdout.contains("int main"), "{}", ended.stdout);
    assert!(ended.stderr.contains("moved"), "{}", ended.stderr);
    assert_eq!(before.differences(&env.fingerprint(&source)), [""; 0]);
}

#[test]
fn a_dry_run_makes_nothing() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let dry = |more: &[&str]| {
        let run = env.sandtable().directory(&source).args(["run", "--dry-run"]).args(more);
        run.args(["--", "echo", "it-ran"]).ended().expect_code(0)
    };
    assert!(!dry(&[]).stdout.lines().any(|line| line == "it-ran"));
    let json: serde_json::Value = serde_json::from_str(&dry(&["--json"]).stdout).unwrap();
    assert!(json.is_object());
    assert_nothing_made(&env);
}

#[test]
fn only_listed_variables_are_seen_inside() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let run =
        env.sandtable().directory(&source).args(["run", "--rm", "-q", "--profile", "safe", "--", "env"]);
    let secrets = [
        "GITHUB_TOKEN",
        "OPENAI_API_KEY",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "LD_PRELOAD_X",
        "BASH_ENV",
    ];
    let ended = secrets.iter().fold(run, |run, name| run.variable(name, "canary")).ended().expect_code(0);
    assert!(!ended.stdout.contains("canary"), "{}", ended.stdout);
    assert!(ended.stdout.contains("HOME="), "{}", ended.stdout);
}

#[test]
fn the_executable_is_static_and_runs_as_pid_1_in_an_almost_empty_root() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if let Some(file) = require::program("file") {
        let ended = env.run(file).arg("-L").arg(env.binary()).ended().expect_code(0);
        assert!(ended.stdout.contains("static"), "{}", ended.stdout);
    } else {
        require::skip("`file` is not there");
    }
    let Some(busybox) = require::program("busybox").filter(|_| require::is_root()) else {
        return require::skip("an almost empty root needs root and busybox");
    };
    let root = env.root().join("root");
    env.directory(&root.join("bin"));
    fs_err::copy(busybox, root.join("bin/busybox")).unwrap();
    fs_err::copy(env.binary(), root.join("sandtable")).unwrap();
    let unshare = ["unshare", "--mount", "--pid", "--fork", "chroot"];
    let ended =
        env.run("/sandtable").arg("--version").through([root.to_str().unwrap()]).through(unshare).ended();
    assert!(ended.expect_code(0).stdout.contains("sandtable"));
}

/// Runs a script and reads the report.
fn outcome_of(env: &TestEnv, source: &Path, script: &str) -> Outcome {
    let report = env.home().join("report.json");
    env.run_script(source, &["--report", report.to_str().unwrap()], script).expect_code(0).unused();
    serde_json::from_slice(&fs_err::read(report).unwrap()).unwrap()
}

/// No sandbox is there, not even half of one.
pub(crate) fn assert_nothing_made(env: &TestEnv) {
    let entries: Vec<_> = match fs_err::read_dir(env.sandboxes()) {
        Ok(entries) => entries.map(|entry| entry.unwrap().file_name()).collect(),
        Err(_) => Vec::new(),
    };
    assert!(entries.is_empty(), "{entries:?}");
}

/// Ends a chain whose last result is not looked at.
pub(crate) trait Unused {
    fn unused(self);
}

impl Unused for Ended {
    fn unused(self) {}
}
