//! Full disks, broken records, races and commands that fight back: nothing is lost, nothing hangs.

use std::io::Read as _;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use sandtable_sandbox::session::record::Outcome;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::Ended;
use sandtable_testkit::require;

use crate::cli::{Unused, assert_nothing_made};

/// Runs a script with the executable as `$0` where the data directory is a disk of this size. It is mounted in a namespace
/// that ends with the script.
fn on_a_small_disk(env: &TestEnv, source: &Path, size: &str, script: &str) -> Ended {
    let data = env.home().join(".local/share");
    env.directory(&data);
    let owner = match env.caller() {
        Caller::Same => String::new(),
        Caller::Ordinary { uid, gid } => format!(",uid={uid},gid={gid}"),
    };
    let mount =
        format!("mount -t tmpfs -o size={size},mode=700{owner} small '{}' && exec \"$@\"", data.display());
    let run = env.run("sh").args(["-c", script]).arg(env.binary()).directory(source);
    run.through(["unshare", "-m", "sh", "-c", &mount, "sh"]).ended()
}

/// Root and an ordinary user, where root may mount.
fn each_with_mounts(test: impl Fn(&TestEnv, &Path)) {
    if !require::is_root() {
        return require::skip("mounting a small disk needs root");
    }
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { return };
        let source = env.repository("r");
        test(&env, &source);
    }
}

#[test]
fn a_full_disk_does_not_cost_what_the_command_made() {
    // With a budget the sandbox would be ended before the disk is full.
    let script =
        "\"$0\" run --disk none --name full -- sh -c 'echo work > made; cat /dev/zero > big; exit 7'; echo $?
        test -e \"$XDG_DATA_HOME/sandtable/sandboxes/full/outcome.json\" && echo recorded || echo unrecorded
        \"$0\" exec -q full -- sh -c 'rm big; cat made'
        \"$0\" diff full --name-status > /dev/null; echo diff $?";
    each_with_mounts(|env, source| {
        let ended = on_a_small_disk(env, source, "1m", script).expect_code(0).expect_stderr("not-recorded");
        // The code is the command's own, whether or not there was room for the outcome. Below the room that is left free
        // no state is recorded, and a command that asks for one says why.
        let said = ended.stdout.replace("unrecorded", "recorded");
        assert_eq!(said, "7\nrecorded\nwork\ndiff 125\n");
        assert!(ended.stderr.contains("holds work that is not recorded"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("--rm"), "{}", ended.stderr);
    });
}

#[test]
fn a_merge_on_a_full_disk_names_the_file_that_has_no_room() {
    let script = "\"$0\" run -q --name work -- sh -c 'echo work > made' || exit 98
        cat /dev/zero > \"$XDG_DATA_HOME/fill\" 2> /dev/null
        \"$0\" merge work; echo merge $?
        rm \"$XDG_DATA_HOME/fill\"; \"$0\" merge work > /dev/null; echo then $?";
    each_with_mounts(|env, source| {
        let ended = on_a_small_disk(env, source, "64m", script).expect_code(0);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!said.contains("merge 0") && said.contains("then 0"), "{said}");
        let data = env.home().join(".local/share/sandtable").display().to_string();
        let told = said.lines().find(|line| line.contains("No space left on device"));
        assert!(told.is_some_and(|line| line.contains(&data) && line.len() < 700), "{said}");
    });
}

/// Git has very many settings of ours on its command line, and they are no part of what failed.
#[test]
fn an_error_of_git_names_its_command_in_few_words() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        env.run_script(&source, &["-q", "--name", "a"], "echo work > made; echo more >> README")
            .expect_code(0)
            .unused();
        let store = env.sandtable().directory(&source).args(["store", "path"]).ended().expect_code(0).stdout;
        let packs = fs_err::read_dir(Path::new(store.trim()).join("objects/pack")).unwrap();
        let packs = packs.map(|entry| entry.unwrap().path());
        let mut told = 0;
        for pack in packs.filter(|path| path.extension().is_some_and(|end| end == "pack")) {
            let sound = fs_err::read(&pack).unwrap();
            let mut damaged = sound.clone();
            damaged[20..40].fill(0xA5);
            fs_err::remove_file(&pack).unwrap();
            env.file(&pack, damaged);
            let ended = env.sandtable().directory(&source).args(["merge", "--dry-run", "a"]).ended();
            let said = format!("{}{}", ended.stdout, ended.stderr);
            if said.contains("git --no-pager ") {
                told += 1;
                assert_eq!(ended.code, 125, "{said}");
                assert!(said.contains("fatal: "), "what git says: {said}");
                assert!(!said.contains(" -c ") && !said.contains("core."), "{said}");
                assert!(said.lines().all(|line| line.len() < 1000), "{said}");
            }
            fs_err::write(&pack, sound).unwrap();
        }
        assert!(told > 0, "git met no damage");
    }
}

