//! What is half done is never taken for a state, wherever it was moved to.

use std::path::Path;
use std::time::Duration;

use sandtable_testkit::env::TestEnv;

use crate::broken_off::{call, clean, each, files, injected, recorded, work};
use crate::cli::Unused as _;

/// Each command refuses the directory under its new name, says which one it was, and changes nothing; given its old name
/// again it is put back, and can be moved.
fn refused_until_it_is_back(env: &TestEnv, (old, new): (&Path, &Path), commands: &[&[&str]]) {
    fs_err::rename(old, new).unwrap();
    let half = files(new);
    for command in commands {
        let refused = call(env, new, command);
        assert_eq!(refused.code, 2, "{command:?}: {}", refused.stderr);
        for part in [
            "is half changed by an interrupted operation",
            &format!("rename it back to `{}` and run `sandtable ls`", old.display()),
        ] {
            assert!(refused.stderr.contains(part), "{command:?}: {}", refused.stderr);
        }
        assert_eq!(files(new), half, "{command:?}");
    }
    // A directory in it is no way around.
    let below = new.join("below");
    env.directory(&below);
    assert_eq!(call(env, &below, &["snapshot", "."]).code, 2);
    fs_err::remove_dir(&below).unwrap();
    // What has nothing to do with it works.
    call(env, &env.home(), &["ls"]).expect_code(0).unused();
    fs_err::rename(new, old).unwrap();
    let back = call(env, old, &["ls"]).expect_code(0);
    assert!(back.stderr.contains("was put back"), "{}", back.stderr);
    clean(env, old);
    fs_err::rename(old, new).unwrap();
}

#[test]
fn a_half_done_merge_is_not_recorded_under_another_name() {
    each(|env| {
        for mode in ["merge", "apply"] {
            let source = work(env, mode);
            let before = files(&source);
            let moved = env.root().join(format!("{mode}-moved"));
            let killed = injected(env, &source, "renameat2:signal=SIGKILL:when=3", &[mode, mode]);
            assert_eq!(killed.code, 137, "{}", killed.stderr);
            let commands: [&[&str]; 8] = [
                &["run", "--", "true"],
                &["run", "-d", "--", "true"],
                &["run", "--mode", "live", "--dangerously-allow-source", "--", "true"],
                &["snapshot"],
                &["snapshot", "."],
                &["onboard"],
                &["undo"],
                &["merge", mode, "--into", "."],
            ];
            refused_until_it_is_back(env, (&source, &moved), &commands);
            assert_eq!(files(&moved), before);
            call(env, &moved, &["run", "-q", "--rm", "--", "true"]).expect_code(0).unused();
        }
    });
}

/// What a git that was killed left keeps a recovery waiting: the line says what it is and what to do.
#[test]
fn a_lock_of_a_dead_git_is_named_with_its_age_and_what_to_do() {
    each(|env| {
        let source = work(env, "r");
        let before = files(&source);
        // One that has a state, and one whose last command was never recorded.
        for name in ["live", "behind"] {
            let live =
                ["run", "-q", "--mode", "live", "--dangerously-allow-source", "--name", name, "--", "true"];
            call(env, &source, &live).expect_code(0).unused();
        }
        env.file(&env.sandboxes().join("behind/unrecorded"), "");
        injected(env, &source, "renameat2:signal=SIGKILL:when=3", &["merge", "r"]).expect_code(137).unused();
        let lock = source.join(".git/index.lock");
        let old = fs_err::metadata(&lock).unwrap().modified().unwrap() - Duration::from_hours(3);
        fs_err::remove_file(&lock).unwrap();
        env.file(&lock, "");
        fs_err::File::options().write(true).open(&lock).unwrap().set_modified(old).unwrap();
        for _ in 0..2 {
            let waits = call(env, &source, &["ls"]).expect_code(0);
            let named =
                format!("`{}` was created 3 hours ago. If no git command is running there", lock.display());
            for part in [&*named, "there, delete it.", "an interrupted merge in"] {
                assert!(waits.stderr.contains(part), "{part}: {}", waits.stderr);
            }
        }
        // Nothing records the half of it meanwhile.
        let half = files(&source);
        let commands: [&[&str]; 7] = [
            &["snapshot"],
            &["exec", "live", "--", "touch", "new-file"],
            &["snapshot", "live"],
            &["rollback", "live", "live"],
            &["undo", "live"],
            &["diff", "behind"],
            &["fork", "behind"],
        ];
        for command in commands {
            let refused = call(env, &source, command).expect_code(2);
            assert!(
                refused.stderr.contains("is half changed by an interrupted operation"),
                "{command:?}: {}",
                refused.stderr
            );
        }
        assert_eq!(files(&source), half);
        // What works on a copy of its own goes on.
        call(env, &source, &["diff", "r"]).expect_code(0).unused();
        fs_err::remove_file(&lock).unwrap();
        let back = call(env, &source, &["snapshot"]).expect_code(0);
        assert!(back.stderr.contains("was put back"), "{}", back.stderr);
        assert_eq!(files(&source), before);
        clean(env, &source);
    });
}

#[test]
fn a_half_done_rollback_is_not_recorded_under_another_name() {
    each(|env| {
        let (source, id, _) = recorded(env, "d");
        let before = files(&source);
        let moved = env.root().join("moved");
        let killed = injected(env, &source, "renameat2:signal=SIGKILL:when=5", &["rollback", &id, "."]);
        assert_eq!(killed.code, 137, "{}", killed.stderr);
        let commands: [&[&str]; 5] =
            [&["run", "--", "true"], &["snapshot"], &["rollback", &id, "."], &["undo", "."], &["onboard"]];
        refused_until_it_is_back(env, (&source, &moved), &commands);
        assert_eq!(files(&moved), before);
        call(env, &moved, &["snapshot"]).expect_code(0).unused();
    });
}

