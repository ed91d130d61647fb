//! Sources beyond all measure, recorded by the executable: what is taken is whole, what is not is named, and memory
//! stays within its bound.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use sandtable_testkit::counts;
use sandtable_testkit::env::TestEnv;
use sandtable_testkit::require;

use crate::cli::Unused as _;

/// What recording may take, in kilobytes.
const MEMORY: u64 = 300_000;

/// Records `source`; the snapshot's id and what was said aside. The most memory it had is looked at all the while.
fn onboard(env: &TestEnv, source: &Path) -> (String, String) {
    let mut child = env.sandtable().arg("onboard").directory(source).started();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(peak(child.id()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    require::say(&format!("{}: {most} kB at most", source.display()));
    assert!((1..MEMORY).contains(&most), "{most} kB");
    (String::from_utf8_lossy(&output.stdout).trim().to_owned(), said)
}

/// The most memory that a process had so far; none if it is gone.
fn peak(pid: u32) -> Option<u64> {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// What stock git finds in the store for a snapshot.
fn listed(env: &TestEnv, source: &Path, snapshot: &str) -> String {
    let store = env.sandtable().args(["store", "path"]).directory(source).ended().expect_code(0);
    let store = format!("--git-dir={}", store.stdout.trim());
    env.git(source, &[&store, "ls-tree", "-r", "-l", snapshot])
}

#[test]
fn a_source_ten_thousand_directories_deep_is_recorded() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.root().join("deep");
    env.directory(&source);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = openat(CWD, &source, flags, Mode::empty()).unwrap();
    for _ in 0..10_000 {
        mkdirat(&at, "d", Mode::RWXU).unwrap();
        at = openat(at.as_fd(), "d", flags, Mode::empty()).unwrap();
    }
    rustix::fs::symlinkat("nowhere", &at, "leaf").unwrap();
    let (_, said) = onboard(&env, &source);
    let again = onboard(&env, &source);
    let verified = env.sandtable().args(["verify", &again.0]).directory(&source).ended();
    // Whoever removes the test's directory afterwards would need a descriptor for each level.
    let removed = env.run("rm").arg("-rf").arg(&source).ended();
    assert_eq!((said.as_str(), again.1.as_str()), ("", ""));
    assert!(verified.expect_code(0).stdout.contains("is as it was written"));
    removed.expect_code(0).unused();
}

#[test]
fn a_file_beyond_the_bound_is_named_and_the_others_are_recorded() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.root().join("sparse");
    env.file(&source.join("small"), "small\n");
    let big = fs_err::File::create(source.join("big")).unwrap();
    big.set_len(10 << 30).unwrap();
    let (snapshot, said) = onboard(&env, &source);
    assert!(said.contains("`big` is larger than 4 GiB"), "{said}");
    assert!(said.contains("[not-recorded]"), "{said}");
    let listed = listed(&env, &source, &snapshot);
    assert!(listed.ends_with("6\tsmall\n") && listed.lines().count() == 1, "{listed}");
}

#[test]
fn very_many_files_are_recorded_in_little_memory() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.root().join("many");
    let many = counts::of("many-files");
    for number in 0..many {
        let directory = source.join(format!("{}/{}", number % 7, number / 1000));
        if number % 1000 < 7 {
            fs_err::create_dir_all(&directory).unwrap();
        }
        fs_err::write(directory.join(format!("a file of number {number}")), number.to_string()).unwrap();
    }
    let (snapshot, said) = onboard(&env, &source);
    assert_eq!(said, "");
    assert_eq!(listed(&env, &source, &snapshot).lines().count(), usize::try_from(many).unwrap());
    // Nothing is read a second time, and the state is the same.
    let (again, _) = onboard(&env, &source);
    assert_eq!(listed(&env, &source, &again), listed(&env, &source, &snapshot));
}
