//! Merges, applies, undos and rollbacks that are broken off at a known step, by a signal, a kill or a failing disk: the old
//! state or the new one, by itself, and nothing of what the user did meanwhile is lost.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sandtable_testkit::env::{Caller, PATH, TestEnv};
use sandtable_testkit::fingerprint::Fingerprint;
use sandtable_testkit::process::{Ended, Run};
use sandtable_testkit::require::{self, skip};

use crate::cli::Unused;

/// Both kinds of callers, where calls can be traced.
pub(crate) fn each(test: impl Fn(&TestEnv)) {
    if require::program("strace").is_none() {
        return skip("strace is not there");
    }
    for caller in [Caller::Same, Caller::ordinary()] {
        if let Some(env) = TestEnv::of_the_executable_as(caller) {
            test(&env);
        }
    }
}

pub(crate) fn call(env: &TestEnv, source: &Path, args: &[&str]) -> Ended {
    env.sandtable().directory(source).args(args).ended()
}

/// The same with something injected into one kind of system call of the process itself.
pub(crate) fn injected(env: &TestEnv, source: &Path, what: &str, args: &[&str]) -> Ended {
    let name = what.split(':').next().unwrap_or_default();
    let (trace, inject) = (format!("trace={name}"), format!("inject={what}"));
    let words = ["strace", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    env.sandtable().directory(source).args(args).through(words).ended()
}

/// A repository, and a sandbox whose work touches every kind of step.
pub(crate) fn work(env: &TestEnv, name: &str) -> PathBuf {
    let source = env.repository(name);
    let script =
        "echo changed > README; rm docs/guide.txt; echo 1 > n1; echo 2 > n2; mkdir new; echo 3 > new/n3";
    env.run_script(&source, &["-q", "--name", name], script).expect_code(0).unused();
    source
}

/// Files and directories without `.git`, by content.
pub(crate) type Files = Vec<(PathBuf, Option<Vec<u8>>)>;

pub(crate) fn files(source: &Path) -> Files {
    let (mut found, mut waiting) = (Vec::new(), vec![source.to_owned()]);
    while let Some(folder) = waiting.pop() {
        for entry in fs_err::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path == source.join(".git") {
                continue;
            }
            let is_folder = path.symlink_metadata().unwrap().is_dir();
            let content = (!is_folder).then(|| fs_err::read(&path).unwrap());
            found.push((path.strip_prefix(source).unwrap().to_owned(), content));
            if is_folder {
                waiting.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Nothing of ours is left anywhere, and git is well.
pub(crate) fn clean(env: &TestEnv, source: &Path) {
    let data = env.home().join(".local/share/sandtable");
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(names(&data.join("pending")), [""; 0]);
    for place in names(&data.join("merges")).iter().map(|name| data.join("merges").join(name)) {
        let left = names(&place).into_iter().filter(|name| name != "lock");
        assert_eq!(left.collect::<Vec<_>>(), [""; 0]);
    }
    let ours = |name: &String| name.contains("sandtable-") || name.contains(".lock");
    for folder in ["", ".git", ".git/refs/heads"] {
        let left: Vec<String> = names(&source.join(folder)).into_iter().filter(ours).collect();
        assert_eq!(left, [""; 0], "in `{folder}`");
    }
    if source.join(".git").exists() {
        env.git(source, &["fsck", "--strict"]);
        assert_eq!(env.git(source, &["status", "--porcelain"]), "");
    }
}

/// Sends a signal by name.
fn signal(name: &str, pid: u32) {
    let kill = Run::new("kill", Path::new("/")).variable("PATH", PATH);
    kill.args([&format!("-{name}"), &pid.to_string()]).ended().unused();
}

#[test]
fn a_signal_during_a_merge_puts_everything_back_before_the_end() {
    each(|env| {
        let source = env.repository("r");
        let script = "i=0; while [ $i -lt 2000 ]; do echo $i > f$i; i=$((i+1)); done; echo other > README";
        env.run_script(&source, &["-q", "--name", "box"], script).expect_code(0).unused();
        let before = Fingerprint::of(&source, &[&source.join(".git")]);
        let head = env.git(&source, &["rev-parse", "HEAD"]);
        for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
            let child = env.sandtable().directory(&source).args(["merge", "box"]).started();
            let began = Instant::now();
            while !source.join(".git/index.lock").exists() && began.elapsed() < Duration::from_mins(1) {
                std::thread::sleep(Duration::from_millis(1));
            }
            signal(name, child.id());
            signal(name, child.id());
            // Read to the end, so that the pipe keeps nobody.
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.contains("everything was put back"), "{said}");
            assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), head);
            assert_eq!(before.differences(&Fingerprint::of(&source, &[&source.join(".git")])), [""; 0]);
            clean(env, &source);
        }
        call(env, &source, &["merge", "box"]).expect_code(0).unused();
    });
}

