//! Killed at any moment, or out of room at any moment: the old state or the new one, and the next call sees to it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sandtable_merge::{Approvals, MergeRequest, Mode, Outcome, merge, recover};
use sandtable_testkit::counts;
use sandtable_testkit::env::PATH;
use sandtable_testkit::process::Run;
use sandtable_testkit::require::{self, say, skip};

use crate::conflicts::Dice;
use crate::world::{World, host};

/// Every file with its content and whether it can be run.
type Files = BTreeMap<PathBuf, (Vec<u8>, bool)>;

fn files(root: &Path) -> Files {
    let (mut found, mut waiting) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = waiting.pop() {
        for entry in fs_err::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if path == root.join(".git") {
            } else if meta.is_dir() {
                waiting.push(path);
            } else {
                let content = if meta.is_symlink() {
                    fs_err::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
                } else {
                    fs_err::read(&path).unwrap()
                };
                let runs = !meta.is_symlink() && meta.permissions().mode() & 0o100 != 0;
                found.insert(path.strip_prefix(root).unwrap().to_owned(), (content, runs));
            }
        }
    }
    found
}

/// A change of many files of every kind.
fn work(world: &World) -> sandtable_store::id::ObjectId {
    for n in 0..6 {
        world.write(&format!("many/{n}/file"), format!("{n}\n"));
    }
    world.commit("many");
    let base = world.enter();
    for n in 0..4 {
        world.inside_write(&format!("many/{n}/file"), format!("{n} changed\n"));
        world.inside_write(&format!("many/{n}/new/er"), "new\n");
    }
    fs_err::remove_dir_all(world.inside().join("many/5")).unwrap();
    world.inside_write("many/5", "a file now\n");
    fs_err::remove_file(world.inside().join("README")).unwrap();
    world.inside_write("README/in", "a directory now\n");
    base
}

fn request(world: &World, mode: Mode) -> MergeRequest {
    let id = |name: &str| world.git_in(&world.store(), &["rev-parse", name]).trim().parse().unwrap();
    let mut request = world.request_of(id("refs/base"), id("refs/final"), mode);
    request.approvals = Approvals::All;
    request
}

/// Runs only when the test below calls it: merges in a world that is given.
#[test]
fn victim_of_a_kill() {
    let Some(root) = require::variable("ST_VICTIM") else { return };
    let mode =
        if require::variable("ST_MODE").as_deref() == Some("apply") { Mode::Apply } else { Mode::Merge };
    let world = World::at(Path::new(&root));
    let outcome = merge(&world.means, &request(&world, mode)).unwrap();
    assert!(outcome.success, "{outcome:?}");
}

fn victim(world: &World, mode: &str) -> Run {
    Run::new(std::env::current_exe().unwrap(), world.root())
        .args(["--exact", "crash::victim_of_a_kill"])
        .variable("PATH", PATH)
        .variable("ST_VICTIM", world.root())
        .variable("ST_MODE", mode)
}

fn restore(world: &World) {
    fs_err::remove_dir_all(world.repo()).unwrap();
    let copy = Run::new("cp", world.root()).variable("PATH", PATH);
    let _copied = copy.args(["-a", "template", "repo"]).ended().expect_code(0);
}

#[test]
fn killed_at_any_moment_the_old_state_or_the_new_one() {
    let seed = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    say(&format!("kills from seed {seed}"));
    let mut dice = Dice::new(seed);
    let mut tally = BTreeMap::new();
    for mode in ["merge", "apply"] {
        let world = World::new();
        let base = work(&world);
        let last = world.snapshot(&world.inside(), Some(&base));
        world.git_in(&world.store(), &["update-ref", "refs/base", &base.to_string()]);
        world.git_in(&world.store(), &["update-ref", "refs/final", &last.to_string()]);
        fs_err::rename(world.repo(), world.root().join("template")).unwrap();
        let copy = Run::new("cp", world.root()).variable("PATH", PATH);
        let _copied = copy.args(["-a", "template", "repo"]).ended().expect_code(0);
        let (old, old_head) = (files(&world.repo()), world.git(&["rev-parse", "HEAD"]));
        let started = Instant::now();
        let _ended = victim(&world, mode).ended().expect_code(0);
        let whole = u64::try_from(started.elapsed().as_micros()).unwrap();
        let new = files(&world.repo());
        assert_ne!(old, new);
        for _ in 0..counts::of("merge-kills") / 2 {
            restore(&world);
            let mut child = victim(&world, mode).started();
            // Files are written towards the end, so most kills come there.
            let early = if dice.below(3) == 0 { 0 } else { whole / 2 };
            std::thread::sleep(Duration::from_micros(early + dice.below(whole - early)));
            child.kill().unwrap();
            child.wait().unwrap();
            let recovered = recover(&world.means, &host(&world.repo())).unwrap();
            *tally.entry(format!("{mode} {recovered:?}")).or_insert(0) += 1;
            let now = files(&world.repo());
            let moved = world.git(&["rev-parse", "HEAD"]) != old_head;
            if mode == "merge" {
                assert_eq!(now, if moved { new.clone() } else { old.clone() }, "{recovered:?}");
                assert_eq!(world.status(), "", "{recovered:?}");
            } else {
                assert!(now == new || now == old, "{recovered:?}");
                assert!(!moved);
            }
            world.sound();
            assert_eq!(recover(&world.means, &host(&world.repo())).unwrap(), None);
        }
    }
    say(&format!("after the kills: {tally:?}"));
}

