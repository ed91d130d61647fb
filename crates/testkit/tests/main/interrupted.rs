//! Sandboxes whose supervisor was killed, states that many record at once, and stores that are lost: the work stays, and
//! every command sees it.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Child;

use sandtable_testkit::container::Contained;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::Run;

use crate::adversity::ready;
use crate::cli::Unused;

/// A sandbox whose supervisor was killed after its command wrote `work`.
fn killed(env: &TestEnv, source: &Path, options: &[&str]) {
    let mut child = ready(env, source, options, "echo work > work; echo ready; sleep 60");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn done(env: &TestEnv, args: &[&str]) -> String {
    env.sandtable().directory(env.root().join("r")).args(args).ended().expect_code(0).stdout
}

#[test]
fn work_of_an_interrupted_sandbox_is_seen_by_every_command() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let out = |name: &str| env.root().join(name).to_str().unwrap().to_owned();
        env.directory(&env.root().join("place"));
        let place = |name: &str| out(&format!("place/{name}"));
        let commands: [(&str, Vec<String>); 6] = [
            ("verify", ["verify", "a", "--", "grep", "-q", "work", "work"].map(str::to_owned).to_vec()),
            ("diff", ["diff", "a", "--name-status"].map(str::to_owned).to_vec()),
            ("export", ["export", "a", "--patch", &place("patch")].map(str::to_owned).to_vec()),
            ("checkout", ["checkout", "a", &place("out")].map(str::to_owned).to_vec()),
            ("fork", ["fork", "a", "--name", "b"].map(str::to_owned).to_vec()),
            ("apply", ["apply", "a"].map(str::to_owned).to_vec()),
        ];
        for (name, command) in commands {
            killed(&env, &source, &["--name", "a"]);
            let ended = env.sandtable().args(&command).ended().expect_code(0);
            match name {
                "diff" => assert_eq!(ended.stdout, "A\twork\n"),
                "verify" => assert_eq!(added(&ended.stdout), "work"),
                "export" => assert!(fs_err::read_to_string(place("patch")).unwrap().contains("+work")),
                "checkout" => assert_eq!(read(&PathBuf::from(place("out")).join("work")), "work\n"),
                "fork" => assert_eq!(done(&env, &["exec", "-q", "b", "--", "cat", "work"]), "work\n"),
                _ => assert_eq!(read(&source.join("work")), "work\n"),
            }
            done(&env, &["rm", "a"]);
        }
    }
}

/// The first path that came, in an answer of `verify`.
fn added(answer: &str) -> String {
    let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
    answer["diff"]["added"][0]["path"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_merge_brings_what_an_interrupted_sandbox_did() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    for mode in ["overlay", "copy"] {
        killed(&env, &source, &["--name", "a", "--mode", mode]);
        done(&env, &["merge", "a", "-m", "the work"]);
        assert_eq!(read(&source.join("work")), "work\n", "{mode}");
        done(&env, &["undo"]);
        done(&env, &["rm", "a"]);
    }
}

#[test]
fn work_of_an_interrupted_container_is_seen_and_merged() {
    Contained::each(Contained::new, |world, source| {
        let run = world.starting(&source).args(["--name", "a", "--", "sh", "-c"]);
        let mut child = run.arg("echo work > work; echo ready; sleep 60").started();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let call = |args: &[&str]| world.sandtable().directory(&source).args(args).ended().expect_code(0);
        assert_eq!(call(&["diff", "a", "--name-status"]).stdout, "A\twork\n");
        call(&["merge", "a", "-m", "the work"]).unused();
        assert_eq!(read(&source.join("work")), "work\n");
        call(&["rm", "a"]).unused();
    });
}

#[test]
fn what_a_running_command_did_is_said_to_be_left_out() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let mut child = ready(&env, &source, &["--name", "a"], "echo one > one; echo ready; sleep 60");
    done(&env, &["snapshot", "a"]);
    let shown = env.sandtable().args(["diff", "a", "--name-status"]).ended().expect_code(0);
    assert_eq!(shown.stdout, "A\tone\n");
    shown.expect_stderr("still-running").unused();
    done(&env, &["stop", "a"]);
    child.wait().unwrap();
}

