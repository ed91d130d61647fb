//! Hostile layers made from random bytes: whatever is in them, reading ends, stays inside and keeps its
//! promises. `SANDTABLE_ROUNDS` says how many, `SANDTABLE_SEED` repeats a failure.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod support;

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, inotify, mkfifoat, mknodat, setxattr};
use sandtable_store::RelPath;
use sandtable_store::dir::open_named;
use sandtable_store::id::HashKind;
use sandtable_store::ignore::Rules;
use sandtable_store::layer::{
    CaptureOptions, Git, LayerOptions, LayerOutcome, Lower, Run, Watch, capture, read,
};
use sandtable_store::object::Memory;
use sandtable_store::snapshot::{self, Ignored, Store};
use sandtable_store::state::{Limits, State, Walk};
use support::{Dice, setting};

const NAMES: [&[u8]; 12] = [
    b"a",
    b"b",
    b"c",
    b"d",
    b".git",
    b"\xff",
    b"\n",
    b"-",
    b"e\xcc\x81",
    b"\xe2\x80\xae",
    b"...",
    b"outside",
];

#[test]
fn random_layers_are_read_safely() {
    let mut dice = Dice::any();
    let around = tempfile::tempdir().unwrap();
    let outside = Outside::new(around.path());
    for round in 0..setting("SANDTABLE_ROUNDS", 60) {
        let dir = tempfile::tempdir_in(around.path()).unwrap();
        let sides = ["upper", "pins", "lower"].map(|name| dir.path().join(name));
        for side in &sides {
            fs_err::create_dir(side).unwrap();
            grow(side, &outside.path, &mut dice);
        }
        outside.forget_events();
        let options = LayerOptions { git: Git::List, limit: 1 + dice.roll(400) };
        let lower = Lower::new(sides[1..].iter().map(|side| open_named(side).unwrap()).collect());
        let upper = open_named(&sides[0]).unwrap();
        let outcome = read(upper.as_fd(), &lower, &options).unwrap();
        assert!(!outside.was_touched(), "round {round} opened something outside");
        check(&outcome, &options);
        let again = read(upper.as_fd(), &lower, &options).unwrap();
        assert_eq!(outcome, again, "round {round}: reading changed something");
        let memory = Memory::new(HashKind::Sha1);
        let captured = capture_on(&memory, &sides[2], &upper);
        assert!(!outside.was_touched(), "round {round} opened something outside");
        assert_eq!(capture_on(&memory, &sides[2], &upper), captured, "round {round}");
        let mut walk = Walk::new(&memory, &captured, Limits::default()).unwrap();
        while let Some(visit) = walk.next().unwrap() {
            assert!(visit.path.components().all(|name| name != b".git"));
        }
    }
}

/// The state of a random layer on a random directory.
fn capture_on(memory: &Memory, lower: &Path, upper: &OwnedFd) -> State {
    let (rules, never) = (Rules::default(), || false);
    let store = Store { objects: memory, sink: memory };
    let whole = snapshot::SnapshotOptions::all(&rules, &never);
    let base = snapshot::take(open_named(lower).unwrap().as_fd(), store, &whole, None).unwrap().state;
    let options = CaptureOptions {
        ignored: Ignored::All,
        rules: &rules,
        file_limit: u64::MAX,
        cancelled: &never,
        watch: Watch::Still,
        cache: None,
    };
    capture(upper.as_fd(), &base, store, Run { options: &options, cache: None }).unwrap().outcome.state
}

fn check(outcome: &LayerOutcome, options: &LayerOptions) {
    let findings = outcome.changes.len() + outcome.skipped.len() + outcome.foreign.len();
    assert!(findings <= options.limit);
    for change in &outcome.changes {
        assert_eq!(RelPath::new(change.path.as_bytes()), Ok(change.path.clone()));
    }
    let sorted = outcome.changes.windows(2).all(|pair| pair[0].path < pair[1].path);
    assert!(sorted, "each path is listed once, in order: {:?}", outcome.changes);
    for foreign in &outcome.foreign {
        assert!(foreign.attribute.starts_with("user.overlay."));
    }
}

/// Fills a directory with whatever can be made without privileges.
fn grow(root: &Path, outside: &Path, dice: &mut Dice) {
    let mut directories = vec![root.to_owned()];
    for _ in 0..dice.roll(60) {
        let parent = dice.pick(&directories).clone();
        let path = parent.join(OsStr::from_bytes(dice.pick::<&[u8]>(&NAMES)));
        if path.symlink_metadata().is_ok() {
            continue;
        }
        match dice.roll(8) {
            0..=2 => {
                fs_err::create_dir(&path).unwrap();
                directories.push(path.clone());
            }
            3 => fs_err::write(&path, ["", "text", "TEXT"][dice.roll(3)]).unwrap(),
            4 => symlink(target(outside, dice), &path).unwrap(),
            5 => mknodat(CWD, &path, FileType::CharacterDevice, Mode::empty(), 0).unwrap(),
            6 => mkfifoat(CWD, &path, Mode::RUSR).unwrap(),
            // The name of a socket is limited; where it does not fit there is none.
            _ => drop(UnixListener::bind(&path)),
        }
        mark(&path, dice);
    }
}

fn target(outside: &Path, dice: &mut Dice) -> PathBuf {
    match dice.roll(4) {
        0 => outside.to_owned(),
        1 => outside.join("key"),
        2 => PathBuf::from("../../outside/key"),
        _ => PathBuf::from("a"),
    }
}

/// Random attributes and modes, on files and directories only: the others cannot have any.
fn mark(path: &Path, dice: &mut Dice) {
    const SHORT: [&str; 11] = [
        "opaque",
        "whiteout",
        "redirect",
        "metacopy",
        "origin",
        "impure",
        "overlay.opaque",
        "protattr",
        "nlink",
        "upper",
        "x",
    ];
    const VALUES: [&str; 7] = ["y", "x", "", "/outside/key", "../outside", "yy", "\0\0\0"];
    let kind = path.symlink_metadata();
    if !kind.is_ok_and(|found| found.is_file() || found.is_dir()) {
        return;
    }
    for _ in 0..dice.roll(3) {
        let name = format!("user.overlay.{}", dice.pick(&SHORT));
        setxattr(path, name.as_str(), dice.pick(&VALUES).as_bytes(), XattrFlags::empty()).unwrap();
    }
    if dice.roll(5) == 0 {
        fs_err::set_permissions(path, PermissionsExt::from_mode(*dice.pick(&[0o700, 0o2755, 0o1777])))
            .unwrap();
    }
}

/// A directory that no reader may touch, and a watch that tells whether one did.
struct Outside {
    path: PathBuf,
    watch: OwnedFd,
}

impl Outside {
    fn new(parent: &Path) -> Self {
        let path = parent.join("outside");
        fs_err::create_dir(&path).unwrap();
        fs_err::write(path.join("key"), "text").unwrap();
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&watch, &path, inotify::WatchFlags::OPEN | inotify::WatchFlags::ACCESS).unwrap();
        Self { path, watch }
    }

    fn forget_events(&self) {
        while self.was_touched() {}
    }

    fn was_touched(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        inotify::Reader::new(&self.watch, &mut buffer).next().is_ok()
    }
}

#[test]
fn the_watch_would_tell() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::new(dir.path());
    assert!(!outside.was_touched());
    fs_err::read(outside.path.join("key")).unwrap();
    assert!(outside.was_touched());
}
