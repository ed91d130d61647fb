//! A repository has many forms: in each of them git inside stays where it was when the sandbox was made.

use std::path::{Path, PathBuf};

use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::Run;

use crate::cli::Unused as _;
use crate::git_base::{COMMIT, SHOWN, each, inside};

/// Makes a sandbox, works on outside, and looks at what a commit inside contains.
fn stays(env: &TestEnv, source: &Path, name: &str) {
    stays_in(env, source, (name, &|| env.sandtable()));
}

/// The same with another way to call the executable.
fn stays_in(env: &TestEnv, source: &Path, (name, call): (&str, &dyn Fn() -> Run)) {
    let inside = |script: &str| {
        call().args(["exec", "-q", name, "--", "sh", "-c", script]).ended().expect_code(0).stdout
    };
    call()
        .directory(source)
        .args(["run", "-q", "--name", name, "--", "true"])
        .ended()
        .expect_code(0)
        .unused();
    env.file(&source.join("README"), format!("Mine, beside {name}.\n"));
    env.git(source, &["commit", "-q", "-am", "my own work"]);
    env.git(source, &["checkout", "-q", "-b", &format!("topic-{name}")]);
    env.git(source, &["pack-refs", "--all"]);
    env.git(source, &["gc", "-q"]);
    assert_eq!(inside("git status --porcelain --branch | head -1"), "## main\n", "{name}");
    assert_eq!(inside(COMMIT), SHOWN, "{name}");
    assert_eq!(inside("git fsck --no-progress --no-dangling 2> /dev/null"), "", "{name}");
}

fn fresh(env: &TestEnv, name: &str, setup: &[&[&str]]) -> PathBuf {
    let source = env.repository(name);
    for args in setup {
        env.git(&source, args);
    }
    source
}

#[test]
fn every_form_of_an_index_is_held() {
    let forms: [(&str, &[&[&str]]); 4] = [
        ("split", &[&["config", "splitIndex.sharedIndexExpire", "now"], &["update-index", "--split-index"]]),
        ("untracked", &[&["update-index", "--untracked-cache"], &["status"]]),
        ("sparse", &[&["sparse-checkout", "set", "--cone", "--sparse-index", "src"]]),
        ("version", &[&["update-index", "--index-version", "4"], &["config", "index.skipHash", "true"]]),
    ];
    each(|env| {
        for (name, setup) in forms {
            let source = fresh(env, name, setup);
            if name == "split" {
                let files = fs_err::read_dir(source.join(".git")).unwrap().flatten();
                assert!(
                    files
                        .into_iter()
                        .any(|file| { file.file_name().to_string_lossy().starts_with("sharedindex.") })
                );
            }
            stays(env, &source, name);
        }
        // What the index was split from goes with the next one.
        let source = fresh(env, "resplit", forms[0].1);
        env.run_script(&source, &["-q", "--name", "resplit"], "true").expect_code(0).unused();
        for args in [
            &["update-index", "--no-split-index"][..],
            &["mv", "README", "READ"],
            &["commit", "-qm", "moved"],
        ] {
            env.git(&source, args);
        }
        env.git(&source, &["update-index", "--split-index"]);
        assert_eq!(inside(env, "resplit", COMMIT), SHOWN);
    });
}

/// With a hook that says that nothing moved, as a monitor of files does.
#[test]
fn a_monitor_of_files_does_not_hide_work() {
    each(|env| {
        let source = env.repository("r");
        let hook = env.root().join("monitor");
        env.file(&hook, "#!/bin/sh\nprintf 'token\\0'\n");
        fs_err::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        env.git(&source, &["config", "core.fsmonitor", hook.to_str().unwrap()]);
        env.git(&source, &["update-index", "--fsmonitor"]);
        env.git(&source, &["status"]);
        // The hook is not there inside, so git looks for itself.
        let script = "echo agent >> README; git status --porcelain 2> /dev/null";
        let seen = env.run_script(&source, &["-q", "--name", "a"], script).expect_code(0);
        assert_eq!(seen.stdout, " M README\n");
    });
}