/// Where a file system cannot rename without replacing, a file that moves has two names for a moment.
#[test]
fn a_kill_between_the_two_names_of_a_file_is_recovered_from() {
    each(|env| {
        let (source, id, old) = recorded(env, "d");
        let new = files(&source);
        let killed_at = |n: usize, args: &[&str]| {
            let kill = format!("inject=unlinkat:signal=SIGKILL:when={n}");
            let rules =
                ["-e", "trace=renameat2,unlinkat", "-e", "inject=renameat2:error=EINVAL", "-e", &kill];
            let words = ["strace", "-qq", "-o", "/dev/null"].into_iter().chain(rules);
            env.sandtable().directory(&source).args(args).through(words).ended()
        };
        let mut between = 0;
        for n in 1..=40 {
            if killed_at(n, &["rollback", &id, "."]).code != 137 {
                assert_eq!(files(&source), old);
                break;
            }
            // The recovery is killed in its turn, as often as it comes further.
            for m in 1..=3 {
                let _killed_or_done = killed_at(2 * m + n % 2, &["ls"]);
            }
            let next = call(env, &source, &["ls"]).expect_code(0);
            assert!(!next.stderr.contains("changed since"), "{n}: {}", next.stderr);
            let now = files(&source);
            assert!(now == old || now == new, "{n}: {now:?}");
            clean(env, &source);
            if now == new {
                between += 1;
            } else {
                call(env, &source, &["undo", "."]).expect_code(0).unused();
            }
        }
        assert!(between > 3, "{between}");
    });
}

/// A merge that is named leads to its directory, whatever is half done there.
#[test]
fn a_merge_into_a_half_done_directory_is_not_undone_and_the_lock_is_named_with_its_age() {
    each(|env| {
        let source = work(env, "r");
        let merged = call(env, &source, &["merge", "r"]).expect_code(0);
        let name = (merged.stdout + &merged.stderr)
            .split_once("undo --merge ")
            .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_hexdigit()).next().map(str::to_owned))
            .expect("the way back is named");
        let id = call(env, &source, &["snapshot"]).expect_code(0).stdout.trim().to_owned();
        for n in 1..=4 {
            env.file(&source.join(format!("f{n}")), "mine\n");
        }
        let killed = injected(env, &source, "renameat2:signal=SIGKILL:when=3", &["rollback", &id, "."]);
        assert_eq!(killed.code, 137, "{}", killed.stderr);
        let lock = source.join(".git/index.lock");
        env.file(&lock, "");
        let old = fs_err::metadata(&lock).unwrap().modified().unwrap() - Duration::from_hours(3);
        fs_err::File::options().write(true).open(&lock).unwrap().set_modified(old).unwrap();
        let half = files(&source);
        for words in [&["undo", "--merge", &name][..], &["undo", "--merge"], &["undo", "--merge", "."]] {
            let refused = call(env, &source, words).expect_code(2);
            let age = format!("`{}` was created 3 hours ago", lock.display());
            for part in ["is half changed by an interrupted operation", "an interrupted rollback in", &age] {
                assert!(refused.stderr.contains(part), "{words:?}: {}", refused.stderr);
            }
            assert_eq!(files(&source), half, "{words:?}");
        }
        fs_err::remove_file(&lock).unwrap();
        call(env, &source, &["undo", "--merge", &name]).expect_code(0).expect_stderr("was put back").unused();
        (1..=4).for_each(|n| fs_err::remove_file(source.join(format!("f{n}"))).unwrap());
        clean(env, &source);
    });
}

/// What keeps a rollback from being prepared is said, also where what was prepared cannot be cleared away at once.
#[test]
fn a_rollback_that_cannot_be_prepared_names_the_cause() {
    each(|env| {
        let (source, id, _) = recorded(env, "d");
        let before = files(&source);
        for more in [&[][..], &["-e", "inject=unlinkat:error=EIO"]] {
            let rules = ["-e", "trace=mkdirat,unlinkat", "-e", "inject=mkdirat:error=ENOSPC:when=1"];
            let words = ["strace", "-qq", "-o", "/dev/null"].into_iter().chain(rules);
            let words = words.chain(more.iter().copied());
            let run = env.sandtable().directory(&source).args(["rollback", &id, "."]).through(words);
            let failed = run.ended();
            assert_ne!(failed.code, 0, "{more:?}");
            assert!(failed.stderr.contains("No space left"), "{more:?}: {}", failed.stderr);
            call(env, &source, &["ls"]).expect_code(0).unused();
            assert_eq!(files(&source), before, "{more:?}");
            clean(env, &source);
        }
    });
}

/// A merge is done again by its commit: no state is needed.
#[test]
fn a_merge_whose_states_are_gone_is_done_again() {
    each(|env| {
        let source = work(env, "r");
        call(env, &source, &["merge", "r"]).expect_code(0).unused();
        let merged = files(&source);
        call(env, &source, &["undo", "."]).expect_code(0).unused();
        call(env, &source, &["rm", "r"]).expect_code(0).unused();
        call(env, &source, &["store", "forget", "--yes"]).expect_code(0).unused();
        call(env, &source, &["redo", "."]).expect_code(0).unused();
        assert_eq!(files(&source), merged);
        clean(env, &source);
    });
}
