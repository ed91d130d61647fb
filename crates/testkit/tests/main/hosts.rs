//! Sources and machines that are not as simple as one would like: edited while a command runs, with mounts
//! and foreign files in them, on an overlay. Never an unexplained error.

use std::io::Read;

use sandtable_testkit::counts;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::{Ended, Run};
use sandtable_testkit::require;

use crate::cli::Unused;

#[test]
fn the_user_works_on_while_a_command_runs_and_is_told() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    for round in 0..counts::of("drift-rounds") {
        let source = env.repository(&format!("r{round}"));
        env.git(&source, &["branch", "other", "HEAD~1"]);
        let go = env.home().join(format!("go{round}"));
        let mount = format!("{}:/mnt/go:ro", env.home().join("signal").display());
        env.directory(&env.home().join("signal"));
        let script = "echo mine > own.txt; echo started; while [ ! -e /mnt/go/$0 ]; do sleep 0.01; done";
        let options = ["run", "-v", &mount, "--", "sh", "-c", script];
        let mut child = env.sandtable().directory(&source).args(options).arg(format!("go{round}")).started();
        let mut first = [0_u8; 8];
        child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        // The base scan of the source runs beside the command; let it see the state from before.
        std::thread::sleep(std::time::Duration::from_millis(500));

        env.file(&source.join("README"), "edited by the user, and longer than before\n");
        fs_err::remove_file(source.join("docs/guide.txt")).unwrap();
        env.file(&source.join("new.txt"), "new\n");
        env.git(&source, &["switch", "-q", "-m", "other"]);
        let edited = env.fingerprint(&source);

        env.file(&env.home().join("signal").join(go.file_name().unwrap()), "");
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        for path in ["README", "docs/guide.txt", "new.txt", "own.txt"] {
            assert!(said.contains(path), "{path} is not named: {said}");
        }
        assert_eq!(edited.differences(&env.fingerprint(&source)), [""; 0], "the user's work was touched");
    }
}

#[test]
fn a_source_with_a_mount_in_it_is_explained() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if !require::is_root() {
        return require::skip("a mount needs root");
    }
    let source = env.repository("r");
    let run = env.sandtable().directory(&source).args(["run", "--", "true"]);
    let ended = with_mounts(run, "mount -t tmpfs none src/deep").ended();
    assert_explained(&ended, "src/deep");
}

#[test]
fn a_source_with_files_of_somebody_else_is_explained() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    let source = env.repository("r");
    // Root's own, unreadable for the caller.
    let foreign = source.join("src/foreign");
    fs_err::write(&foreign, "root's\n").unwrap();
    fs_err::set_permissions(&foreign, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let ended = env.run_script(&source, &[], "echo x >> README; cat src/main.c > /dev/null").expect_code(0);
    assert_warned(&ended, "src/foreign");
}

#[test]
fn a_source_with_a_supplementary_group_is_explained() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    let source = env.repository("r");
    std::os::unix::fs::chown(source.join("src/main.c"), None, Some(54_999)).unwrap();
    let ended =
        env.run_script(&source, &[], "echo x >> src/main.c && chmod 600 src/main.c && cat src/main.c");
    assert_warned(&ended, "src/main.c");
}

#[test]
fn root_works_on_files_of_an_ordinary_user_or_is_warned() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if !require::is_root() {
        return require::skip("giving files away needs root");
    }
    let source = env.repository("r");
    std::os::unix::fs::chown(source.join("README"), Some(54_321), Some(54_321)).unwrap();
    let before = env.fingerprint(&source);
    let ended = env.run_script(&source, &[], "cat README && echo x >> README");
    if ended.code != 0 {
        assert_warned(&ended, "README");
    }
    assert_eq!(before.differences(&env.fingerprint(&source)), [""; 0]);
}

#[test]
fn a_state_directory_on_an_overlay_works_or_is_explained() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if !require::is_root() {
        return require::skip("a mount needs root");
    }
    let source = env.repository("r");
    let place = env.root().join("stacked");
    for name in ["lower", "upper", "work", "top"] {
        env.directory(&place.join(name));
    }
    let run = env.sandtable().directory(&source).variable("XDG_DATA_HOME", place.join("top"));
    let mount = format!(
        "cd {0} && mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none top && cd {1}",
        place.display(),
        source.display()
    );
    let ended = with_mounts(run.args(["run", "--", "sh", "-c", "echo x >> README"]), &mount).ended();
    assert_explained(&ended, "overlay");
}