#[test]
fn a_repository_for_reading_only_is_left_as_it_is_and_stays_usable() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if !require::is_root() {
        return require::skip("mounting needs root");
    }
    let source = env.repository("r");
    env.run_script(&source, &["--name", "a"], "echo a > a").expect_code(0).unused();
    let script = "mount --bind \"$PWD\" \"$PWD\" && cd \"$PWD\" || exit 99
        for words in 'merge a' 'apply a' 'export --branch b a'; do
            mount -o remount,ro,bind . && \"$0\" $words; echo $words $?; mount -o remount,rw,bind . || exit 99
        done
        \"$0\" merge a > /dev/null && mount -o remount,ro,bind . && \"$0\" undo; echo undo $?";
    let before = env.fingerprint(&source.join(".git"));
    let ended = env.run("sh").args(["-c", script]).arg(env.binary()).through(["unshare", "-m"]);
    let ended = ended.directory(&source).ended().expect_code(0);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    for words in ["merge a 1", "apply a 1", "export --branch b a 1", "undo 1"] {
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(said.matches("cannot be written: Read-only file system").count(), 4, "{said}");
    assert!(!said.contains("put back"), "{said}");
    env.sandtable().directory(&source).args(["undo"]).ended().expect_code(0).unused();
    assert_eq!(env.git(&source, &["status", "--porcelain"]), "");
    let names = |left: &str| left.contains("sandtable-");
    assert!(!before.differences(&env.fingerprint(&source.join(".git"))).iter().any(|left| names(left)));
}

#[test]
fn what_may_not_be_written_is_found_out_before_anything_is() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "a"], "echo a > docs/a; echo b > b").expect_code(0).unused();
    let before = env.fingerprint(&source);
    for (folder, ways) in [
        (".git", &["merge", "apply"][..]),
        (".git/objects", &["merge"]),
        ("docs", &["merge", "apply"]),
        (".", &["merge", "apply"]),
    ] {
        let mode = |mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs_err::set_permissions(source.join(folder), mode).unwrap();
        };
        let old = fs_err::metadata(source.join(folder)).unwrap().permissions();
        for way in ways {
            mode(0o555);
            let refused = env.sandtable().directory(&source).args([way, "a"]).ended().expect_code(1);
            fs_err::set_permissions(source.join(folder), old.clone()).unwrap();
            let told = &refused.stdout;
            assert!(told.contains("cannot be written") && told.contains("Permission denied"), "{told}");
            assert!(told.contains("nothing was touched"), "{told}");
            assert_eq!(before.differences(&env.fingerprint(&source)), [""; 0], "{folder} {way}");
        }
    }
    env.sandtable().directory(&source).args(["merge", "a"]).ended().expect_code(0).unused();
}

#[test]
fn one_broken_record_does_not_hide_the_others() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    for name in ["broken", "future", "good"] {
        env.run_script(&source, &["--name", name], "true").expect_code(0).unused();
    }
    fs_err::write(env.sandboxes().join("broken/sandbox.json"), "{").unwrap();
    fs_err::write(env.sandboxes().join("future/outcome.json"), "{\"schema\": 99}").unwrap();
    let listed = env.sandtable().args(["ls", "-q"]).ended().expect_code(0);
    assert_eq!(listed.stdout, "good\n");
    assert!(listed.stderr.contains("broken") && listed.stderr.contains("schema 99"), "{}", listed.stderr);
    for name in ["broken", "future", "good"] {
        env.sandtable().args(["rm", name]).ended().expect_code(0).unused();
    }
    assert_nothing_made(&env);
}

