//! States of real directories: held against git, against attacks, and against each other.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod support;

use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, mkfifoat};
use sandtable_store::RelPath;
use sandtable_store::dir::open_named;
use sandtable_store::id::HashKind;
use sandtable_store::ignore::{EntryKind, Rules, Verdict};
use sandtable_store::object::{Memory, ObjectKind, ReadObjects as _};
use sandtable_store::snapshot::{
    self, Ignored, SkipReason, SnapshotError, SnapshotOptions, SnapshotOutcome, Store, take,
};
use sandtable_store::state::{Limits, Walk, What};
use support::git::{git, git_tree, git_with};
use support::{Dice, setting};

fn snapshot(dir: &Path, memory: &Memory, ignored: Ignored) -> SnapshotOutcome {
    let rules = Rules::default();
    snapshot_with(dir, memory, &SnapshotOptions { ignored, ..SnapshotOptions::all(&rules, &|| false) })
        .unwrap()
}

fn snapshot_with(
    dir: &Path,
    memory: &Memory,
    options: &SnapshotOptions<'_>,
) -> Result<SnapshotOutcome, SnapshotError> {
    let store = Store { objects: memory, sink: memory };
    take(open_named(dir).unwrap().as_fd(), store, options, None)
}

/// A few random entries below `root`, of all kinds that git can hold.
fn grow(root: &Path, dice: &mut Dice) {
    const NAMES: [&[u8]; 12] =
        [b"a", b"b", b"a.o", b"a!", b"a0", b"\xff\n", b"\xc3\xa9", b"-rf", b"x\\y", b" ", b"a b", b"="];
    for _ in 0..5 + dice.roll(40) {
        let mut path = root.to_owned();
        for _ in 0..=dice.roll(3) {
            path.push(OsStr::from_bytes(dice.pick::<&[u8]>(&NAMES)));
        }
        // Nothing is made or written through a symlink: it may lead outside, and tests run as root.
        if path.ancestors().take_while(|above| *above != root).any(Path::is_symlink) {
            continue;
        }
        let text = ["", "text", "TEXT\r\n", "a longer text\n"][dice.roll(4)];
        // Much of this is impossible where it is tried; that is part of the game.
        drop(fs_err::create_dir_all(path.parent().unwrap()));
        match dice.roll(6) {
            0 => drop(fs_err::create_dir(&path)),
            1 => drop(symlink(
                OsStr::from_bytes(dice.pick::<&[u8]>(&[b"a", b"../..", b"/nowhere/at/all", b"\xff"])),
                &path,
            )),
            2 => {
                if fs_err::write(&path, text).is_ok() {
                    fs_err::set_permissions(&path, PermissionsExt::from_mode(0o711)).unwrap();
                }
            }
            _ => drop(fs_err::write(&path, text)),
        }
    }
}

#[test]
fn trees_are_those_of_git() {
    let mut dice = Dice::any();
    for (format, hash) in [("sha1", HashKind::Sha1), ("sha256", HashKind::Sha256)] {
        let scratch = tempfile::tempdir().unwrap();
        let repository = scratch.path().join("repository");
        for round in 0..setting("SANDTABLE_ROUNDS", 12) {
            let dir = tempfile::tempdir().unwrap();
            grow(dir.path(), &mut dice);
            drop(fs_err::remove_dir_all(&repository));
            git(&repository, dir.path(), &["init", "-q", "--object-format", format]);
            let memory = Memory::new(hash);
            let outcome = snapshot(dir.path(), &memory, Ignored::All);
            let expected = git_tree(&repository, dir.path(), &["-f", "."]);
            assert_eq!(outcome.state.tree.to_string(), expected, "round {round}");
            assert_eq!(outcome.skipped, []);
            assert_eq!(outcome.changed.count, 0, "{:?}", outcome.changed);
            // Nothing changed, so nothing is different.
            assert_eq!(snapshot(dir.path(), &memory, Ignored::All).state, outcome.state);
        }
    }
}

