//! By what a directory is known that something was broken off in.

use std::path::Path;

use sandtable_store::rollback::{Recovery, RollbackError};

use crate::rollback::{FIXED, Scene, broken_off, edited, recovered};
use crate::states::{look, timeless};

#[test]
fn a_record_waits_for_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    let scene = edited(dir.path());
    assert!(!broken_off(dir.path(), FIXED, 10));
    let elsewhere = dir.path().join("elsewhere");
    fs_err::rename(scene.root(), &elsewhere).unwrap();
    assert_eq!(scene.recover(), [Recovery::Missing]);
    fs_err::create_dir(scene.root()).unwrap();
    assert_eq!(scene.recover(), [Recovery::Missing], "another directory of the same name");
    assert!(look(&scene.root()).is_empty());
    fs_err::remove_dir(scene.root()).unwrap();
    fs_err::rename(elsewhere, scene.root()).unwrap();
    assert_eq!(scene.recover(), [Recovery::Undone]);
    assert_eq!(timeless(&look(&scene.root())), timeless(&scene.old));
    assert!(scene.journal_is_empty());
}

/// The record as it is when the device has another number now.
fn renumber(scene: &Scene) {
    let record = scene.dir.join("journal/one");
    let text = fs_err::read_to_string(&record).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (major, rest) = lines[2].split_once(' ').unwrap();
    lines[2] = format!("{} {rest}", major.parse::<u32>().unwrap() + 1);
    fs_err::write(record, lines.join("\n") + "\n").unwrap();
}

#[test]
fn a_record_knows_its_directory_though_the_device_has_another_number() {
    let dir = tempfile::tempdir().unwrap();
    let scene = edited(dir.path());
    fs_err::create_dir(scene.root().join(".git")).unwrap();
    assert!(!broken_off(dir.path(), FIXED, 10));
    let before = fs_err::read(dir.path().join("journal/one")).unwrap();
    renumber(&scene);
    fs_err::write(scene.root().join(".git/index.lock"), "").unwrap();
    let waits = recovered(&scene, &|_| Ok(()));
    assert!(matches!(waits.result, Err(RollbackError::GitAtWork)), "{waits:?}");
    assert_eq!(fs_err::read(dir.path().join("journal/one")).unwrap(), before, "it has the new number");
    renumber(&scene);
    fs_err::remove_file(scene.root().join(".git/index.lock")).unwrap();
    assert_eq!(scene.recover(), [Recovery::Undone]);
    fs_err::remove_dir(scene.root().join(".git")).unwrap();
    assert_eq!(timeless(&look(&scene.root())), timeless(&scene.old));
}

#[test]
fn another_directory_is_not_taken_for_it_whatever_the_number() {
    let dir = tempfile::tempdir().unwrap();
    let scene = edited(dir.path());
    assert!(!broken_off(dir.path(), FIXED, 10));
    renumber(&scene);
    let (ours, elsewhere) = (scene.root().join(".sandtable-rollback-one"), dir.path().join("elsewhere"));
    fs_err::rename(&ours, &elsewhere).unwrap();
    assert_eq!(scene.recover(), [Recovery::Missing], "nothing of ours is there");
    fs_err::rename(scene.root(), dir.path().join("moved")).unwrap();
    fs_err::create_dir(scene.root()).unwrap();
    fs_err::rename(&elsewhere, &ours).unwrap();
    assert_eq!(scene.recover(), [Recovery::Missing], "another inode");
    assert!(ours.exists());
}

#[test]
fn it_lies_where_git_does_not_look() {
    let dir = tempfile::tempdir().unwrap();
    let scene = edited(dir.path());
    fs_err::create_dir(scene.root().join(".git")).unwrap();
    assert!(!broken_off(dir.path(), FIXED, 10));
    let ours = |place: &Path| {
        let mut names = fs_err::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name());
        names.any(|name| name.to_string_lossy().starts_with(".sandtable-rollback-"))
    };
    assert!(ours(&scene.root().join(".git")) && !ours(&scene.root()));
    assert_eq!(scene.recover(), [Recovery::Undone]);
    assert!(!ours(&scene.root().join(".git")));
}