/// Runs only when the test below calls it, with a small disk as its temporary directory.
#[test]
fn victim_of_a_full_disk() {
    let Some(disk) = require::variable("ST_FULL_DISK") else { return };
    let seed = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let mut dice = Dice::new(seed);
    let (mut failed, mut done) = (0, 0);
    for round in 0..counts::of("merge-full-disks") {
        let world = World::new();
        let base = work(&world);
        let mode = if round % 2 == 0 { Mode::Merge } else { Mode::Apply };
        let mut wish = world.request(base, mode);
        wish.approvals = Approvals::All;
        let (old, head) = (files(&world.repo()), world.git(&["rev-parse", "HEAD"]));
        // Once no room at all in each mode, which must fail; then about as much as the merge needs.
        let room = if round < 2 { 0 } else { dice.below(ROOM / 1024) * 1024 };
        fill(Path::new(&disk), room);
        let outcome = merge(&world.means, &wish);
        fs_err::remove_file(Path::new(&disk).join("filler")).unwrap();
        let _recovered = recover(&world.means, &host(&world.repo())).unwrap();
        let succeeded = outcome.as_ref().is_ok_and(|outcome| outcome.success);
        let stopped = match &outcome {
            Err(_) => true,
            Ok(outcome) => matches!(outcome.outcome, Outcome::RolledBack { .. } | Outcome::Refused { .. }),
        };
        assert!(succeeded || stopped, "{outcome:?}");
        if succeeded {
            done += 1;
            assert_ne!(files(&world.repo()), old);
        } else {
            failed += 1;
            assert_eq!(files(&world.repo()), old, "{outcome:?}");
            assert_eq!((world.git(&["rev-parse", "HEAD"]), world.status()), (head, String::new()));
        }
        world.sound();
    }
    say(&format!("on full disks: {done} done, {failed} put back, from seed {seed}"));
    assert!(failed >= 2, "a merge on a disk without any room succeeded");
}

/// Twice what the merge above writes, so that about every second one runs out of it somewhere.
const ROOM: u64 = 192 * 1024;

/// Leaves only so many bytes.
fn fill(disk: &Path, room: u64) {
    let free = free_bytes(disk).saturating_sub(room);
    let run = Run::new("fallocate", disk).variable("PATH", PATH);
    let _filled = run.args(["-l", &free.max(1).to_string(), "filler"]).ended().expect_code(0);
}

fn free_bytes(disk: &Path) -> u64 {
    let run = Run::new("stat", disk).variable("PATH", PATH).args(["-f", "-c", "%a %S", "."]);
    let text = run.ended().expect_code(0).stdout;
    text.split_whitespace().map(|word| word.parse::<u64>().unwrap()).product()
}

#[test]
fn on_a_full_disk_the_old_state_or_the_new_one() {
    if !require::is_root() {
        return skip("a small disk needs root");
    }
    let folder = tempfile::Builder::new().prefix("st-").tempdir().unwrap();
    let script = "mount --make-rprivate / && mount -t tmpfs -o size=16m tmpfs \"$1\" && exec \"$2\" --exact crash::victim_of_a_full_disk --nocapture";
    let mut run = Run::new("unshare", folder.path()).variable("PATH", PATH);
    run = run.variable("TMPDIR", folder.path()).variable("ST_FULL_DISK", folder.path());
    if counts::is_long() {
        run = run.variable("SANDTABLE_LONG", "1");
    }
    let exe = std::env::current_exe().unwrap();
    let run = run.args(["--mount", "sh", "-c", script, "sh"]).arg(folder.path()).arg(exe);
    let ended = run.ended().expect_code(0);
    assert!(ended.stderr.contains("on full disks"), "{}", ended.stderr);
}