#[test]
fn after_a_kill_whatever_comes_next_puts_it_back_and_says_so() {
    each(|env| {
        let source = work(env, "r");
        let before = files(&source);
        let commands: [&[&str]; 10] = [
            &["ls"],
            &["inspect", "r"],
            &["diff", "r"],
            &["log"],
            &["snapshot"],
            &["run", "-q", "--rm", "--", "true"],
            &["exec", "-q", "r", "--", "true"],
            &["store", "fsck"],
            &["undo", "r"],
            &["merge", "r", "--dry-run"],
        ];
        for mode in ["merge", "apply"] {
            for command in commands {
                let killed = injected(env, &source, "renameat2:signal=SIGKILL:when=3", &[mode, "r"]);
                assert_eq!(killed.code, 137, "{}", killed.stderr);
                assert_ne!(files(&source), before, "half of it is there");
                let next = call(env, &source, command);
                assert!(next.stderr.contains("an interrupted merge in"), "{command:?}: {}", next.stderr);
                assert!(next.stderr.contains("was put back"), "{command:?}: {}", next.stderr);
                assert_eq!(next.code, 0, "{command:?}: {}", next.stderr);
                assert_eq!(files(&source), before, "{command:?}");
                clean(env, &source);
                if command[0] == "undo" {
                    call(env, &source, &["redo", "r"]).expect_code(0).unused();
                }
            }
        }
        call(env, &source, &["merge", "r", "--json"]).expect_code(0).unused();
    });
}

/// Merges, and is killed before its `n`th call of one kind; whether it was killed at all.
fn killed_at(env: &TestEnv, source: &Path, (call, n): (&str, usize), args: &[&str]) -> bool {
    injected(env, source, &format!("{call}:signal=SIGKILL:when={n}"), args).code == 137
}

#[test]
fn what_stands_after_a_kill_is_in_the_log_and_can_be_undone() {
    each(|env| {
        let source = work(env, "r");
        let old = files(&source);
        let head = || env.git(&source, &["rev-parse", "HEAD"]);
        let first = head();
        let (mut stood, mut put_back) = (0, 0);
        for kind in ["unlink", "unlinkat", "rename"] {
            for n in 1.. {
                if !killed_at(env, &source, (kind, n), &["merge", "r"]) {
                    call(env, &source, &["undo"]).expect_code(0).unused();
                    break;
                }
                let stands = head() != first;
                call(env, &source, &["ls"]).expect_code(0).unused();
                clean(env, &source);
                if stands {
                    stood += 1;
                    let undone = call(env, &source, &["undo"]).expect_code(0);
                    assert!(
                        undone.stderr.contains("`merge` of sandbox r was undone"),
                        "{kind} {n}: {}",
                        undone.stderr
                    );
                } else {
                    put_back += 1;
                }
                assert_eq!((files(&source), head()), (old.clone(), first.clone()), "{kind} {n}");
            }
        }
        assert!(stood > 5 && put_back > 5, "{stood} stood, {put_back} were put back");
    });
}

