//! A stat cache and the packs that it speaks of.

use std::os::fd::AsFd as _;
use std::path::Path;

use sandtable_store::dir::{open_named, stat_fd};
use sandtable_store::fsck::{Depth, fsck};
use sandtable_store::gc::{self, GcOptions};
use sandtable_store::id::HashKind;
use sandtable_store::ignore::Rules;
use sandtable_store::meta::{HeadChange, OperationDraft, OperationKind};
use sandtable_store::snapshot::{SnapshotOptions, SnapshotOutcome, Store as Ends, take};
use sandtable_store::statcache::Subject;
use sandtable_store::store::{Batch, Store, write_extra};

use crate::board::{Board, at, board, draft};

const FILES: u64 = 12;

/// Four directories of three files, one of them a level further down, and quiet for longer than a tick.
fn source(dir: &Path) -> std::path::PathBuf {
    let root = dir.join("source");
    for place in ["a", "b", "c", "c/d"] {
        fs_err::create_dir_all(root.join(place)).unwrap();
        for name in ["1", "2", "3"] {
            fs_err::write(root.join(place).join(name), format!("{place} {name}\n")).unwrap();
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(30));
    root
}

/// Walks with the cache of the walk before, and keeps a new one.
fn walk(batch: &Batch<'_>, root: &Path) -> SnapshotOutcome {
    let dir = open_named(root).unwrap();
    let subject = Subject::new(&stat_fd(dir.as_fd()).unwrap());
    let old = batch.store().cache("s", subject);
    let mut new = batch.store().new_cache("s", subject, old.as_ref()).unwrap();
    let rules = Rules::default();
    let options = SnapshotOptions { cache: old.as_ref(), ..SnapshotOptions::all(&rules, &|| false) };
    let ends = Ends { objects: batch, sink: batch };
    let outcome = take(dir.as_fd(), ends, &options, Some(&mut new.writer)).unwrap();
    new.keep(batch.store()).unwrap();
    outcome
}

/// Walks and commits.
fn record(store: &Store, root: &Path) -> SnapshotOutcome {
    let batch = store.begin().unwrap();
    let outcome = walk(&batch, root);
    let extra = write_extra(&batch, &outcome.state).unwrap();
    store.commit(batch, &draft("s", outcome.state.tree, extra)).unwrap();
    outcome
}

fn is_sound(store: &Store) {
    assert_eq!(fsck(store, Depth::Deep).unwrap().faults, []);
}

#[test]
fn what_the_cache_vouches_for_is_neither_read_nor_written() {
    let Board { dir, store } = board(HashKind::Sha1);
    let root = source(dir.path());
    let first = record(&store, &root);
    assert_eq!((first.counts.files_read, first.counts.files_known), (FILES, 0));
    // The second finds everything in a pack, the third need not look.
    for _ in 0..2 {
        let batch = store.begin().unwrap();
        let again = walk(&batch, &root);
        assert_eq!((again.counts.files_read, again.counts.files_known), (0, FILES));
        assert_eq!((again.counts.entries, again.state), (first.counts.entries, first.state));
        assert_eq!(batch.objects(), 0);
    }
    fs_err::write(root.join("c/d/2"), "C/D 2\n").unwrap();
    fs_err::remove_file(root.join("a/3")).unwrap();
    fs_err::write(root.join("b/0"), "new\n").unwrap();
    let warm = record(&store, &root);
    assert_eq!(warm.counts.files_read, 2);
    fs_err::remove_dir_all(store.dir().join("cache")).unwrap();
    fs_err::create_dir(store.dir().join("cache")).unwrap();
    let cold = record(&store, &root);
    assert_eq!((warm.state, cold.counts.files_known), (cold.state, 0));
    is_sound(&store);
}

#[test]
fn a_cache_vouches_for_nothing_when_a_pack_is_gone() {
    let Board { dir, store } = board(HashKind::Sha1);
    let root = source(dir.path());
    let first = record(&store, &root);
    record(&store, &root);
    assert_eq!(record(&store, &root).counts.files_read, 0);
    // All that was recorded is let go and collected; the cache is still there.
    let removed = OperationDraft {
        subject: "s".to_owned(),
        kind: OperationKind::Remove,
        at: at(1),
        head: HeadChange::Remove,
        details: String::new(),
    };
    store.meta().append(&removed).unwrap();
    let options = GcOptions { copy_below: 0, ..GcOptions::default() };
    gc::collect(&store, &options).unwrap();
    drop(store);
    let store = Store::open(&dir.path().join("store")).unwrap();
    let after = record(&store, &root);
    assert_eq!((after.counts.files_read, after.state), (FILES, first.state));
    is_sound(&store);
}

#[test]
fn what_was_only_being_written_is_not_vouched_for() {
    let Board { dir, store } = board(HashKind::Sha1);
    let root = source(dir.path());
    for _ in 0..3 {
        // Thrown away, though the cache is kept.
        let batch = store.begin().unwrap();
        assert_eq!(walk(&batch, &root).counts.files_read, FILES);
    }
    record(&store, &root);
    is_sound(&store);
}