const PARTS: [&str; 5] = ["a", "b", "ab", "a b", "[a]"];

/// Directories and files of [`PARTS`], three levels deep.
fn make_small_world(root: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    for one in PARTS {
        for two in PARTS {
            fs_err::create_dir_all(root.join(one).join(two)).unwrap();
            for three in PARTS {
                fs_err::write(root.join(one).join(two).join(three), "").unwrap();
                paths.push(format!("{one}/{two}/{three}"));
            }
            paths.push(format!("{one}/{two}"));
        }
        paths.push(one.to_owned());
    }
    paths
}

fn any_rules(dice: &mut Dice) -> String {
    const PIECES: [&str; 24] = [
        "a",
        "b",
        "a",
        "b",
        "ab",
        "*",
        "**",
        "/",
        "/**/",
        "**/",
        "/**",
        "?",
        "!",
        "\\",
        " ",
        "[",
        "]",
        "[ab]",
        "[!a]",
        "[^b]",
        "[a-b]",
        "[[:alpha:]]",
        "[]a]",
        "\\ ",
    ];
    let mut text = String::new();
    for _ in 0..=dice.roll(4) {
        for _ in 0..=dice.roll(4) {
            text.push_str(dice.pick::<&str>(&PIECES));
        }
        text.push_str(dice.pick::<&str>(&["\n", "\n", "\r\n"]));
    }
    text
}

