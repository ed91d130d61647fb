//! Work that was broken off, and a directory that meanwhile is away, has another name, is in use by git or is being edited:
//! nothing of the user's is lost, and what is half done is put back where it is meant, or named.

use std::path::{Path, PathBuf};

use sandtable_testkit::env::TestEnv;
use sandtable_testkit::process::Ended;
use sandtable_testkit::require::{self, skip};

use crate::cli::Unused;

const CHANGED: usize = 20;
const SCRIPT: &str = "for i in $(seq 0 19); do echo new >> f$i; done; rm f21; mkdir n; echo n > n/1";

fn each(test: impl Fn(&TestEnv, &Path)) {
    if require::program("strace").is_none() {
        return skip("strace is not there");
    }
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let script = "git config user.name u; git config user.email u@e; for i in $(seq 0 25); do echo old > f$i; done; git add -A; git commit -qm files";
    env.run("sh").args(["-c", script]).directory(&source).ended().expect_code(0).unused();
    test(&env, &source);
}

fn call(env: &TestEnv, source: &Path, args: &[&str]) -> Ended {
    env.sandtable().directory(source).args(args).ended()
}

/// Killed at one of its calls.
fn killed(env: &TestEnv, source: &Path, (name, when): (&str, u32), args: &[&str]) {
    let (trace, inject) = (format!("trace={name}"), format!("inject={name}:signal=SIGKILL:when={when}"));
    let words = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    let ended = env.sandtable().directory(source).args(args).through(words).ended();
    assert_ne!(ended.code, 0, "it was not killed: {}", ended.stderr);
    let found = changed(source);
    assert!(found > 0 && found < CHANGED, "{found} files are changed");
}

/// How many files are in the new state.
fn changed(source: &Path) -> usize {
    let is_new = |number: &usize| {
        fs_err::read_to_string(source.join(format!("f{number}"))).is_ok_and(|text| text.contains("new"))
    };
    (0..CHANGED).filter(is_new).count()
}

/// Two states of the directory; the first one's name.
fn two(env: &TestEnv, source: &Path) -> String {
    let first = call(env, source, &["snapshot"]).expect_code(0).stdout.trim().to_owned();
    env.run("sh").args(["-c", SCRIPT]).directory(source).ended().expect_code(0).unused();
    call(env, source, &["snapshot"]).expect_code(0).unused();
    first
}