#[test]
fn reftables_are_held_and_their_commits_are_not_brought() {
    each(|env| {
        let source = env.root().join("r");
        env.directory(&source);
        let made =
            env.run("git").directory(&source).args(["init", "-q", "-b", "main", "--ref-format=reftable"]);
        if made.ended().code != 0 {
            sandtable_testkit::require::skip("this git has no reftables");
            return;
        }
        env.file(&source.join("README"), "A sample.\n");
        env.git(&source, &["add", "-A"]);
        env.git(&source, &["commit", "-q", "-m", "first"]);
        stays(env, &source, "a");
        env.git(&source, &["checkout", "-q", "main"]);
        let merge = |words: &[&str]| env.sandtable().directory(&source).arg("merge").args(words).ended();
        let refused = merge(&["a", "--history", "-m", "merged"]).expect_code(1);
        let told = format!("{}{}", refused.stdout, refused.stderr);
        assert!(told.contains("reftables") && told.contains("leave out `--history`"), "{told}");
        merge(&["a", "-m", "merged"]).expect_code(0).unused();
        let brought = env.git(&source, &["show", "--format=%s", "--name-status"]);
        assert_eq!(brought, "merged\n\nA\tagent.txt\n");
    });
}

#[test]
fn the_worktree_of_a_bare_repository_is_held() {
    each(|env| {
        let (seed, bare) = (env.repository("seed"), env.root().join("bare.git"));
        env.directory(&bare);
        env.git(&seed, &["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
        let source = env.root().join("tree");
        env.directory(&source);
        env.git(&bare, &["worktree", "add", "-q", source.to_str().unwrap(), "main"]);
        stays(env, &source, "a");
    });
}

/// What a link cannot hold is copied: files of another file system, and files of somebody else.
#[test]
fn where_there_can_be_no_link_there_is_a_copy() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        env.file(&env.home().join(".gitconfig"), "[user]\n\tname = Ann\n\temail = ann@example.invalid\n");
        let source = env.repository("r");
        if caller != Caller::Same {
            // As after a `sudo git commit`. Root may link whatever it likes, so only an ordinary user meets this.
            for name in ["HEAD", "index", "config", "refs/heads/main"] {
                let path = source.join(".git").join(name);
                std::os::unix::fs::chown(&path, Some(0), Some(0)).unwrap();
                fs_err::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
            }
        }
        stays(&env, &source, "a");
        let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else { continue };
        let device = |path: &Path| std::os::unix::fs::MetadataExt::dev(&fs_err::metadata(path).unwrap());
        if device(elsewhere.path()) == device(env.root()) {
            sandtable_testkit::require::skip("there is no second file system");
            continue;
        }
        if let Caller::Ordinary { uid, gid } = caller {
            std::os::unix::fs::chown(elsewhere.path(), Some(uid), Some(gid)).unwrap();
        }
        let far = || env.sandtable().variable("XDG_DATA_HOME", elsewhere.path());
        let probe = far().directory(&source).args(["run", "-q", "--rm", "--", "true"]).ended();
        if probe.stderr.contains("[state-file-system]") {
            sandtable_testkit::require::skip("this kernel lets no layer lie in memory");
            continue;
        }
        stays_in(&env, &env.repository("far"), ("far", &far));
    }
}

/// Some programs write these files in place.
#[test]
fn what_is_written_in_place_outside_is_not_seen_inside() {
    each(|env| {
        let source = env.repository("r");
        env.git(&source, &["pack-refs", "--all"]);
        let git = source.join(".git");
        env.run_script(&source, &["-q", "--name", "a"], "true").expect_code(0).unused();
        let appended = |name: &str, text: &str| {
            let old = fs_err::read(git.join(name)).unwrap();
            fs_err::write(git.join(name), [old.as_slice(), text.as_bytes()].concat()).unwrap();
        };
        appended("config", "[user]\n\tname = Mallory\n");
        appended("packed-refs", "0000000000000000000000000000000000000001 refs/heads/zzz\n");
        fs_err::write(git.join("HEAD"), "ref: refs/heads/other\n").unwrap();
        fs_err::write(git.join("index"), "no index at all").unwrap();
        assert_eq!(
            inside(env, "a", "git status --porcelain --branch; git config user.name"),
            "## main\nAnn\n"
        );
        assert_eq!(inside(env, "a", COMMIT), SHOWN);
    });
}