#[test]
fn every_one_of_many_snapshots_at_once_succeeds() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        env.run_script(&source, &["--name", "a"], "echo one > one").expect_code(0).unused();
        for target in [source.to_str().unwrap(), "a"] {
            let start = |_| env.sandtable().args(["snapshot", target, "-m", "again"]).started();
            let children: Vec<Child> = (0..30).map(start).collect();
            let codes: Vec<i32> = children.into_iter().map(code).collect();
            assert_eq!(codes, [0; 30], "{target}");
        }
        done(&env, &["store", "fsck"]);
    }
}

#[test]
fn a_snapshot_beside_the_end_of_a_command_succeeds() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        env.run_script(&source, &["--name", "a"], "true").expect_code(0).unused();
        snapshots_beside(20, &|| env.sandtable());
    }
}

#[test]
fn a_snapshot_beside_the_end_of_a_container_succeeds() {
    Contained::each(Contained::new, |world, source| {
        world.run_script(&source, &["--name", "a"], "true").expect_code(0).unused();
        snapshots_beside(3, &|| world.sandtable());
    });
}

/// Snapshots of the sandbox `a` about when a command in it ends.
fn snapshots_beside(rounds: usize, sandtable: &dyn Fn() -> Run) {
    for round in 0..rounds {
        let script = format!("echo {round} > f; sleep 0.0{}", round % 7);
        let exec = sandtable().args(["exec", "-q", "a", "--", "sh", "-c", &script]).started();
        let snapshots: Vec<Child> = (0..3).map(|_| sandtable().args(["snapshot", "a"]).started()).collect();
        assert_eq!(snapshots.into_iter().map(code).collect::<Vec<i32>>(), [0; 3], "round {round}");
        assert_eq!(code(exec), 0, "round {round}");
    }
}

#[test]
fn many_undos_at_once_each_take_one_step() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "a"], "echo 0 > f").expect_code(0).unused();
    for step in 1..8 {
        done(&env, &["exec", "-q", "a", "--", "sh", "-c", &format!("echo {step} > f")]);
    }
    let children: Vec<Child> = (0..5).map(|_| env.sandtable().args(["undo", "a"]).started()).collect();
    assert_eq!(children.into_iter().map(code).collect::<Vec<i32>>(), [0; 5]);
    assert_eq!(done(&env, &["exec", "-q", "a", "--", "cat", "f"]), "2\n");
}

#[test]
fn without_its_store_a_sandbox_still_hands_over_its_work() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        env.run_script(&source, &["--name", "a"], "echo work > work; echo mine >> README")
            .expect_code(0)
            .unused();
        fs_err::remove_dir_all(env.sandboxes().with_file_name("stores")).unwrap();
        let shown = env.sandtable().args(["diff", "a", "--name-status"]).ended().expect_code(0);
        assert_eq!(shown.stdout, "M\tREADME\nA\twork\n");
        done(&env, &["apply", "a"]);
        assert_eq!(read(&source.join("work")), "work\n");
    }
}

#[test]
fn without_its_store_a_copy_still_hands_over_its_work() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        // Ignored files and hidden ones are no work of the sandbox.
        env.file(&source.join(".gitignore"), "ignored\n.env\n");
        env.file(&source.join("ignored"), "x\n");
        env.file(&source.join(".env"), "TOKEN=1\n");
        let script = "echo work > work; echo mine >> README; rm docs/guide.txt";
        env.run_script(&source, &["--name", "a", "--mode", "copy"], script).expect_code(0).unused();
        let stores = env.sandboxes().with_file_name("stores");
        fs_err::remove_dir_all(&stores).unwrap();
        let shown = env.sandtable().args(["diff", "a", "--name-status"]).ended().expect_code(0);
        assert_eq!(shown.stdout, "M\tREADME\nD\tdocs/guide.txt\nA\twork\n");
        assert!(!env.sandboxes().join("a/base.new").exists());
        fs_err::remove_dir_all(&stores).unwrap();
        assert_eq!(done(&env, &["exec", "-q", "a", "--", "cat", "work"]), "work\n");
        done(&env, &["apply", "a", "--approve", "all"]);
        assert_eq!(read(&source.join("work")), "work\n");
        assert!(!source.join("docs/guide.txt").exists() && source.join(".env").exists());
    }
}