#[test]
fn a_source_that_was_moved_is_told_and_interrupts_nothing() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "box"], "echo x > made").expect_code(0).unused();
    fs_err::rename(&source, env.root().join("elsewhere")).unwrap();
    // What was recorded stands in for it.
    let without = env.sandtable().args(["exec", "box", "--", "cat", "made"]).ended();
    assert_eq!(without.expect_code(0).expect_stderr("source-replaced").stdout, "x\n");
    let listed = env.sandtable().arg("ls").ended().expect_code(0).stdout;
    assert!(listed.contains("stopped") && !listed.contains("interrupted"), "{listed}");
    fs_err::rename(env.root().join("elsewhere"), &source).unwrap();
    let found = env.sandtable().args(["exec", "-q", "box", "--", "cat", "made"]).ended();
    assert_eq!(found.expect_code(0).stdout, "x\n");
}

#[test]
fn a_sandbox_that_is_not_kept_can_be_stopped_and_removed() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    for words in [["stop", "box"].as_slice(), &["rm", "-f", "box"]] {
        let mut child = ready(&env, &source, &["--rm", "--name", "box"], "echo ready; sleep 60");
        env.sandtable().args(words).ended().expect_code(0).unused();
        child.wait().unwrap();
        assert_nothing_made(&env);
    }
}

/// What stands in the way is not the machine, and no look at that finds it.
#[test]
fn a_directory_that_was_closed_inside_is_named_with_what_opens_it() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("home/work/r");
        for (name, closed) in [("home", "home"), ("above", "home/work")] {
            let script = format!("echo x > made; chmod 000 \"$HOME/../{closed}\"");
            env.run_script(&source, &["--name", name], &script).expect_code(0).unused();
            let refused = env.sandtable().args(["exec", name, "--", "true"]).ended().expect_code(125);
            let said = &refused.stderr;
            assert!(said.contains("chmod u+rwx") && said.contains("sandboxes/NAME/home"), "{said}");
            assert!(!said.contains("doctor"), "{said}");
            let below = closed.strip_prefix("home").unwrap().trim_start_matches('/');
            let closed = env.sandboxes().join(name).join("home").join(below);
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            fs_err::set_permissions(closed, mode).unwrap();
            env.sandtable().args(["exec", "-q", name, "--", "cat", "made"]).ended().expect_code(0).unused();
        }
        let closed = env.run_script(&source, &["--name", "root"], "chmod 000 .");
        if closed.code == 125 {
            assert!(closed.stderr.contains("sandboxes/root/workspace.upper"), "{}", closed.stderr);
            let refused = env.sandtable().args(["diff", "root"]).ended().expect_code(125);
            assert!(refused.stderr.contains("chmod u+rwx /"), "{}", refused.stderr);
        } else {
            closed.expect_code(0).unused();
        }
    }
}

#[test]
fn a_command_cannot_keep_its_sandbox_from_being_stopped() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        // Stops every process that PID 1 forks, if it can before that became a command.
        let attack = "trap '' TERM; prlimit --pid 1 --nofile=7:7 2> /dev/null; echo ready
            while :; do kill -STOP 4 5 6 7 8 9 10 11 12 13 14 2> /dev/null; done";
        let mut child = ready(&env, &source, &["--name", "box"], attack);
        let mut others: Vec<Child> =
            (0..5).map(|_| env.sandtable().args(["exec", "box", "--", "true"]).started()).collect();
        std::thread::sleep(Duration::from_millis(300));
        let began = Instant::now();
        let stop = env.sandtable().args(["stop", "--grace", "1", "box"]).through(["timeout", "60"]).ended();
        let took = began.elapsed();
        for other in others.iter_mut().chain([&mut child]) {
            let _ended_already = other.kill();
            other.wait().unwrap();
        }
        stop.expect_code(0).unused();
        require::say(&format!("a hostile command was stopped after {} ms", took.as_millis()));
    }
}