#[test]
fn a_killed_undo_is_in_the_log_once_it_stands() {
    each(|env| {
        let source = work(env, "r");
        call(env, &source, &["merge", "r"]).expect_code(0).unused();
        let (new, merged) = (files(&source), env.git(&source, &["rev-parse", "HEAD"]));
        let mut stood = 0;
        for (way, back) in [("undo", "redo"), ("redo", "undo")] {
            if way == "redo" {
                call(env, &source, &["undo"]).expect_code(0).unused();
            }
            let start = env.git(&source, &["rev-parse", "HEAD"]);
            for n in (1..).step_by(2) {
                if !killed_at(env, &source, ("unlink", n), &[way]) {
                    call(env, &source, &[back]).expect_code(0).unused();
                    break;
                }
                let stands = env.git(&source, &["rev-parse", "HEAD"]) != start;
                call(env, &source, &["ls"]).expect_code(0).unused();
                clean(env, &source);
                if stands {
                    stood += 1;
                    call(env, &source, &[back]).expect_code(0).unused();
                }
                assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), start, "{way} {n}");
            }
            if way == "redo" {
                call(env, &source, &["redo"]).expect_code(0).unused();
            }
            assert_eq!(
                (files(&source), env.git(&source, &["rev-parse", "HEAD"])),
                (new.clone(), merged.clone())
            );
        }
        assert!(stood > 1, "no kill came late enough");
    });
}

#[test]
fn what_the_user_did_after_a_kill_is_never_reverted() {
    each(|env| {
        let source = work(env, "r");
        // The removal, and two of the files that come.
        injected(env, &source, "renameat2:signal=SIGKILL:when=4", &["merge", "r"]).unused();
        assert!(!source.join("docs/guide.txt").exists(), "it was on its way");
        // Git knows no directories: one that is empty is nobody's.
        let half =
            || -> Vec<_> { files(&source).into_iter().filter(|(_, content)| content.is_some()).collect() };
        let found = half();
        fs_err::remove_file(source.join(".git/index.lock")).unwrap();
        env.git(&source, &["add", "-A"]);
        env.git(&source, &["commit", "-q", "-m", "what is there"]);
        let head = env.git(&source, &["rev-parse", "HEAD"]);
        let next = call(env, &source, &["ls"]).expect_code(0);
        assert!(next.stderr.contains("changed since: "), "{}", next.stderr);
        assert!(next.stderr.contains("`docs/guide.txt`"), "{}", next.stderr);
        assert_eq!((half(), env.git(&source, &["rev-parse", "HEAD"])), (found, head));
        clean(env, &source);
        call(env, &source, &["merge", "r"]).expect_code(0).unused();
        clean(env, &source);
    });
}

#[test]
fn edits_deletions_and_locks_of_the_users_survive_a_recovery() {
    each(|env| {
        for mode in ["merge", "apply"] {
            let source = work(env, mode);
            injected(env, &source, "renameat2:signal=SIGKILL:when=5", &[mode, mode]).unused();
            let arrived = || ["README", "n1", "n2"].map(|name| source.join(name)).into_iter();
            let is_new = |path: &PathBuf| {
                fs_err::read_to_string(path).is_ok_and(|text| text == "changed\n" || text.len() == 2)
            };
            let mut arrived: Vec<PathBuf> = arrived().filter(is_new).collect();
            let (edited, deleted) = (arrived.pop().unwrap(), arrived.pop().unwrap());
            env.file(&edited, "mine\n");
            fs_err::remove_file(&deleted).unwrap();
            let foreign = source.join(".git/HEAD.lock");
            env.file(&foreign, "");
            let next = call(env, &source, &["ls"]).expect_code(0);
            assert!(next.stderr.contains("changed since: "), "{}", next.stderr);
            assert_eq!(fs_err::read_to_string(&edited).unwrap(), "mine\n");
            assert!(!deleted.exists(), "what was deleted stays so");
            assert!(source.join("docs/guide.txt").exists(), "all else is put back");
            assert!(foreign.exists(), "a lock of somebody else's is no business of ours");
            assert!(!source.join(".git/index.lock").exists());
        }
    });
}