/// Without the source nothing tells what a sandbox changed; then the error says where all of it is.
#[test]
fn without_store_and_source_the_files_are_named() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    for (name, mode, place) in [("o", "overlay", "o/workspace.upper"), ("c", "copy", "c/copies/workspace")] {
        let source = env.repository(name);
        env.run_script(&source, &["--name", name, "--mode", mode], "echo work > work")
            .expect_code(0)
            .unused();
        fs_err::remove_dir_all(env.sandboxes().with_file_name("stores")).unwrap();
        fs_err::remove_dir_all(&source).unwrap();
        let place = env.sandboxes().join(place);
        let refused = env.sandtable().args(["diff", name]).ended();
        assert_ne!(refused.code, 0);
        refused
            .expect_stderr("cannot be recorded any more")
            .expect_stderr(&format!("`{}`", place.display()))
            .unused();
        assert_eq!(read(&place.join("work")), "work\n");
    }
}

#[test]
fn what_both_changed_since_is_a_conflict_when_the_store_is_lost() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "a"], "echo work > work; echo mine >> README")
        .expect_code(0)
        .unused();
    fs_err::remove_dir_all(env.sandboxes().with_file_name("stores")).unwrap();
    env.file(&source.join("README"), "the user's\n");
    let held =
        env.sandtable().args(["apply", "a"]).ended().expect_code(1).expect_stderr("base-recorded-late");
    assert!(held.stdout.contains("README"), "{}", held.stdout);
    assert_eq!(read(&source.join("README")), "the user's\n");
    done(&env, &["apply", "a", "--only", "work"]);
    assert_eq!(read(&source.join("work")), "work\n");
}

#[test]
fn a_fork_that_is_killed_leaves_nothing() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if sandtable_testkit::require::program("strace").is_none() {
        return sandtable_testkit::require::skip("killing at a system call needs strace");
    }
    let source = env.repository("r");
    env.run_script(&source, &["--name", "a"], "echo work > work; ln -s x l").expect_code(0).unused();
    for call in ["renameat2", "symlinkat", "utimensat"] {
        let killed = format!("inject={call}:signal=SIGKILL:when=1");
        let traced = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &killed];
        let ended = env.sandtable().args(["fork", "a", "--name", "b"]).through(traced).ended();
        assert_ne!(ended.code, 0, "{call} was never called: {}", ended.stderr);
        assert_eq!(done(&env, &["ls", "-q"]), "a\n", "{call}");
        std::thread::sleep(std::time::Duration::from_millis(1100));
        done(&env, &["fork", "a", "--name", "b"]);
        assert_eq!(done(&env, &["exec", "-q", "b", "--", "cat", "work"]), "work\n", "{call}");
        done(&env, &["rm", "b"]);
    }
}

#[test]
fn one_bad_entry_hides_no_other_sandbox() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    for name in ["good", "lockless", "lost"] {
        env.run_script(&source, &["--name", name], "echo work > work").expect_code(0).unused();
    }
    env.file(&env.sandboxes().join("file"), "");
    env.symlink("nowhere", &env.sandboxes().join("link"));
    fs_err::remove_file(env.sandboxes().join("lockless/lock")).unwrap();
    fs_err::remove_file(env.sandboxes().join("lost/sandbox.json")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let listed = env.sandtable().args(["ls", "-q"]).ended().expect_code(0);
    assert_eq!(listed.stdout, "good\nlockless\n");
    listed.expect_stderr("`lost` has lost its record").unused();
    env.sandtable().args(["prune", "--dry-run"]).ended().expect_code(0).unused();
    assert_eq!(done(&env, &["exec", "-q", "lockless", "--", "cat", "work"]), "work\n");
    env.sandtable()
        .args(["exec", "lost", "--", "true"])
        .ended()
        .expect_code(2)
        .expect_stderr("lost its record")
        .unused();
    assert!(env.sandboxes().join("lost/workspace.upper/work").exists());
    done(&env, &["rm", "lost"]);
    env.run_script(&source, &["--name", "lost"], "true").expect_code(0).unused();
}

