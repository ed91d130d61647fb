//! States written to a disk, and what must not be.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use sandtable_store::RelPath;
use sandtable_store::checkout::{
    CheckoutError, CheckoutOptions, CheckoutOutcome, CheckoutSkipReason, Lost, Progress, Times, checkout,
};
use sandtable_store::dir::{names, open_below, open_named};
use sandtable_store::id::HashKind;
use sandtable_store::object::{EntryMode, Memory, ObjectKind, Tree, TreeEntry, WriteObjects as _};
use sandtable_store::state::{Limits, State, StateError};

use crate::states::{Plain, Thing, Zoo, look, path, random, set, state, timeless};
use crate::support::{Dice, setting};

fn written(objects: &Memory, state: &State, dir: &Path) -> Result<CheckoutOutcome, CheckoutError> {
    checkout(objects, state, open_named(dir).unwrap().as_fd(), &CheckoutOptions::default())
}

#[test]
fn what_is_written_is_the_state() {
    let mut dice = Dice::any();
    for round in 0..setting("SANDTABLE_ROUNDS", 150) {
        let plain = random(&mut dice, Zoo::Everything);
        let objects = Memory::default();
        let state = state(&objects, &plain);
        let dir = tempfile::tempdir().unwrap();
        let outcome = written(&objects, &state, dir.path()).unwrap();
        assert_eq!(look(dir.path()), plain, "round {round}");
        assert_eq!(outcome.skipped, []);
        let count = |kind| plain.values().filter(|thing| thing.kind == kind).count() as u64;
        assert_eq!(
            (outcome.files, outcome.directories, outcome.symlinks),
            (count('f'), count('d'), count('l'))
        );
        unlock(dir.path());
    }
}

