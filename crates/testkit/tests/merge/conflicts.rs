//! Conflicts of every kind, and git itself as the judge over generated histories.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sandtable_merge::{Approvals, ConflictKind, Mode, Outcome};
use sandtable_testkit::counts;
use sandtable_testkit::env::PATH;
use sandtable_testkit::process::Run;
use sandtable_testkit::require::say;

use crate::world::{World, write};

/// Both sides change; the conflict must be of this kind, named, and nothing touched.
fn conflict(
    prepare: impl Fn(&Path),
    theirs: impl Fn(&Path),
    ours: impl Fn(&Path),
    (kind, path): (ConflictKind, &str),
) {
    let world = World::new();
    prepare(&world.repo());
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "--allow-empty", "-m", "prepared"]);
    let base = world.enter();
    theirs(&world.inside());
    ours(&world.repo());
    world.commit("ours");
    let mut request = world.request(base, Mode::Merge);
    request.approvals = Approvals::All;
    let before = world.fingerprint();
    let outcome = world.merge(&request);
    assert_eq!(before.differences(&world.fingerprint()), [""; 0]);
    let Outcome::Conflicts { conflicts } = &outcome.outcome else { panic!("{outcome:?}") };
    let found = conflicts.iter().any(|conflict| {
        let all = std::iter::once(&conflict.path).chain(&conflict.others);
        conflict.kind == kind && all.into_iter().any(|named| named.path == path)
    });
    assert!(found, "no {kind:?} at {path}: {conflicts:#?}");
    assert!(outcome.conflict && !outcome.success && !outcome.next.is_empty());
}

fn nothing(_: &Path) {}

fn remove(path: &Path) {
    fs_err::remove_file(path).unwrap();
}

fn rename(from: &Path, to: &Path) {
    fs_err::create_dir_all(to.parent().unwrap()).unwrap();
    fs_err::rename(from, to).unwrap();
}

#[test]
fn content() {
    let edit = |text: &'static str| move |at: &Path| write(&at.join("README"), text.as_bytes());
    conflict(nothing, edit("theirs\n"), edit("ours\n"), (ConflictKind::Content, "README"));
}

#[test]
fn both_added() {
    let add = |text: &'static str| move |at: &Path| write(&at.join("new"), text.as_bytes());
    conflict(nothing, add("theirs\n"), add("ours\n"), (ConflictKind::AddAdd, "new"));
}

#[test]
fn modified_and_deleted() {
    let edit = |at: &Path| write(&at.join("README"), b"edited\n");
    let delete = |at: &Path| remove(&at.join("README"));
    conflict(nothing, edit, delete, (ConflictKind::ModifyDelete, "README"));
    conflict(nothing, delete, edit, (ConflictKind::ModifyDelete, "README"));
}

#[test]
fn renamed_to_two_names() {
    let to = |name: &'static str| move |at: &Path| rename(&at.join("docs/guide.txt"), &at.join(name));
    conflict(nothing, to("theirs.txt"), to("ours.txt"), (ConflictKind::RenameRename, "docs/guide.txt"));
}

#[test]
fn renamed_and_deleted() {
    let delete = |at: &Path| remove(&at.join("docs/guide.txt"));
    let moved = |at: &Path| rename(&at.join("docs/guide.txt"), &at.join("moved.txt"));
    conflict(nothing, moved, delete, (ConflictKind::RenameDelete, "moved.txt"));
}

#[test]
fn a_file_and_a_directory() {
    let file = |at: &Path| write(&at.join("thing"), b"file\n");
    let directory = |at: &Path| write(&at.join("thing/inside"), b"directory\n");
    conflict(nothing, file, directory, (ConflictKind::FileDirectory, "thing"));
}

#[test]
fn modes() {
    let add = |mode: u32| {
        move |at: &Path| {
            write(&at.join("tool"), b"#!/bin/sh\n");
            fs_err::set_permissions(at.join("tool"), PermissionsExt::from_mode(mode)).unwrap();
        }
    };
    conflict(nothing, add(0o755), add(0o644), (ConflictKind::Mode, "tool"));
}

#[test]
fn a_link_and_a_file() {
    let link = |at: &Path| fs_err::os::unix::fs::symlink("README", at.join("thing")).unwrap();
    let file = |at: &Path| write(&at.join("thing"), b"file\n");
    conflict(nothing, link, file, (ConflictKind::Type, "thing"));
}

#[test]
fn binary() {
    let picture = |byte: u8| move |at: &Path| write(&at.join("picture"), &[0, byte, 0, byte]);
    conflict(picture(1), picture(2), picture(3), (ConflictKind::Binary, "picture"));
}

#[test]
fn submodules() {
    let world = World::new();
    let id = |n: u8| format!("{n:040x}");
    let link = |n: u8| world.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},sub", id(n))]);
    link(1);
    world.git(&["commit", "-q", "-m", "sub"]);
    let tree_with = |n: u8| {
        let text = format!("160000 commit {}\tsub\n", id(n));
        fs_err::write(world.root().join("entries"), text).unwrap();
        let sh = "git --git-dir store mktree --missing < entries";
        let run = Run::new("sh", world.root()).variable("PATH", PATH).variable("HOME", "/nonexistent");
        run.args(["-c", sh]).ended().expect_code(0).stdout.trim().to_owned()
    };
    let base = world.snapshot_of_tree(&tree_with(1), None);
    let theirs = world.snapshot_of_tree(&tree_with(2), Some(&base));
    link(3);
    world.git(&["commit", "-q", "-m", "ours"]);
    let mut request = world.request_of(base, theirs, Mode::Merge);
    request.approvals = Approvals::All;
    let before = world.fingerprint();
    let outcome = world.merge(&request);
    assert_eq!(before.differences(&world.fingerprint()), [""; 0]);
    let Outcome::Conflicts { conflicts } = &outcome.outcome else { panic!("{outcome:?}") };
    assert!(
        conflicts.iter().any(|c| c.kind == ConflictKind::Submodule && c.path.path == "sub"),
        "{conflicts:?}"
    );
}