#[test]
fn what_fails_after_the_point_of_no_return_is_told_and_completed() {
    each(|env| {
        let source = work(env, "r");
        let head = env.git(&source, &["rev-parse", "HEAD"]);
        // The first of these removes what the merge left aside.
        let told = injected(env, &source, "unlinkat:error=EIO", &["merge", "r"]).expect_code(0);
        assert!(told.stdout.contains("the work is there"), "{}", told.stdout);
        assert!(!told.stdout.contains("put back"), "{}", told.stdout);
        assert_ne!(env.git(&source, &["rev-parse", "HEAD"]), head);
        let next = call(env, &source, &["ls"]).expect_code(0);
        assert!(next.stderr.contains("was completed"), "{}", next.stderr);
        clean(env, &source);
        let undone = call(env, &source, &["undo"]).expect_code(0);
        assert!(undone.stderr.contains("`merge` of sandbox r was undone"), "{}", undone.stderr);
        assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), head);
        clean(env, &source);
    });
}

/// The log is written after the branch has moved: when its disk fails there, what stands is said, and nothing is lost of the log.
#[test]
fn a_log_that_cannot_be_written_after_the_point_of_no_return_is_told_and_completed() {
    each(|env| {
        let source = work(env, "r");
        let (old, head) = (files(&source), env.git(&source, &["rev-parse", "HEAD"]));
        let path = call(env, &source, &["store", "path"]).expect_code(0).stdout;
        let log = PathBuf::from(path.trim()).with_file_name("meta.db-wal");
        for mode in ["merge", "apply"] {
            let fault =
                ["-e", "trace=pwrite64", "-e", "inject=pwrite64:error=EIO", "-P", log.to_str().unwrap()];
            let words = [&["strace", "-qq", "-o", "/dev/null"], &fault[..]].concat();
            let told =
                env.sandtable().directory(&source).args([mode, "r"]).through(words).ended().expect_code(0);
            assert!(told.stdout.contains("the work is there, but the log in"), "{mode}: {}", told.stdout);
            assert!(!told.stdout.contains("put back"), "{mode}: {}", told.stdout);
            assert_eq!(env.git(&source, &["rev-parse", "HEAD"]) != head, mode == "merge");
            assert_ne!(files(&source), old, "{mode}");
            let next = call(env, &source, &["ls"]).expect_code(0);
            assert!(next.stderr.contains("was completed"), "{mode}: {}", next.stderr);
            let undone = call(env, &source, &["undo"]).expect_code(0);
            assert!(
                undone.stderr.contains(&format!("`{mode}` of sandbox r was undone")),
                "{}",
                undone.stderr
            );
            assert_eq!(
                (files(&source), env.git(&source, &["rev-parse", "HEAD"])),
                (old.clone(), head.clone())
            );
            clean(env, &source);
        }
    });
}

/// A directory with files, two recorded states of it, and what it is in the older one.
pub(crate) fn recorded(env: &TestEnv, name: &str) -> (PathBuf, String, Files) {
    let source = env.root().join(name);
    for n in 1..=6 {
        env.file(&source.join(format!("f{n}")), format!("old {n}\n"));
    }
    let snapshot = call(env, &source, &["snapshot"]).expect_code(0);
    let id = snapshot.stdout.split_whitespace().next().unwrap().to_owned();
    let old = files(&source);
    for n in 1..=6 {
        env.file(&source.join(format!("f{n}")), format!("new {n}\n"));
    }
    env.file(&source.join("extra"), "x\n");
    call(env, &source, &["snapshot"]).expect_code(0).unused();
    (source, id, old)
}