#[test]
fn a_record_that_cannot_hold_every_change_says_so() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let deeper = "d".repeat(250);
    // Long paths fill the record before `README` has its turn.
    let script = format!(
        "mkdir A; cd A; for i in $(seq 15); do mkdir {deeper}; cd {deeper}; done
         seq 18000 | xargs touch; cd \"$HOME\"; cd \"$OLDPWD\" 2> /dev/null; echo x >> {}/README",
        source.display()
    );
    let report = env.home().join("report.json");
    let options = ["-q", "--name", "long", "--report", report.to_str().unwrap()];
    env.run_script(&source, &options, &script).expect_code(0).unused();
    let outcome: Outcome = serde_json::from_slice(&fs_err::read(report).unwrap()).unwrap();
    let changes = outcome.changes.unwrap();
    assert!(changes.entries.iter().all(|change| change.path != "README"), "the record held everything");
    assert!(outcome.warnings.iter().any(|warning| warning.code == "changes-not-listed"));
    env.sandtable().args(["rm", "long"]).ended().expect_code(0).unused();
}

/// A sandbox whose command has said that it is ready.
pub(crate) fn ready(env: &TestEnv, source: &std::path::Path, options: &[&str], script: &str) -> Child {
    let run = env.sandtable().directory(source).arg("run").args(options).args(["--", "sh", "-c", script]);
    let mut child = run.started();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    child
}

#[test]
fn an_outcome_that_cannot_be_put_in_place_leaves_no_draft() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["--name", "box"], "true").expect_code(0).unused();
    let outcome = env.sandboxes().join("box/outcome.json");
    fs_err::remove_file(&outcome).unwrap();
    env.file(&outcome.join("in the way"), "");
    let words = ["exec", "box", "--", "sh", "-c", "echo more > more; exit 3"];
    env.sandtable().args(words).ended().expect_code(3).expect_stderr("the outcome was not written").unused();
    assert!(!env.sandboxes().join("box/outcome.json.draft").exists());
}

#[test]
fn a_directory_that_cannot_be_removed_after_an_undo_is_told_and_removed_by_the_next_command() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if require::program("strace").is_none() {
        return require::skip("a fault at a system call needs strace");
    }
    let source = env.repository("r");
    let call = |words: &[&str]| env.sandtable().directory(&source).args(words);
    env.run_script(&source, &["--name", "box"], "mkdir -p new; echo x > new/er").expect_code(0).unused();
    call(&["merge", "box"]).ended().expect_code(0).unused();
    let mut left = 0;
    for when in 1..=12 {
        let rule = format!("inject=unlinkat:error=EIO:when={when}");
        let trace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &rule];
        let undone = call(&["undo", "."]).through(trace).ended();
        if undone.code == 0 && source.join("new").exists() {
            left += 1;
            assert!(undone.stderr.contains("the next command completes it"), "{when}: {}", undone.stderr);
        }
        call(&["ls"]).ended().expect_code(0).unused();
        if undone.code == 0 {
            assert!(!source.join("new").exists(), "{when}");
            call(&["redo", "."]).ended().expect_code(0).unused();
        }
    }
    assert_ne!(left, 0, "no call was hit that removes a directory");
}

/// Older versions let container engines make directories as root in what the caller has to remove.
#[test]
fn what_belongs_to_somebody_else_is_said_and_the_sandbox_is_not_lost() {
    if !require::is_root() {
        return require::skip("making something that belongs to somebody else needs root");
    }
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    let source = env.repository("r");
    for name in ["empty", "full"] {
        env.run_script(&source, &["--name", name], "echo x > made").expect_code(0).unused();
    }
    fs_err::create_dir(env.sandboxes().join("empty/workspace.upper/foreign")).unwrap();
    let foreign = env.sandboxes().join("full/workspace.upper/foreign");
    fs_err::create_dir_all(foreign.join("inner")).unwrap();
    env.sandtable().args(["rm", "empty"]).ended().expect_code(0).unused();
    for _again in 0..2 {
        let ended = env.sandtable().args(["rm", "full"]).ended().expect_code(125);
        assert!(ended.stderr.contains("belongs to another user"), "{}", ended.stderr);
        assert!(env.sandtable().arg("ls").ended().stderr.contains("`full`"));
    }
    fs_err::remove_dir_all(&foreign).unwrap();
    env.sandtable().args(["rm", "full"]).ended().expect_code(0).unused();
    assert_nothing_made(&env);
}