#[test]
fn ignores_what_git_ignores() {
    let mut dice = Dice::any();
    let (repository, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let paths = make_small_world(dir.path());
    git(repository.path(), dir.path(), &["init", "-q"]);
    let input = paths.join("\0");
    let mut hits = 0;
    for round in 0..setting("SANDTABLE_ROUNDS", 12) * 25 {
        let (top, below) = (any_rules(&mut dice), any_rules(&mut dice));
        fs_err::write(dir.path().join(".gitignore"), &top).unwrap();
        fs_err::write(dir.path().join("a/.gitignore"), &below).unwrap();
        let found =
            git_with(repository.path(), dir.path(), &["check-ignore", "-z", "--stdin"], input.as_bytes());
        let found: Vec<&str> = str::from_utf8(&found).unwrap().split_terminator('\0').collect();
        let outer = Rules::default().and(top.as_bytes(), b"").unwrap();
        let inner = outer.and(below.as_bytes(), b"a/").unwrap();
        let is_ignored = |path: &str| {
            let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            let mut above = ends.map(|end| &path[..end]);
            above.any(|part| {
                let rules = if part.starts_with("a/") { &inner } else { &outer };
                let is_dir = part.matches('/').count() < 2;
                let kind = if is_dir { EntryKind::Directory } else { EntryKind::Other };
                rules.verdict(part.as_bytes(), kind) == Verdict::Ignored
            })
        };
        let ours: Vec<&str> = paths.iter().map(String::as_str).filter(|path| is_ignored(path)).collect();
        assert_eq!(ours, found, "round {round}: {top:?} {below:?}");
        hits += ours.len();
    }
    assert!(hits > 0);
}

#[test]
fn without_ignored_files_the_tree_is_what_git_adds() {
    let mut dice = Dice::any();
    let rounds = setting("SANDTABLE_ROUNDS", 12);
    for round in 0..rounds {
        let (scratch, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let repository = scratch.path().join("repository");
        grow(dir.path(), &mut dice);
        for place in ["", "a", "b"].map(|place| dir.path().join(place)) {
            if place.is_dir() && !place.is_symlink() {
                let _absent = fs_err::write(place.join(".gitignore"), any_rules(&mut dice));
            }
        }
        // The last round always has one that ignores itself.
        if round + 1 == rounds {
            fs_err::write(dir.path().join(".gitignore"), ".gitignore\n").unwrap();
        }
        git(&repository, dir.path(), &["init", "-q"]);
        let memory = Memory::new(HashKind::Sha1);
        let outcome = snapshot(dir.path(), &memory, Ignored::None);
        // A file whose rules are obeyed is part of a state even if they ignore it; git adds it by force only.
        for rules in obeyed(&repository, dir.path()) {
            git(&repository, dir.path(), &["add", "--force", "--", rules.to_str().unwrap()]);
        }
        assert_eq!(
            outcome.state.tree.to_string(),
            git_tree(&repository, dir.path(), &["."]),
            "round {round}: ours {:?}, git's {}",
            paths(&memory, &outcome),
            String::from_utf8_lossy(&git(&repository, dir.path(), &["ls-files"]))
        );
    }
}

/// The `.gitignore` files that git reads: those in directories that are not ignored themselves.
fn obeyed(repository: &Path, dir: &Path) -> Vec<PathBuf> {
    let is_ignored = |place: &str| {
        !git_with(repository, dir, &["check-ignore", "-z", "--stdin"], place.as_bytes()).is_empty()
    };
    let is_directory = |place: &str| dir.join(place).symlink_metadata().is_ok_and(|data| data.is_dir());
    let read = |place: &&str| place.is_empty() || is_directory(place) && !is_ignored(place);
    ["", "a", "b"].into_iter().filter(read).map(|place| Path::new(place).join(".gitignore")).collect()
}

fn skipped(outcome: &SnapshotOutcome) -> Vec<(String, SkipReason)> {
    outcome.skipped.iter().map(|skipped| (skipped.path.display_escaped(), skipped.why)).collect()
}

fn paths(memory: &Memory, outcome: &SnapshotOutcome) -> Vec<String> {
    let mut paths = Vec::new();
    let mut walk = Walk::new(memory, &outcome.state, Limits::default()).unwrap();
    while let Some(visit) = walk.next().unwrap() {
        paths.push(visit.path.display_escaped());
    }
    paths
}

#[test]
fn what_is_left_out_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs_err::create_dir_all(at("nested/.git")).unwrap();
    fs_err::write(at("nested/kept"), "").unwrap();
    fs_err::create_dir_all(at(".git/objects")).unwrap();
    fs_err::create_dir(at(".GIT")).unwrap();
    fs_err::write(at("git~1"), "").unwrap();
    symlink("x", at(".gitmodules")).unwrap();
    mkfifoat(CWD, at("pipe"), Mode::RUSR).unwrap();
    drop(std::os::unix::net::UnixListener::bind(at("socket")).unwrap());
    let large = fs_err::File::create(at("large")).unwrap();
    large.set_len(10 << 30).unwrap();
    symlink("/etc/shadow", at("link")).unwrap();
    let memory = Memory::new(HashKind::Sha1);
    let outcome = snapshot(dir.path(), &memory, Ignored::All);
    let why = |name: &str, why| (name.to_owned(), why);
    assert_eq!(
        skipped(&outcome),
        [
            why(".GIT", SkipReason::Name),
            why(".gitmodules", SkipReason::Name),
            why("git~1", SkipReason::Name),
            why("large", SkipReason::TooLarge),
            why("nested/.git", SkipReason::Repository),
            why("pipe", SkipReason::Fifo),
            why("socket", SkipReason::Socket),
        ]
    );
    assert_eq!(outcome.counts.skipped, 7);
    assert_eq!(paths(&memory, &outcome), ["link", "nested", "nested/kept"]);
}

#[test]
fn holes_are_zeros() {
    use std::os::unix::fs::FileExt as _;
    let dir = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(dir.path().join("f")).unwrap();
    file.write_all_at(b"begin", 0).unwrap();
    file.write_all_at(b"middle", 3 << 20).unwrap();
    file.set_len((5 << 20) + 7).unwrap();
    let memory = Memory::new(HashKind::Sha1);
    let outcome = snapshot(dir.path(), &memory, Ignored::All);
    let node = outcome.state.lookup(&memory, &RelPath::new("f").unwrap()).unwrap().unwrap();
    let stored = memory.read_kind(&node.id().unwrap(), ObjectKind::Blob).unwrap();
    assert!(stored == fs_err::read(dir.path().join("f")).unwrap());
}

#[test]
fn a_file_with_several_names_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::new(HashKind::Sha1);
    fs_err::write(dir.path().join("n0"), vec![b'x'; 8 << 10]).unwrap();
    for name in 1..20 {
        fs_err::hard_link(dir.path().join("n0"), dir.path().join(format!("n{name}"))).unwrap();
    }
    let outcome = snapshot(dir.path(), &memory, Ignored::All);
    assert_eq!((outcome.counts.files_read, outcome.counts.bytes_read), (1, 8 << 10));
    let id = |name: &str| {
        let node = outcome.state.lookup(&memory, &RelPath::new(name).unwrap()).unwrap();
        node.unwrap().id().unwrap()
    };
    assert!((1..20).all(|name| id(&format!("n{name}")) == id("n0")));
}