#[test]
fn a_killed_rollback_of_a_directory_ends_by_itself_and_keeps_edits() {
    each(|env| {
        let (source, id, old) = recorded(env, "d");
        let new = files(&source);
        for edits in [false, true] {
            // Half of the files are in their places.
            let half = "renameat,renameat2:signal=SIGKILL:when=5";
            let killed = injected(env, &source, half, &["rollback", &id, "."]);
            assert_eq!(killed.code, 137, "{}", killed.stderr);
            let now = files(&source);
            assert!(now != old && now != new, "it was killed between the two");
            if edits {
                env.file(&source.join("f1"), "mine\n");
            }
            let next = call(env, &source, &["snapshot"]).expect_code(0);
            assert!(next.stderr.contains("an interrupted rollback in"), "{}", next.stderr);
            let mut wanted = new.clone();
            if edits {
                assert!(next.stderr.contains("changed since: `f1`"), "{}", next.stderr);
                wanted.retain(|(path, _)| path != Path::new("f1"));
                wanted.push((PathBuf::from("f1"), Some(b"mine\n".to_vec())));
                wanted.sort();
            }
            assert_eq!(files(&source), wanted);
            clean(env, &source);
            // Nothing is a dead end: the snapshot, the rollback and what was before them can be taken back.
            call(env, &source, &["undo", "."]).expect_code(0).unused();
            call(env, &source, &["rollback", &id, "."]).expect_code(0).unused();
            assert_eq!(files(&source), old);
            call(env, &source, &["undo", "."]).expect_code(0).unused();
            for n in 1..=6 {
                env.file(&source.join(format!("f{n}")), format!("new {n}\n"));
            }
            env.file(&source.join("extra"), "x\n");
            call(env, &source, &["snapshot"]).expect_code(0).unused();
        }
    });
}

#[test]
fn a_copied_sandbox_whose_rollback_was_killed_is_whole_before_a_command_runs_in_it() {
    each(|env| {
        let source = env.root().join("d");
        for n in 1..=6 {
            env.file(&source.join(format!("f{n}")), format!("old {n}\n"));
        }
        let script = "for n in 1 2 3 4 5 6; do echo new > f$n; done";
        env.run_script(&source, &["-q", "--mode", "copy", "--name", "c"], script).expect_code(0).unused();
        for way in ["undo", "undo"] {
            let killed = injected(env, &source, "renameat,renameat2:signal=SIGKILL:when=4", &[way, "c"]);
            assert_eq!(killed.code, 137, "{}", killed.stderr);
            let seen = call(env, &source, &["exec", "-q", "c", "--", "sh", "-c", "cat f1 f2 f3 f4 f5 f6"]);
            let seen = seen.expect_code(0);
            let words: Vec<&str> = seen.stdout.lines().map(|line| &line[..3]).collect();
            assert!(words == ["old"; 6] || words == ["new"; 6], "{way}: {}", seen.stdout);
            assert!(seen.stderr.contains("an interrupted rollback in"), "{}", seen.stderr);
        }
    });
}

#[test]
fn a_signal_during_a_rollback_ends_with_the_old_or_the_new_state() {
    each(|env| {
        let (source, id, old) = recorded(env, "d");
        let new = files(&source);
        // The signal comes while new files are made, while files change places, and after the point of no return.
        for (what, code, wanted) in [
            ("mkdirat:signal=SIGINT:when=1", 130, &new),
            ("renameat2:signal=SIGTERM:when=4", 143, &new),
            ("unlinkat:signal=SIGTERM:when=4", 143, &old),
        ] {
            let ended = injected(env, &source, what, &["rollback", &id, "."]);
            assert_eq!(ended.code, code, "{what}: {}", ended.stderr);
            assert_eq!(&files(&source), wanted, "{what}: {}", ended.stderr);
            clean(env, &source);
        }
        call(env, &source, &["undo", "."]).expect_code(0).unused();
        assert_eq!(files(&source), new, "what a signal could not stop is in the log");
    });
}

#[test]
fn what_is_aside_during_a_delivery_is_part_of_no_state() {
    each(|env| {
        let source = env.root().join("plain");
        env.file(&source.join("f"), "old\n");
        for name in [
            ".sandtable-0123456789abcdef/0",
            ".sandtable-rollback-0123456789abcdef/n0",
            ".sandtable-notes/mine",
        ] {
            env.file(&source.join(name), "x\n");
        }
        let taken = call(env, &source, &["snapshot"]).expect_code(0);
        let id = taken.stdout.split_whitespace().next().unwrap().to_owned();
        let copy = env.home().join("copy");
        call(env, &source, &["checkout", &id, copy.to_str().unwrap()]).expect_code(0).unused();
        let names: Vec<PathBuf> = files(&copy).into_iter().map(|(path, _)| path).collect();
        assert_eq!(names, [".sandtable-notes", ".sandtable-notes/mine", "f"].map(PathBuf::from));
    });
}