fn left(source: &Path) -> Vec<String> {
    let names = |folder: PathBuf| {
        let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let ours = |name: &String| name.contains("sandtable-") || name.contains(".lock");
    names(source.to_owned()).into_iter().chain(names(source.join(".git"))).filter(ours).collect()
}

#[test]
fn what_is_saved_during_a_rollback_stays() {
    each(|env, source| {
        let first = two(env, source);
        let inject = "inject=renameat2:delay_enter=3s:when=6";
        let words = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2", "-e", inject];
        let rollback =
            env.sandtable().directory(source).args(["rollback", &first, "."]).through(words).started();
        std::thread::sleep(std::time::Duration::from_millis(1800));
        let file = source.join("f9");
        let mut text = fs_err::read_to_string(&file).unwrap();
        text.push_str("my edit\n");
        env.file(&file, &text);
        let ended = rollback.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        let after = fs_err::read_to_string(&file).unwrap();
        assert!(after.contains("my edit"), "{after}: {said}");
        assert!([CHANGED, 1].contains(&changed(source)) || ended.status.success(), "{said}");
        assert_eq!(left(source), [""; 0]);
    });
}

#[test]
fn a_rollback_waits_for_a_directory_that_is_away() {
    each(|env, source| {
        let first = two(env, source);
        killed(env, source, ("renameat2", 10), &["rollback", &first, "."]);
        let away = source.with_file_name("away");
        fs_err::rename(source, &away).unwrap();
        for _ in 0..2 {
            let said = env.sandtable().args(["ls", "-q"]).ended().expect_code(0);
            said.expect_stderr("waits for that directory").expect_stderr(source.to_str().unwrap()).unused();
        }
        fs_err::rename(&away, source).unwrap();
        env.sandtable().args(["ls", "-q"]).ended().expect_code(0).expect_stderr("was put back").unused();
        assert_eq!((changed(source), left(source)), (CHANGED, Vec::new()));
        call(env, source, &["rollback", &first, "."]).expect_code(0).unused();
        assert_eq!(changed(source), 0);
    });
}

#[test]
fn a_merge_waits_while_another_directory_has_the_name() {
    each(|env, source| {
        env.run_script(source, &["-q", "--name", "a"], SCRIPT).expect_code(0).unused();
        killed(env, source, ("renameat2", 12), &["merge", "a"]);
        let away = source.with_file_name("away");
        fs_err::rename(source, &away).unwrap();
        env.git(env.root(), &["init", "-q", source.to_str().unwrap()]);
        let said = env.sandtable().args(["ls", "-q"]).ended().expect_code(0);
        said.expect_stderr("waits for that directory").unused();
        fs_err::remove_dir_all(source).unwrap();
        fs_err::rename(&away, source).unwrap();
        env.sandtable().args(["ls", "-q"]).ended().expect_code(0).expect_stderr("was put back").unused();
        assert_eq!((changed(source), left(source)), (0, Vec::new()));
    });
}

#[test]
fn recovery_waits_for_git() {
    each(|env, source| {
        env.run_script(source, &["-q", "--name", "a"], SCRIPT).expect_code(0).unused();
        let first = call(env, source, &["snapshot"]).expect_code(0).stdout.trim().to_owned();
        for rollback in [false, true] {
            if rollback {
                call(env, source, &["apply", "a"]).expect_code(0).unused();
                killed(env, source, ("renameat2", 10), &["rollback", &first, "."]);
            } else {
                killed(env, source, ("renameat2", 12), &["apply", "a"]);
            }
            let half = changed(source);
            env.file(&source.join(".git/index.lock"), "");
            let said = env.sandtable().args(["ls", "-q"]).ended().expect_code(0);
            said.expect_stderr("git").expect_stderr("index.lock").unused();
            assert_eq!(changed(source), half, "put back beneath git");
            fs_err::remove_file(source.join(".git/index.lock")).unwrap();
            env.sandtable().args(["ls", "-q"]).ended().expect_code(0).expect_stderr("was put back").unused();
            assert_eq!(changed(source), if rollback { CHANGED } else { 0 });
        }
    });
}

#[test]
fn what_git_did_after_a_killed_rollback_is_not_reverted() {
    each(|env, source| {
        let first = two(env, source);
        env.git(source, &["add", "-A"]);
        env.git(source, &["commit", "-qm", "second"]);
        for commands in [
            &[&["checkout", "-qf", "."][..]] as &[&[&str]],
            &[&["stash", "-qu"]],
            &[&["add", "-A"], &["commit", "-qm", "half"]],
        ] {
            let head = env.git(source, &["rev-parse", "HEAD"]);
            killed(env, source, ("renameat2", 10), &["rollback", &first, "."]);
            for command in commands {
                env.git(source, command);
            }
            let theirs = changed(source);
            env.sandtable().args(["ls", "-q"]).ended().expect_code(0).unused();
            assert_eq!((changed(source), left(source)), (theirs, Vec::new()), "{commands:?}");
            assert_eq!(env.git(source, &["status", "--porcelain"]), "", "{commands:?}");
            let tracked = env.git(source, &["ls-files"]);
            assert!(!tracked.contains("sandtable-"), "{tracked}");
            env.git(source, &["reset", "-q", "--hard", head.trim()]);
        }
    });
}

#[test]
fn records_that_cannot_be_read_are_named() {
    each(|env, source| {
        let data = env.sandboxes().parent().unwrap().to_owned();
        let first = two(env, source);
        killed(env, source, ("renameat2", 10), &["rollback", &first, "."]);
        let find = "find \"$0\" -path '*/journal/*' -type f -exec sed -i 's/^sandtable-journal 1/sandtable-journal 2/' {} +";
        env.run("sh").args(["-c", find]).arg(data.join("stores")).ended().expect_code(0).unused();
        let said = env.sandtable().args(["ls", "-q"]).ended().expect_code(0);
        said.expect_stderr("cannot be read").expect_stderr(source.to_str().unwrap()).unused();
    });
    each(|env, source| {
        let data = env.sandboxes().parent().unwrap().to_owned();
        env.run_script(source, &["-q", "--name", "a"], SCRIPT).expect_code(0).unused();
        killed(env, source, ("renameat2", 12), &["merge", "a"]);
        let script = "for f in \"$0\"/merges/*/journal.json; do : > $f; done";
        env.run("sh").args(["-c", script]).arg(&data).ended().expect_code(0).unused();
        let said = env.sandtable().args(["ls", "-q"]).ended().expect_code(0);
        said.expect_stderr("journal").expect_stderr(source.to_str().unwrap()).unused();
    });
}