#[test]
fn a_writer_that_never_rests_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let path = dir.path().join("log");
    fs_err::write(&path, vec![b'x'; 3 << 20]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::os::unix::fs::FileExt as _;
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            while !stop.load(Ordering::Relaxed) {
                file.write_all_at(b"y", 1).unwrap();
            }
        });
        let memory = Memory::new(HashKind::Sha1);
        let outcome = snapshot(dir.path(), &memory, Ignored::All);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(outcome.changed.paths, [RelPath::new("log").unwrap()]);
    });
}

/// A file that is exchanged for a symlink to a secret all the time, and so is the directory it is in.
#[test]
fn races_never_lead_outside() {
    use rustix::fs::{RenameFlags, renameat_with};
    const CANARY: &str = "never to be read";
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs_err::write(outside.path().join("f"), CANARY).unwrap();
    let at = |name: &str| dir.path().join(name);
    fs_err::create_dir_all(at("d")).unwrap();
    for name in ["d/f", "d/g"] {
        fs_err::write(at(name), "harmless").unwrap();
    }
    symlink(outside.path().join("f"), at("d/l")).unwrap();
    symlink(outside.path(), at("e")).unwrap();
    let stop = AtomicBool::new(false);
    let memory = Memory::new(HashKind::Sha1);
    std::thread::scope(|scope| {
        // By handle, so that the file outside is not brought in by the exchange itself.
        let (top, inner) = (open_named(dir.path()).unwrap(), open_named(&at("d")).unwrap());
        for (place, one, two) in [(inner, "f", "l"), (top, "d", "e")] {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    renameat_with(&place, one, &place, two, RenameFlags::EXCHANGE).unwrap();
                }
            });
        }
        for _ in 0..setting("SANDTABLE_ROUNDS", 12) * 20 {
            snapshot(dir.path(), &memory, Ignored::All);
        }
        stop.store(true, Ordering::Relaxed);
    });
    for id in memory.ids() {
        let object = memory.read(&id).unwrap();
        assert!(object.kind != ObjectKind::Blob || object.data != CANARY.as_bytes());
    }
}

#[test]
fn ten_thousand_levels_need_few_descriptors() {
    support::few_descriptors();
    let dir = tempfile::tempdir().unwrap();
    let depth = 10_000;
    support::make_chain(dir.path(), b"deep", depth);
    let memory = Memory::new(HashKind::Sha1);
    let outcome = snapshot(dir.path(), &memory, Ignored::All);
    assert_eq!((outcome.counts.entries, outcome.skipped.len()), (depth as u64 + 1, 0));
    let mut walk = Walk::new(&memory, &outcome.state, Limits::default()).unwrap();
    let mut visits = 0;
    while walk.next().unwrap().is_some() {
        visits += 1;
    }
    assert_eq!(visits, depth + 1);
    support::remove_chain(dir.path(), b"deep");
}