/// What may not be read hides nothing either. Root may read everything.
#[test]
fn an_entry_that_may_not_be_read_hides_no_other_sandbox() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    let source = env.repository("r");
    for name in ["closed", "good", "mute"] {
        env.run_script(&source, &["--name", name], "echo work > work").expect_code(0).unused();
    }
    let places = [env.sandboxes().join("closed"), env.sandboxes().join("mute/sandbox.json")];
    let modes = places.each_ref().map(|place| fs_err::metadata(place).unwrap().permissions());
    for place in &places {
        fs_err::set_permissions(place, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    }
    let listed = env.sandtable().args(["ls", "-q"]).ended().expect_code(0);
    assert_eq!(listed.stdout, "good\n");
    listed.expect_stderr("closed").expect_stderr("mute").unused();
    env.sandtable().args(["prune", "--dry-run"]).ended().expect_code(0).unused();
    assert_eq!(done(&env, &["exec", "-q", "good", "--", "cat", "work"]), "work\n");
    for (place, mode) in places.iter().zip(modes) {
        fs_err::set_permissions(place, mode).unwrap();
    }
    assert_eq!(done(&env, &["ls", "-q"]), "closed\ngood\nmute\n", "nothing was taken away");
}

#[test]
fn where_nothing_can_be_written_sandboxes_can_be_looked_at() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if !sandtable_testkit::require::is_root() {
        return sandtable_testkit::require::skip("mounting something read-only needs root");
    }
    let source = env.repository("r");
    env.run_script(&source, &["--name", "a"], "echo work > work").expect_code(0).unused();
    // In a namespace that ends with the script.
    let script = "mount --bind \"$XDG_DATA_HOME\" \"$XDG_DATA_HOME\" || exit 99
        mount -o remount,ro,bind \"$XDG_DATA_HOME\" || exit 99
        cd \"$1\" || exit 99
        for words in 'ls -q' 'inspect a' 'diff a' 'diff --json a' 'log a' 'log .' 'store fsck' 'store status'; do
            \"$0\" $words > \"$HOME/said\" || echo \"$words $?\"
            grep -q . \"$HOME/said\" || echo \"$words says nothing\"
        done";
    let seen = env.run("sh").args(["-c", script]).arg(env.binary()).arg(&source).through(["unshare", "-m"]);
    let seen = seen.ended().expect_code(0);
    assert_eq!(seen.stdout, "", "{}", seen.stderr);
}

#[test]
fn a_tool_that_nobody_can_use_is_named_and_goes() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let (data, key) = (env.sandboxes(), "ab".repeat(32));
    let place = data.with_file_name("tools").join("store").join(&key);
    env.file(&place.join("receipt.json"), "{");
    env.sandtable().args(["tool", "ls"]).ended().expect_code(0).expect_stderr("damaged-tool").unused();
    env.sandtable().args(["tool", "rm", &key[..8]]).ended().expect_code(0).unused();
    assert!(!place.exists());
    env.file(&place.join("receipt.json"), "{");
    let dry = env.sandtable().args(["tool", "gc", "--all", "--dry-run"]).ended().expect_code(0);
    assert!(dry.stdout.starts_with("1 tools would go") && place.exists(), "{}", dry.stdout);
    env.sandtable().args(["tool", "gc", "--all"]).ended().expect_code(0).unused();
    assert!(!place.exists());
}