/// A small generator of numbers, so that a seed tells everything.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Changes a directory at random: edits, additions, removals, renames, modes, kinds, binary files.
fn shuffle(at: &Path, dice: &mut Dice) {
    for _ in 0..=dice.below(4) {
        let name =
            format!("{}/f{}", ["a", "b", "a/c"][usize::try_from(dice.below(3)).unwrap()], dice.below(4));
        let path = at.join(&name);
        let other = at.join(format!("a/g{}", dice.below(3)));
        let is_file = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
        match dice.below(9) {
            0..=2 if is_file => {
                let text = fs_err::read_to_string(&path).unwrap_or_default();
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                let place = usize::try_from(dice.below(lines.len() as u64 + 1)).unwrap();
                lines.insert(place, format!("line {}", dice.below(3)));
                write(&path, (lines.join("\n") + "\n").as_bytes());
            }
            3 if is_file => remove(&path),
            4 | 5 if is_file && !other.exists() => rename(&path, &other),
            6 if is_file => {
                fs_err::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            }
            7 if is_file => {
                remove(&path);
                fs_err::os::unix::fs::symlink("f0", &path).unwrap();
            }
            8 if is_file => write(&path, &[0, u8::try_from(dice.below(3)).unwrap(), 1]),
            _ if path.symlink_metadata().is_err() && path.parent().unwrap().is_dir() => {
                write(&path, format!("added {}\n", dice.below(2)).as_bytes());
            }
            _ => {}
        }
    }
}

/// What stock git makes of the three trees: the tree, or the paths in conflict.
fn judged(world: &World, base: &str, theirs: &str) -> Result<String, BTreeSet<String>> {
    let run = Run::new("git", &world.repo()).variable("PATH", PATH).variable("HOME", "/nonexistent");
    let run = run.variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", world.store().join("objects"));
    let base = format!("--merge-base={base}");
    let ended = run.args(["merge-tree", "--write-tree", "-z", "--name-only", &base, "HEAD", theirs]).ended();
    let fields: Vec<&str> = ended.stdout.split('\0').collect();
    match ended.code {
        0 => Ok(fields[0].to_owned()),
        1 => Err(fields[1..].iter().take_while(|field| !field.is_empty()).map(|&name| named(name)).collect()),
        _ => panic!("{ended:?}"),
    }
}

/// A path without the name of the side that git puts behind one that has to make room.
fn named(path: &str) -> String {
    path.split('~').next().unwrap_or_default().to_owned()
}

#[test]
fn results_are_those_of_git_on_generated_histories() {
    let (mut clean, mut conflicting) = (0, 0);
    let seed = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    say(&format!("histories from seed {seed}"));
    for round in 0..u64::from(counts::of("merge-histories")) {
        let mut dice = Dice::new(seed + round);
        let world = World::new();
        for folder in ["a", "b", "a/c"] {
            for n in 0..3 {
                let lines: Vec<String> = (0..8).map(|line| format!("{folder} {n} {line}")).collect();
                world.write(&format!("{folder}/f{n}"), lines.join("\n") + "\n");
            }
        }
        world.commit("start");
        let base = world.enter();
        shuffle(&world.inside(), &mut dice);
        shuffle(&world.repo(), &mut dice);
        world.git(&["add", "-A"]);
        world.git(&["commit", "-q", "--allow-empty", "-m", "ours"]);
        let mut request = world.request(base, Mode::Merge);
        request.approvals = Approvals::All;
        let judgement = judged(&world, &base.to_string(), &request.snapshot.to_string());
        let before = world.fingerprint();
        let outcome = world.merge(&request);
        match (&outcome.outcome, judgement) {
            (Outcome::UpToDate, Ok(tree)) => {
                assert_eq!(world.git(&["rev-parse", "HEAD^{tree}"]).trim(), tree);
            }
            (Outcome::FastForward { .. } | Outcome::Merged { .. }, Ok(tree)) => {
                clean += 1;
                assert_eq!(world.git(&["rev-parse", "HEAD^{tree}"]).trim(), tree, "seed {}", seed + round);
                assert_eq!(world.status(), "", "seed {}", seed + round);
            }
            (Outcome::Conflicts { conflicts }, Err(paths)) => {
                conflicting += 1;
                let all = conflicts.iter().flat_map(|c| std::iter::once(&c.path).chain(&c.others));
                let named: BTreeSet<String> = all.map(|path| named(&path.path)).collect();
                assert!(paths.is_subset(&named), "seed {}: {paths:?} {named:?}", seed + round);
                assert_eq!(before.differences(&world.fingerprint()), [""; 0]);
            }
            (other, judgement) => panic!("seed {}: {other:?}, but git says {judgement:?}", seed + round),
        }
    }
    let met = format!("{clean} clean, {conflicting} in conflict");
    // A dozen histories may be of one kind by chance; hundreds are not.
    assert!(clean + conflicting > 0 && (!counts::is_long() || clean.min(conflicting) > 20), "{met}");
    say(&met);
}