#[test]
fn a_source_on_an_overlay_works_or_is_explained() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if !require::is_root() {
        return require::skip("a mount needs root");
    }
    let (source, layer) = (env.repository("r"), env.root().join("layer"));
    env.directory(&layer.join("upper"));
    env.directory(&layer.join("work"));
    let mount = format!(
        "mount -t overlay -o lowerdir={0},upperdir={1}/upper,workdir={1}/work none {0} && cd {0}",
        source.display(),
        layer.display()
    );
    let before = env.fingerprint(&source);
    let run =
        env.sandtable().directory(&source).args(["run", "--", "sh", "-c", "echo x >> README; cat README"]);
    let ended = with_mounts(run, &mount).ended();
    assert_explained(&ended, source.to_str().unwrap());
    assert_eq!(before.differences(&env.fingerprint(&source)), [""; 0]);
}

#[test]
fn a_linked_worktree_keeps_its_git() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let linked = env.root().join("linked");
    env.git(&source, &["worktree", "add", "-q", linked.to_str().unwrap()]);
    let before = (env.fingerprint(&source), env.fingerprint(&linked));
    let ended =
        env.run_script(&linked, &[], "git log --oneline | wc -l; git status --porcelain").expect_code(0);
    assert_eq!(ended.stdout.trim(), "2", "{}", ended.stderr);
    assert_eq!(before.0.differences(&env.fingerprint(&source)), [""; 0]);
    assert_eq!(before.1.differences(&env.fingerprint(&linked)), [""; 0]);
}

#[test]
fn a_directory_that_is_no_repository_works() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let plain = env.root().join("plain");
    env.file(&plain.join("a"), "a\n");
    let before = env.fingerprint(&plain);
    let ended = env.run_script(&plain, &[], "echo b >> a; cat a").expect_code(0);
    assert_eq!(ended.stdout, "a\nb\n");
    assert_eq!(before.differences(&env.fingerprint(&plain)), [""; 0]);
}

#[test]
fn names_that_are_no_text_are_shown_escaped() {
    use std::os::unix::ffi::OsStrExt;
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.file(&source.join(std::ffi::OsStr::from_bytes(b"not-\xff-text")), "x\n");
    let script = r"for f in not-*; do echo y >> $f; done; printf x > $(printf 'esc\033[31m')";
    let ended = env.run_script(&source, &[], script).expect_code(0);
    assert!(!ended.stderr.contains('\u{1b}'), "{:?}", ended.stderr);
    assert!(ended.stderr.contains("esc") && ended.stderr.contains("not-"), "{:?}", ended.stderr);
    env.sandtable().args(["ls"]).ended().expect_code(0).unused();
}

/// Runs a program where only it sees some more mounts.
fn with_mounts(run: Run, mounts: &str) -> Run {
    run.through(["unshare", "--mount", "sh", "-c", &format!("{mounts} && exec \"$@\""), "sh"])
}

/// A file that cannot be used inside as outside is named in a warning of ours, with what to do about it.
#[track_caller]
fn assert_warned(ended: &Ended, path: &str) {
    let ours = |line: &&str| line.starts_with("sandtable: warning:");
    let told = ended.stderr.lines().filter(ours).any(|line| line.contains(path) && line.contains("chown"));
    assert!(told, "`{path}` is in no warning with a remedy: {}", ended.stderr);
}

/// It works, or says what is in the way and what to do about it: an errno alone explains nothing.
#[track_caller]
fn assert_explained(ended: &Ended, word: &str) {
    let Ended { code, stdout, stderr } = ended;
    assert!(matches!(code, 0 | 2 | 125), "exit {code}: {stdout} {stderr}");
    let explained = stderr.contains(word) && stderr.contains("try:");
    assert!(*code == 0 || explained, "`{word}` or the remedy is not named: {stderr}");
}
