//! What is no file, or no file of ours, in the place of a file of the store.

use std::path::Path;

use sandtable_store::fsck::{Depth, Fault, fsck};
use sandtable_store::gc::{self, GcOptions};
use sandtable_store::id::HashKind;
use sandtable_store::store::{FormatFault, Store, StoreError};

use crate::board::{Board, board, snapshot};

fn faults(store: &Store) -> Vec<Fault> {
    fsck(store, Depth::Fast).unwrap().faults
}

/// Puts a named pipe, and after it a file that is larger than any memory, in the place of one of the store's.
fn in_the_place_of(path: &Path, then: impl Fn(&str)) {
    let kept = fs_err::read(path).ok();
    let remove = || drop(fs_err::remove_file(path));
    remove();
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
    then("a named pipe");
    remove();
    fs_err::File::create(path).unwrap().set_len(1 << 42).unwrap();
    then("a huge file");
    remove();
    if let Some(kept) = kept {
        fs_err::write(path, kept).unwrap();
    }
}

#[test]
fn pipes_and_huge_files_in_the_place_of_ours_are_refused_at_once() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let made = snapshot(&store, "s", &[("a", b"x")]).unwrap();
    let dir = store.dir().to_owned();
    drop(store);
    for name in ["format", "source", "git/objects/info/alternates"] {
        in_the_place_of(&dir.join(name), |what| {
            let refused = Store::open(&dir).and_then(|store| Ok(store.objects().refresh()?));
            assert!(refused.is_err(), "{what} as `{name}`");
        });
    }
    assert_eq!(faults(&Store::open(&dir).unwrap()), []);
    // What is derived is made again, or named by the check.
    in_the_place_of(&dir.join(format!("git/refs/sandtable/snapshots/{}", made.id)), |what| {
        assert_eq!(faults(&Store::open(&dir).unwrap()), [], "{what}");
    });
    in_the_place_of(&dir.join("git/packed-refs"), |what| {
        assert_eq!(faults(&Store::open(&dir).unwrap()), [], "{what}");
    });
    fs_err::write(dir.join("lock"), "").unwrap();
    fs_err::remove_file(dir.join("lock")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("lock"), rustix::fs::Mode::RWXU).unwrap();
    assert!(Store::open(&dir).unwrap().begin().is_err());
}

#[test]
fn a_directory_in_the_place_of_a_ref_goes() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let made = snapshot(&store, "s", &[("a", b"x")]).unwrap();
    let place = store.git_dir().join(format!("refs/sandtable/extra/{}", made.id));
    for content in [None, Some("in it")] {
        fs_err::remove_file(&place).unwrap();
        fs_err::create_dir(&place).unwrap();
        if let Some(content) = content {
            fs_err::write(place.join("file"), content).unwrap();
        }
        let opened = Store::open(store.dir()).unwrap();
        assert_eq!(faults(&opened), []);
        assert!(place.is_file());
    }
    fs_err::create_dir_all(store.dir().join("tmp/1-1-1.ref/below")).unwrap();
    fs_err::create_dir_all(store.git_dir().join("refs/sandtable/snapshots").join("f".repeat(40))).unwrap();
    fs_err::create_dir(store.git_dir().join("packed-refs")).unwrap();
    let opened = Store::open(store.dir()).unwrap();
    gc::collect(&opened, &GcOptions::default()).unwrap();
    assert_eq!(faults(&Store::open(store.dir()).unwrap()), []);
}

#[test]
fn a_format_that_is_not_ours_is_told_from_one_that_is_lost() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let dir = store.dir().to_owned();
    drop(store);
    let format = dir.join("format");
    let fault = || match Store::open(&dir) {
        Err(StoreError::Format { fault, .. }) => fault,
        other => panic!("{other:?}"),
    };
    for newer in ["sandtable-store 2\nsha1\n", "sandtable-store 12\nwhatever it says\n"] {
        fs_err::write(&format, newer).unwrap();
        assert!(matches!(fault(), FormatFault::Other(_)), "{newer}");
    }
    for damaged in ["", "sandtable-store 1\n", "sandtable-store 1\nsha9\n", "sandtable-store x\n", "\0\0\0"] {
        fs_err::write(&format, damaged).unwrap();
        assert_eq!(fault(), FormatFault::Damaged, "{damaged:?}");
    }
    fs_err::remove_file(&format).unwrap();
    assert_eq!(fault(), FormatFault::Missing);
    fs_err::remove_dir_all(&dir).unwrap();
    fs_err::create_dir(&dir).unwrap();
    assert!(matches!(Store::open(&dir), Err(StoreError::Missing(_))), "an empty directory is no store");
}