#[test]
fn what_was_recorded_can_be_forgotten() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.file(&source.join("secret"), "hunter2\n");
    env.run_script(&source, &["--name", "a"], "echo work > work").expect_code(0).unused();
    let refused =
        env.sandtable().directory(&source).args(["store", "forget", "--yes"]).ended().expect_code(2);
    refused.expect_stderr("needed by a").unused();
    env.sandtable().args(["rm", "a"]).ended().expect_code(0).expect_stderr("sandtable fork").unused();
    let asked = env.sandtable().directory(&source).args(["store", "forget"]).ended().expect_code(2);
    asked.expect_stderr("--yes").unused();
    let planned = done(&env, &["store", "forget", "--dry-run", "--json"]);
    let gone: serde_json::Value =
        serde_json::from_str(&done(&env, &["store", "forget", "--yes", "--json"])).unwrap();
    assert!(planned.contains(gone["snapshots"][0].as_str().unwrap()), "{planned} {gone}");
    let git = done(&env, &["store", "path"]);
    let objects = env.git(env.root(), &["--git-dir", git.trim(), "count-objects", "-v"]);
    assert!(objects.contains("in-pack: 0"), "{objects}");
    env.run_script(&source, &["--name", "a"], "true").expect_code(0).unused();
    done(&env, &["store", "fsck", "--deep"]);
}

#[test]
fn limits_are_errors_and_not_the_end_of_the_supervisor() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    let source = env.repository("r");
    let limited = |limit: &str, args: &str| {
        let script = format!("ulimit {limit}; exec \"$0\" {args}");
        env.run("bash").args(["-c", &script]).arg(env.binary()).directory(&source).ended()
    };
    // A file that is too large, here the database, is an error of that file, also of the supervisor's own.
    let written = limited("-f 16", "run --name a -- sh -c 'exit 7'");
    assert_eq!(written.code, 7, "{}", written.stderr);
    // As many threads as there may be, whichever number that is.
    for command in ["snapshot", "run --rm -- true", "exec a -- true", "merge a"] {
        let mut codes = Vec::new();
        for threads in [1, 2, 3, 4, 6, 12, 40] {
            done(&env, &["exec", "-q", "a", "--", "sh", "-c", &format!("echo {threads} > work-{threads}")]);
            let ended = limited(&format!("-u {threads}"), command);
            // Where the disk cannot be watched nothing may go on.
            let unwatched = ended.code == 123 && ended.stderr.contains("could not be watched");
            let expected = [0, 125].contains(&ended.code) || unwatched;
            assert!(expected, "{command} {threads}: {} {}", ended.code, ended.stderr);
            assert!(!ended.stderr.contains("panicked"), "{command} {threads}: {}", ended.stderr);
            codes.push(ended.code);
        }
        // A snapshot goes on without helpers.
        assert!(command == "snapshot" || codes.contains(&125), "{command}: no number was too small");
        // Nothing is half done.
        done(&env, &["store", "fsck"]);
    }
}

#[test]
fn what_is_not_recorded_is_said_however_quiet() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "a"], "echo work > work").expect_code(0).unused();
    let store = PathBuf::from(done(&env, &["store", "path"]).trim()).with_file_name("meta.db");
    fs_err::write(&store, "").unwrap();
    fs_err::remove_file(store.with_file_name("meta.db-wal")).unwrap_or_default();
    let ended = env.run_script(&source, &["-q", "--name", "b"], "exit 3").expect_code(3);
    ended.expect_stderr("not-recorded").unused();
    let told = env.sandtable().directory(&source).args(["store", "status"]).ended().expect_code(125);
    told.expect_stderr("damaged: it is empty").expect_stderr("set the store aside").unused();
    let kept = store.parent().unwrap();
    fs_err::rename(kept, kept.with_extension("damaged")).unwrap();
    assert_eq!(done(&env, &["diff", "a", "--name-status"]), "A\twork\n");
}

fn read(path: &Path) -> String {
    fs_err::read_to_string(path).unwrap()
}

fn code(mut child: Child) -> i32 {
    child.wait().unwrap().code().unwrap()
}