#[test]
fn a_submodule_that_moves_outside_is_no_part_of_a_commit_inside() {
    each(|env| {
        let (library, source) = (env.repository("library"), env.repository("r"));
        let add = [
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            library.to_str().unwrap(),
            "lib",
        ];
        env.git(&source, &add);
        env.git(&source, &["commit", "-q", "-m", "a library"]);
        env.run_script(&source, &["-q", "--name", "a"], "true").expect_code(0).unused();
        let submodule = source.join("lib");
        env.git(&submodule, &["commit", "-q", "--allow-empty", "-m", "of the user"]);
        env.git(&submodule, &["checkout", "-q", "-b", "topic"]);
        assert_eq!(env.git(&source, &["status", "--porcelain"]), " M lib\n");
        assert_eq!(inside(env, "a", "git status --porcelain; git -C lib branch --show-current"), "main\n");
        assert_eq!(inside(env, "a", COMMIT), SHOWN);
    });
}

/// No state has what a submodule is moved to inside: the commits made there say it.
#[test]
fn a_submodule_that_was_moved_inside_is_moved_by_the_merge() {
    const WAYS: [&[&str]; 2] = [&["merge", "a"], &["merge", "a", "--history"]];
    const WORK: [&str; 2] = ["", "; echo x > new"];
    each(|env| {
        for (number, (way, work)) in WAYS.iter().flat_map(|way| WORK.map(|work| (way, work))).enumerate() {
            let (name, module) = (format!("r{number}"), env.repository(&format!("module{number}")));
            let source = env.repository(&name);
            let from = module.to_str().unwrap();
            let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "lib"];
            env.git(&source, &add);
            env.git(&source, &["commit", "-q", "-m", "with a submodule"]);
            let script = format!(
                "g='git -c user.name=A -c user.email=a@example.invalid'; \
                $g -C lib commit -q --allow-empty -m inside && git add lib && $g commit -q -m moved{work}; \
                git rev-parse HEAD:lib"
            );
            let call = |args: &[&str]| env.sandtable().directory(&source).args(args).ended();
            let moved = env.run_script(&source, &["-q", "--name", "a"], &script).expect_code(0).stdout;
            let known = env.git(&source, &["rev-parse", "HEAD"]);
            let held = call(way).expect_code(1).stdout;
            assert!(held.contains("held lib@"), "{way:?}{work}: {held}");
            assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), known);
            call(&[*way, &["--approve", "lib"]].concat()).expect_code(0).unused();
            assert_eq!(env.git(&source, &["rev-parse", "HEAD:lib"]), moved, "{way:?}{work}");
            assert_eq!(source.join("new").exists(), !work.is_empty());
            let left = env.git(&source, &["status", "--porcelain", "--ignore-submodules=all"]);
            assert_eq!(left, "", "{way:?}{work}");
            let again = call(way).expect_code(0).stdout;
            assert!(again.contains("has it all already"), "{way:?}{work}: {again}");
            call(&["undo", "--merge"]).expect_code(0).unused();
            assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), known);
            if way.len() == 2 {
                let without = call(&[*way, &["--exclude", "lib"]].concat()).expect_code(0).stdout;
                assert!(!without.contains("M lib"), "{without}");
                assert_ne!(env.git(&source, &["rev-parse", "HEAD:lib"]), moved);
            }
            call(&["rm", "a"]).expect_code(0).unused();
        }
    });
}

#[test]
fn commits_that_change_nothing_come_along_when_asked_for() {
    each(|env| {
        let source = env.repository("r");
        let script = "git -c user.name=A -c user.email=a@example.invalid commit -q --allow-empty -m empty";
        env.run_script(&source, &["-q", "--name", "a"], script).expect_code(0).unused();
        let merge = |words: &[&str]| {
            env.sandtable().directory(&source).args(["merge", "a"]).args(words).ended().expect_code(0).stdout
        };
        assert!(merge(&["--history"]).contains("commits that change no file on top of `main`"));
        assert_eq!(env.git(&source, &["log", "-1", "--format=%s", "HEAD^2"]), "empty\n");
        assert!(merge(&["--history"]).contains("has it all already"));
    });
}

/// One whose git directory lies in the worktree is not held: nothing says where it is before the index was read.
#[test]
fn a_repository_within_follows_the_source() {
    each(|env| {
        let source = env.repository("r");
        let within = env.repository("r/within");
        env.git(&source, &["add", "within"]);
        env.git(&source, &["commit", "-q", "-m", "a repository within"]);
        env.run_script(&source, &["-q", "--name", "a"], "true").expect_code(0).unused();
        env.git(&within, &["commit", "-q", "--allow-empty", "-m", "of the user"]);
        assert_eq!(inside(env, "a", "git status --porcelain"), " M within\n");
    });
}