#[test]
fn limits_and_the_wish_to_stop_are_heeded() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..20 {
        fs_err::write(dir.path().join(number.to_string()), "").unwrap();
    }
    let memory = Memory::new(HashKind::Sha1);
    let rules = Rules::default();
    let options = SnapshotOptions { entry_limit: 10, ..SnapshotOptions::all(&rules, &|| false) };
    assert!(matches!(snapshot_with(dir.path(), &memory, &options), Err(SnapshotError::TooMany(10))));
    let at_once = || true;
    assert!(matches!(
        snapshot_with(dir.path(), &memory, &SnapshotOptions::all(&rules, &at_once)),
        Err(SnapshotError::Cancelled)
    ));
    let told = std::sync::Mutex::new(Vec::new());
    let progress = |counts: &snapshot::Counts| told.lock().unwrap().push(counts.entries);
    let options = SnapshotOptions { progress: &progress, ..SnapshotOptions::all(&rules, &|| false) };
    snapshot_with(dir.path(), &memory, &options).unwrap();
    assert_eq!(*told.lock().unwrap(), [20]);
}

#[test]
fn modes_attributes_and_times_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { dir.path().join(name) };
    fs_err::write(at("f"), "x").unwrap();
    fs_err::create_dir(at("empty")).unwrap();
    fs_err::set_permissions(at("empty"), PermissionsExt::from_mode(0o1770)).unwrap();
    fs_err::set_permissions(at("f"), PermissionsExt::from_mode(0o4600)).unwrap();
    support::set(&at("f"), "user.mine", "a value");
    support::set(&at("f"), "user.overlay.redirect", "/etc");
    let memory = Memory::new(HashKind::Sha1);
    let outcome = snapshot(dir.path(), &memory, Ignored::All);
    let node = |name: &str| outcome.state.lookup(&memory, &RelPath::new(name).unwrap()).unwrap().unwrap();
    let file = node("f");
    assert_eq!(file.own.bits, 0o4600);
    let attributes: Vec<_> = file.own.attributes.iter().map(|one| (&*one.name, &*one.value)).collect();
    assert_eq!(attributes, [(&b"user.mine"[..], &b"a value"[..])]);
    let modified = fs_err::metadata(at("f")).unwrap().modified().unwrap();
    let modified = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    assert_eq!(u128::try_from(file.own.mtime_ns.unwrap()).unwrap(), modified);
    assert!(matches!(node("empty").what, What::Directory(_)));
    assert_eq!(node("empty").own.bits, 0o1770);
}

/// Permission bits, attributes and times of all kinds, on what is there.
fn dress(dir: &Path, dice: &mut Dice) {
    for entry in fs_err::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs_err::symlink_metadata(&path).unwrap().file_type();
        if kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            dress(&path, dice);
        }
        if dice.roll(3) == 0 {
            support::set(&path, "user.odd name\n", "a = value\0");
        }
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(dice.roll(1 << 50) as u64);
        std::fs::File::open(&path).unwrap().set_modified(time).unwrap();
        let mode = *dice.pick(&[0o644, 0o755, 0o700, 0o600, 0o777, 0o500]);
        fs_err::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    }
}

#[test]
fn what_is_checked_out_is_what_was_snapshotted() {
    use sandtable_store::checkout::{self, checkout};
    let mut dice = Dice::any();
    for round in 0..setting("SANDTABLE_ROUNDS", 12) {
        let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        grow(dir.path(), &mut dice);
        dress(dir.path(), &mut dice);
        let memory = Memory::new(HashKind::Sha1);
        let state = snapshot(dir.path(), &memory, Ignored::All).state;
        let target = open_named(copy.path()).unwrap();
        let done = checkout(&memory, &state, target.as_fd(), &checkout::CheckoutOptions::default()).unwrap();
        assert_eq!(done.skipped, [], "round {round}");
        assert_eq!(snapshot(copy.path(), &memory, Ignored::All).state, state, "round {round}");
    }
}