/// So that an ordinary user can remove it.
pub(crate) fn unlock(root: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for (path, thing) in look_at_directories(root) {
        assert_eq!(thing, 'd');
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn look_at_directories(root: &Path) -> Vec<(std::path::PathBuf, char)> {
    let found = look(root).into_iter().filter(|(_, thing)| thing.kind == 'd');
    found.map(|(path, thing)| (crate::states::at(root, &path), thing.kind)).collect()
}

#[test]
fn times_may_be_those_of_the_moment() {
    let objects = Memory::default();
    let mut plain = Plain::new();
    set(&mut plain, &path("d/f"), Thing::file("x"));
    let dir = tempfile::tempdir().unwrap();
    let options = CheckoutOptions { times: Times::Now, ..CheckoutOptions::default() };
    let root = open_named(dir.path()).unwrap();
    checkout(&objects, &state(&objects, &plain), root.as_fd(), &options).unwrap();
    let found = look(dir.path());
    assert_eq!(timeless(&found), timeless(&plain));
    assert!(found.values().all(|thing| thing.mtime_ns > 1_600_000_000_000_000_000));
}

#[test]
fn a_directory_with_something_in_it_is_refused_and_untouched() {
    let objects = Memory::default();
    let dir = tempfile::tempdir().unwrap();
    fs_err::write(dir.path().join("mine"), "x").unwrap();
    let refused = written(&objects, &State::empty(&objects).unwrap(), dir.path());
    assert!(matches!(refused, Err(CheckoutError::NotEmpty(found)) if found == path("mine")));
    assert_eq!(look(dir.path()).len(), 1);
}

#[test]
fn special_bits_are_not_set_and_said() {
    let objects = Memory::default();
    let mut plain = Plain::new();
    set(&mut plain, &path("d"), Thing::directory(0o3777));
    set(&mut plain, &path("d/tool"), Thing { bits: 0o6755, ..Thing::file("#!") });
    let dir = tempfile::tempdir().unwrap();
    let outcome = written(&objects, &state(&objects, &plain), dir.path()).unwrap();
    let found = look(dir.path());
    assert_eq!((found[&path("d")].bits, found[&path("d/tool")].bits), (0o777, 0o755));
    let why: Vec<_> = outcome.skipped.iter().map(|skipped| (skipped.path.clone(), skipped.why)).collect();
    let special = CheckoutSkipReason::Without(Lost::SpecialBits);
    assert_eq!(why, [(path("d"), special), (path("d/tool"), special)]);
}

#[test]
fn git_under_any_name_makes_a_state_refused() {
    for name in [".git", ".GIT", "git~1", ".git ", ".g\u{200c}it"] {
        let objects = Memory::default();
        // A tree cannot be written with such a name, but a manifest speaks of empty directories.
        let name: String =
            name.bytes()
                .map(|byte| {
                    if byte.is_ascii_graphic() { (byte as char).to_string() } else { format!("%{byte:02X}") }
                })
                .collect();
        let blob = objects.write(ObjectKind::Blob, format!("d 0755 {name}\n").as_bytes()).unwrap();
        let manifest =
            Tree::new(vec![TreeEntry { mode: EntryMode::File, name: b"+".to_vec(), id: blob }]).unwrap();
        let manifest = objects.write(ObjectKind::Tree, &manifest.encode()).unwrap();
        let state = State { manifest, ..State::empty(&objects).unwrap() };
        let dir = tempfile::tempdir().unwrap();
        assert!(
            matches!(
                written(&objects, &state, dir.path()),
                Err(CheckoutError::Git(_) | CheckoutError::State(_))
            ),
            "{name}"
        );
        assert_eq!(look(dir.path()), Plain::new());
    }
}

/// A tree that names the one below ten times, ten levels deep.
fn bomb(objects: &Memory) -> State {
    let blob = objects.write(ObjectKind::Blob, b"boom").unwrap();
    let mut id = blob;
    let mut mode = EntryMode::File;
    for _ in 0..10 {
        let entry = |n: usize| TreeEntry { mode, name: n.to_string().into_bytes(), id };
        id = objects
            .write(ObjectKind::Tree, &Tree::new((0..10).map(entry).collect()).unwrap().encode())
            .unwrap();
        mode = EntryMode::Tree;
    }
    State { tree: id, ..State::empty(objects).unwrap() }
}

#[test]
fn a_tree_bomb_is_stopped_and_taken_away() {
    let objects = Memory::default();
    let state = bomb(&objects);
    let dir = tempfile::tempdir().unwrap();
    let options =
        CheckoutOptions { limits: Limits { entries: 2000, depth: 100 }, ..CheckoutOptions::default() };
    let root = open_named(dir.path()).unwrap();
    let stopped = checkout(&objects, &state, root.as_fd(), &options);
    assert!(matches!(stopped, Err(CheckoutError::State(StateError::TooMany))), "{stopped:?}");
    assert_eq!(look(dir.path()), Plain::new());
}

#[test]
fn it_stops_when_told_and_leaves_nothing_but_what_others_wrote() {
    let objects = Memory::default();
    let mut plain = Plain::new();
    for number in 0..60 {
        set(&mut plain, &path(&format!("d{}/f{number}", number % 7)), Thing::file("12345"));
    }
    let state = state(&objects, &plain);
    let dir = tempfile::tempdir().unwrap();
    let most = AtomicU64::new(0);
    let progress = |now: Progress| {
        if most.fetch_max(now.files, Ordering::Relaxed) == 0 {
            fs_err::write(dir.path().join("mine"), "x").unwrap();
        }
    };
    let cancelled = || most.load(Ordering::Relaxed) >= 20;
    let options =
        CheckoutOptions { progress: &progress, cancelled: &cancelled, ..CheckoutOptions::default() };
    let root = open_named(dir.path()).unwrap();
    let stopped = checkout(&objects, &state, root.as_fd(), &options);
    assert!(matches!(stopped, Err(CheckoutError::Cancelled)), "{stopped:?}");
    assert_eq!(look(dir.path()).into_keys().collect::<Vec<_>>(), [path("mine")]);
}

#[test]
fn what_is_not_stored_is_listed_and_the_rest_is_there() {
    let objects = Memory::default();
    let mut plain = Plain::new();
    set(&mut plain, &path("gone"), Thing::file("lost"));
    set(&mut plain, &path("here"), Thing::file("kept"));
    let state = state(&objects, &plain);
    objects.remove(&sandtable_store::object::hash(HashKind::default(), ObjectKind::Blob, b"lost").unwrap());
    let dir = tempfile::tempdir().unwrap();
    let outcome = written(&objects, &state, dir.path()).unwrap();
    assert_eq!(outcome.skipped.len(), 1);
    assert_eq!(
        (&outcome.skipped[0].path, outcome.skipped[0].why),
        (&path("gone"), CheckoutSkipReason::NotStored)
    );
    assert_eq!(look(dir.path()).into_keys().collect::<Vec<RelPath>>(), [path("here")]);
}

#[test]
fn a_directory_of_very_many_files_is_written_by_several_threads() {
    let objects = Memory::default();
    let mut plain = Plain::new();
    set(&mut plain, &path("many"), Thing::directory(0o500));
    set(&mut plain, &path("many/below"), Thing::directory(0o500));
    set(&mut plain, &path("many/below/f"), Thing::file("deeper"));
    set(&mut plain, &path("many/link"), Thing::link("below"));
    for number in 0..2500 {
        set(&mut plain, &path(&format!("many/{number}")), Thing::file(number.to_string()));
        set(&mut plain, &path(&format!("{number}")), Thing::file("at the top"));
    }
    let state = state(&objects, &plain);
    for workers in [1, 2, 5] {
        let dir = tempfile::tempdir().unwrap();
        let root = open_named(dir.path()).unwrap();
        let options = CheckoutOptions { workers, ..CheckoutOptions::default() };
        let outcome = checkout(&objects, &state, root.as_fd(), &options).unwrap();
        assert_eq!((outcome.files, outcome.directories, outcome.symlinks), (5001, 2, 1));
        assert_eq!(look(dir.path()), plain, "{workers} workers");
        unlock(dir.path());
    }
}

/// Directories in each other, with one beside each of them that holds a file and a symlink.
pub(crate) fn comb(objects: &Memory, depth: usize, name: &[u8]) -> State {
    let blob = objects.write(ObjectKind::Blob, b"x").unwrap();
    let tree = |entries: Vec<(&[u8], EntryMode, sandtable_store::id::ObjectId)>| {
        let entry = |(name, mode, id): (&[u8], _, _)| TreeEntry { mode, name: name.to_vec(), id };
        let tree = Tree::new(entries.into_iter().map(entry).collect()).unwrap();
        objects.write(ObjectKind::Tree, &tree.encode()).unwrap()
    };
    let tooth = tree(vec![(b"f", EntryMode::File, blob), (b"l", EntryMode::Symlink, blob)]);
    let end = tree(vec![(b"f", EntryMode::File, blob)]);
    let shaft = (0..depth)
        .fold(end, |below, _| tree(vec![(name, EntryMode::Tree, below), (b"tooth", EntryMode::Tree, tooth)]));
    State { tree: shaft, ..State::empty(objects).unwrap() }
}

#[test]
fn thousands_of_directories_in_each_other_are_written_and_taken_away() {
    const DEPTH: usize = 1000;
    let objects = Memory::default();
    let state = comb(&objects, DEPTH, b"deeper");
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    fs_err::create_dir(&target).unwrap();
    let root = open_named(&target).unwrap();
    let done = checkout(&objects, &state, root.as_fd(), &CheckoutOptions::default()).unwrap();
    let depth = DEPTH as u64;
    assert_eq!((done.files, done.directories, done.symlinks), (depth + 1, 2 * depth, depth));
    for levels in [0, 1, 63, 64, 65, 500, DEPTH - 1] {
        let tooth = path(&format!("{}tooth", "deeper/".repeat(levels)));
        let names = names(open_below(root.as_fd(), &tooth).unwrap().as_fd()).unwrap();
        assert_eq!(names.len(), 2, "{levels}");
    }
    assert!(open_below(root.as_fd(), &path(&["deeper"; DEPTH].join("/"))).is_ok());
    sandtable_store::remove::remove_tree(&target).unwrap();
    // Told to stop by the last of all symlinks, which come after everything else.
    fs_err::create_dir(&target).unwrap();
    let root = open_named(&target).unwrap();
    let asked = AtomicU64::new(0);
    let cancelled = || asked.fetch_add(1, Ordering::Relaxed) > 6 * depth;
    let options = CheckoutOptions { cancelled: &cancelled, ..CheckoutOptions::default() };
    let stopped = checkout(&objects, &state, root.as_fd(), &options);
    assert!(matches!(stopped, Err(CheckoutError::Cancelled)), "{stopped:?}");
    assert_eq!(look(&target), Plain::new());
}

#[test]
fn nothing_is_written_outside_while_directories_are_exchanged() {
    let objects = Memory::default();
    let mut plain = Plain::new();
    for number in 0..300 {
        set(&mut plain, &path(&format!("d/e/f{number}")), Thing::file("inside"));
        set(&mut plain, &path(&format!("d/l{number}")), Thing::link("/nowhere"));
    }
    let state = state(&objects, &plain);
    let dir = tempfile::tempdir().unwrap();
    fs_err::create_dir_all(dir.path().join("out/e")).unwrap();
    for _ in 0..setting("SANDTABLE_ROUNDS", 20) {
        let target = dir.path().join("target");
        fs_err::create_dir(&target).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Somebody puts a symlink where a directory was made.
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let aside = target.join("aside");
                    if fs_err::rename(target.join("d"), &aside).is_ok() {
                        let _made = std::os::unix::fs::symlink(dir.path().join("out"), target.join("d"));
                    }
                }
            });
            let _refused = written(&objects, &state, &target);
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(look(&dir.path().join("out")).len(), 1);
        fs_err::remove_dir_all(&target).unwrap();
    }
}
