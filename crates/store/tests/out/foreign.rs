//! What others put into the directory aside while a directory is turned, or in its place: it never keeps the turn from its end.

use std::cell::Cell;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use sandtable_store::rollback::{Recovery, RollbackError, RollbackOptions, clear_away};

use crate::rollback::{Scene, edited, quick};
use crate::states::{look, timeless};

/// What the sandbox has by the directory aside.
type Act = fn(&Path);

const ACTS: [(&str, Act); 9] = [
    ("a directory", |aside| drop(fs_err::create_dir_all(aside.join("d/e")))),
    ("a link", |aside| drop(symlink("../../victim", aside.join("link")))),
    ("no permissions", |aside| {
        drop(fs_err::create_dir_all(aside.join("d/e")));
        drop(fs_err::set_permissions(aside, std::fs::Permissions::from_mode(0o000)));
    }),
    ("a file in its place", |aside| {
        drop(fs_err::rename(aside, aside.with_file_name("theirs")));
        drop(fs_err::write(aside, "x"));
    }),
    ("a link in its place", |aside| {
        drop(fs_err::rename(aside, aside.with_file_name("theirs")));
        drop(symlink("../victim", aside));
    }),
    ("gone", |aside| drop(fs_err::remove_dir_all(aside))),
    ("the git directory gone", |aside| {
        let above = aside.parent().unwrap();
        if above.ends_with(".git") {
            drop(fs_err::rename(above, above.with_file_name("theirs")));
        }
    }),
    ("no list", |aside| {
        drop(fs_err::remove_file(aside.join("list")));
        drop(fs_err::create_dir_all(aside.join("list/e")));
    }),
    ("other names", |aside| {
        drop(fs_err::write(aside.join("list"), b"sandtable-aside 1 1\n\xff\n"));
        for name in (0..9).flat_map(|number| [format!("n{number}"), format!("o{number}")]) {
            if !aside.join(&name).exists() {
                drop(fs_err::create_dir_all(aside.join(name).join("e")));
            }
        }
    }),
];

/// How a turn goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Usual,
    Stopped,
    Killed,
}

fn aside(root: &Path) -> Option<PathBuf> {
    let found = [root.join(".git"), root.to_owned()].map(|folder| folder.join(".sandtable-rollback-one"));
    found.into_iter().find(|path| path.symlink_metadata().is_ok())
}

fn turn(scene: &Scene, act: Act, (end, moment): (End, u32)) -> Result<(), RollbackError> {
    let (step, stopped) = (Cell::new(0), Cell::new(false));
    let progress = || {
        step.set(step.get() + 1);
        if step.get() == moment
            && let Some(aside) = aside(&scene.root())
        {
            act(&aside);
            stopped.set(end == End::Stopped);
            if end == End::Killed {
                std::panic::resume_unwind(Box::new("killed"));
            }
        }
    };
    let cancelled = || stopped.get();
    let options = RollbackOptions { progress: &progress, cancelled: &cancelled, ..quick() };
    let turned = catch_unwind(AssertUnwindSafe(|| scene.roll(&options)));
    turned.map_or(Ok(()), |turned| turned.map(drop))
}

#[test]
fn what_others_put_into_the_directory_aside_never_keeps_a_turn_from_its_end() {
    for (what, act) in ACTS {
        for (end, moment) in [End::Usual, End::Stopped, End::Killed]
            .into_iter()
            .flat_map(|end| (1..14).map(move |at| (end, at)))
        {
            let dir = tempfile::tempdir().unwrap();
            let scene = edited(dir.path());
            fs_err::create_dir(dir.path().join("victim")).unwrap();
            fs_err::write(dir.path().join("victim/keep"), "x").unwrap();
            let git = moment % 2 == 0 || what.contains("git");
            if git {
                fs_err::create_dir(scene.root().join(".git")).unwrap();
            }
            let case = format!("{what}, {end:?} at {moment}, git: {git}");
            let turned = turn(&scene, act, (end, moment));
            let mended = scene.recover();
            assert!(mended.iter().all(|done| *done != Recovery::Missing), "{case}: {turned:?} {mended:?}");
            assert!(scene.journal_is_empty(), "{case}: {turned:?} {mended:?}");
            assert_eq!(aside(&scene.root()), None, "{case}");
            assert!(dir.path().join("victim/keep").exists(), "{case}");
        }
    }
}

#[test]
fn a_directory_that_can_be_removed_leaves_the_states_alone() {
    for (end, moment) in [(End::Usual, 4), (End::Stopped, 4), (End::Killed, 4), (End::Killed, 1)] {
        let dir = tempfile::tempdir().unwrap();
        let scene = edited(dir.path());
        let turned = turn(&scene, ACTS[0].1, (end, moment));
        scene.recover();
        let wanted = if end == End::Usual { &scene.new } else { &scene.old };
        assert_eq!(timeless(&look(&scene.root())), timeless(wanted), "{end:?} at {moment}: {turned:?}");
    }
}

#[test]
fn what_cannot_be_removed_gets_a_name_that_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let parent = sandtable_store::dir::open_named(dir.path()).unwrap();
    // Deeper than it is worth while.
    let mut deep = sandtable_store::dir::reopen(parent.as_fd()).unwrap();
    for level in 0..3000 {
        let name = if level == 0 { "aside" } else { "deeper" };
        rustix::fs::mkdirat(&deep, name, rustix::fs::Mode::RWXU).unwrap();
        deep = sandtable_store::dir::open_dir(deep.as_fd(), name.as_bytes()).unwrap();
    }
    let kept = clear_away(parent.as_fd(), b"aside", "one").unwrap().expect("a name");
    assert_eq!(kept, b"aside.sandtable-one");
    assert!(dir.path().join("aside.sandtable-one").is_dir() && !dir.path().join("aside").exists());
    sandtable_store::remove::remove_tree(&dir.path().join("aside.sandtable-one")).unwrap();
    assert_eq!(clear_away(parent.as_fd(), b"aside", "one").unwrap(), None, "it is not there");
}
