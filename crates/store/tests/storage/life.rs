//! The life of a store: snapshots, operations, undo, collection, checks.

use crate::board::{self, Board, at, board, remove, snapshot};
use crate::git::Repository;
use proptest::prelude::*;
use sandtable_store::fsck::{Depth, Report, fsck};
use sandtable_store::gc::{self, GcOptions, MOST_PACKS};
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::meta::{Durability, Filter, HeadChange, Meta, MetaError, OperationDraft};
use sandtable_store::object::{ObjectKind, ReadObjects as _, WriteError, WriteObjects as _};
use sandtable_store::store::{SnapshotDraft, Store, StoreError};

pub(crate) fn clean(store: &Store) -> Report {
    let report = fsck(store, Depth::Deep).unwrap();
    assert_eq!(report.faults, []);
    let said = Repository::at(&store.git_dir()).run(&["fsck", "--strict", "--full", "--no-dangling"], b"");
    assert_eq!(String::from_utf8(said).unwrap(), "");
    report
}

#[test]
fn a_hundred_snapshots_are_git_s() {
    for hash in [HashKind::Sha1, HashKind::Sha256] {
        let Board { dir, store } = board(hash);
        let mut made = Vec::new();
        for number in 0..100_u32 {
            let text = format!("state {number}\n");
            made.push(snapshot(&store, "s", &[("a", text.as_bytes()), ("b", b"always")]).unwrap());
            gc::roll_up(&store).unwrap();
        }
        let git = Repository::at(&store.git_dir());
        let newest = made.last().unwrap().id.to_string();
        assert_eq!(git.text(&["log", "--format=%s", &newest]).lines().count(), 100);
        assert_eq!(git.text(&["rev-list", "--all"]).lines().count(), 100);
        assert_eq!(git.text(&["show", &format!("{newest}:a")]), "state 99");
        let difference = git.text(&["diff", "--numstat", &format!("{newest}~1"), &newest]);
        assert_eq!(difference, "1\t1\ta");
        // Takes what a roll-up could not remove, because some other test was starting git at that moment.
        assert_eq!(
            gc::collect(&store, &GcOptions { copy_below: 0, ..GcOptions::default() }).unwrap().snapshots,
            []
        );
        let report = clean(&store);
        assert_eq!((report.snapshots, report.operations), (100, 100));
        assert!(report.packs <= MOST_PACKS, "{}", report.packs);
        assert_eq!(report.left_over, Vec::<String>::new());
        drop(store);
        let store = Store::open(&dir.path().join("store")).unwrap();
        assert_eq!(store.meta().snapshots().unwrap(), made);
        assert_eq!(store.source().to_str(), Some("/some/source"));
        for snapshot in made {
            assert_eq!(store.objects().read(&snapshot.tree).unwrap().kind, ObjectKind::Tree);
        }
    }
}

#[test]
fn what_is_there_is_not_written_again() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let data = vec![7; 100_000];
    let first = snapshot(&store, "one", &[("a", &data)]).unwrap();
    let batch = store.begin().unwrap();
    assert_eq!(board::tree(&batch, &[("a", &data)]), first.tree);
    assert_eq!(batch.objects(), 0);
    drop(batch);
    let second = snapshot(&store, "two", &[("a", &data)]).unwrap();
    assert_eq!(second.state, first.state, "equal states are equal");
    assert_ne!(second.extra, first.extra);
    // The very same snapshot once more needs no pack at all.
    let packs = store.meta().packs().unwrap().len();
    let batch = store.begin().unwrap();
    let draft = board::draft("three", first.tree, first.extra);
    let third = store.commit(batch, &draft).unwrap();
    assert_eq!((third.id, store.meta().packs().unwrap().len()), (first.id, packs));
    assert_eq!(store.meta().head("three").unwrap().unwrap().snapshot, first.id);
    clean(&store);
}

#[test]
fn another_process_s_packs_are_seen() {
    let Board { dir, store } = board(HashKind::Sha1);
    snapshot(&store, "s", &[("a", b"1")]).unwrap();
    let other = Store::open(&dir.path().join("store")).unwrap();
    let made = snapshot(&other, "s", &[("a", b"2")]).unwrap();
    assert!(store.objects().read(&made.id).is_ok());
}

#[test]
fn undo_and_redo_go_over_the_same_states() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let states: Vec<_> =
        (0..4_u8).map(|number| snapshot(&store, "s", &[("a", &[number])]).unwrap().id).collect();
    snapshot(&store, "other", &[("a", b"x")]).unwrap();
    let meta = store.meta();
    let undo =
        || meta.undo("s").and_then(|made| meta.record(&made, at(2), "").map(|done| done.after.unwrap()));
    let redo =
        || meta.redo("s").and_then(|made| meta.record(&made, at(2), "").map(|done| done.after.unwrap()));
    assert!(matches!(redo(), Err(MetaError::NoMove { .. })));
    assert_eq!([undo().unwrap(), undo().unwrap(), undo().unwrap()], [states[2], states[1], states[0]]);
    assert!(matches!(undo(), Err(MetaError::NoMove { .. })), "the first state is where it began");
    assert_eq!([redo().unwrap(), redo().unwrap()], [states[1], states[2]]);
    assert_eq!(undo().unwrap(), states[1]);
    assert_eq!([redo().unwrap(), redo().unwrap()], [states[2], states[3]]);
    assert!(matches!(redo(), Err(MetaError::NoMove { .. })));
    assert_eq!(undo().unwrap(), states[2]);
    // Something new: the way forth is gone, the way back leads over it.
    let new = snapshot(&store, "s", &[("a", b"new")]).unwrap().id;
    assert!(matches!(redo(), Err(MetaError::NoMove { .. })));
    assert_eq!(
        [undo().unwrap(), undo().unwrap(), redo().unwrap(), redo().unwrap()],
        [states[2], states[1], states[2], new]
    );
    // A plan is no good any more once something else happened.
    let stale = meta.undo("s").unwrap();
    snapshot(&store, "s", &[("a", b"newer")]).unwrap();
    assert!(matches!(meta.record(&stale, at(3), ""), Err(MetaError::Moved(_))));
    assert_eq!(meta.chain_fault().unwrap(), None);
    let of_other = Filter { subject: Some("other".to_owned()), ..Filter::default() };
    assert_eq!(meta.operations(&of_other).unwrap().len(), 1);
    let last = Filter { newest: Some(2), ..Filter::default() };
    let numbers: Vec<i64> =
        meta.operations(&last).unwrap().iter().map(|operation| operation.number).collect();
    let all = meta.operations(&Filter::default()).unwrap();
    let count = i64::try_from(all.len()).unwrap();
    assert_eq!(numbers, [count - 1, count]);
    let after = Filter { after: 3, ..Filter::default() };
    assert_eq!(meta.operations(&after).unwrap()[0].number, 4);
    clean(&store);
}

#[test]
fn prefixes_name_snapshots() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let made: Vec<String> = (0..40_u8)
        .map(|number| snapshot(&store, &format!("s{number}"), &[("a", &[number])]).unwrap().id.to_string())
        .collect();
    let meta = store.meta();
    for id in &made {
        assert_eq!(meta.resolve_prefix(id).unwrap().to_string(), *id);
        assert_eq!(meta.resolve_prefix(&id[..12].to_uppercase()).unwrap().to_string(), *id);
    }
    // Two that share their beginning do not come by themselves.
    let database = rusqlite::Connection::open(store.dir().join("meta.db")).unwrap();
    let twins = "INSERT INTO snapshots SELECT unhex(?1), operation, subject, at, tree, extra, state, consistency, message, borrowed
        FROM snapshots LIMIT 1";
    for end in ["1", "2"] {
        database.execute(twins, [format!("{}{end}", "abcd".repeat(10).split_at(39).0)]).unwrap();
    }
    let Err(MetaError::Ambiguous { candidates, .. }) = meta.resolve_prefix("ABCDabcd") else {
        panic!("two fit")
    };
    assert_eq!(candidates.len(), 2);
    for wrong in ["", "abc", "zzzz", "0000000000", &"0".repeat(41), "-1234"] {
        assert!(matches!(meta.resolve_prefix(wrong), Err(MetaError::Unknown(_))), "{wrong}");
    }
}

#[test]
fn collection_takes_what_nobody_needs() {
    let Board { dir, store } = board(HashKind::Sha1);
    let big = |seed| board::noise(seed, 50_000);
    let kept = snapshot(&store, "kept", &[("a", &big(1)), ("shared", &big(9))]).unwrap();
    let first = snapshot(&store, "gone", &[("a", &big(2)), ("shared", &big(9))]).unwrap();
    let last = snapshot(&store, "gone", &[("a", &big(3))]).unwrap();
    let forked = snapshot(&store, "gone too", &[("a", &big(4))]).unwrap();
    let options = GcOptions::default();
    let plan = gc::plan(&store, &options).unwrap();
    assert_eq!((plan.snapshots.len(), plan.drop.len(), plan.copy.len()), (0, 0, 0));
    remove(&store, "gone");
    remove(&store, "gone too");
    let holder = Store::open(store.dir()).unwrap();
    assert_eq!(holder.hold(&forked.id).unwrap(), forked);
    let plan = gc::plan(&store, &options).unwrap();
    assert_eq!(plan.snapshots.len(), 2);
    let outcome = gc::collect(&store, &options).unwrap();
    let mut gone = outcome.snapshots.clone();
    gone.sort();
    let mut expected = vec![first.id, last.id];
    expected.sort();
    assert_eq!(gone, expected);
    assert!(outcome.bytes_freed > 1000 && outcome.packs_removed == 2, "{outcome:?}");
    assert!(store.objects().read(&kept.tree).is_ok());
    assert!(store.objects().read(&forked.tree).is_ok(), "a lease holds it");
    assert!(store.objects().read(&last.tree).is_err());
    clean(&store);
    drop(holder);
    let outcome = gc::collect(&store, &options).unwrap();
    assert_eq!(outcome.snapshots, [forked.id]);
    let report = clean(&store);
    assert_eq!((report.snapshots, report.packs), (1, 1));
    assert!(matches!(store.meta().snapshot(&last.id), Err(MetaError::Unknown(_))));
    assert_eq!(store.meta().chain_fault().unwrap(), None);
    // Another who had the store open all along does not rely on what is gone.
    let other = Store::open(&dir.path().join("store")).unwrap();
    let again = snapshot(&other, "again", &[("a", &big(3))]).unwrap();
    assert_eq!(again.tree, last.tree);
    clean(&store);
}

#[test]
fn stale_knowledge_does_not_lose_anything() {
    let Board { dir, store } = board(HashKind::Sha1);
    let old = snapshot(&store, "gone", &[("a", b"content that goes and comes back")]).unwrap();
    snapshot(&store, "kept", &[("a", b"1")]).unwrap();
    assert!(store.objects().contains(&old.tree));
    remove(&store, "gone");
    let other = Store::open(&dir.path().join("store")).unwrap();
    assert_eq!(gc::collect(&other, &GcOptions::default()).unwrap().snapshots.len(), 1);
    // `store` still has the deleted pack open, and must write its content again all the same.
    let back = snapshot(&store, "back", &[("a", b"content that goes and comes back")]).unwrap();
    assert_eq!(back.tree, old.tree);
    let fresh = Store::open(&dir.path().join("store")).unwrap();
    assert!(fresh.objects().read(&back.tree).is_ok());
    clean(&fresh);
}

#[test]
fn mostly_dead_packs_are_copied() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let noise = |seed| board::noise(seed, 200_000);
    // One pack with much that goes and little that stays.
    snapshot(&store, "gone", &[("a", &noise(1)), ("b", &noise(2)), ("small", b"stays")]).unwrap();
    let kept = snapshot(&store, "kept", &[("small", b"stays")]).unwrap();
    remove(&store, "gone");
    let plan = gc::plan(&store, &GcOptions::default()).unwrap();
    assert_eq!((plan.copy.len(), plan.drop.len()), (1, 0));
    let outcome = gc::collect(&store, &GcOptions::default()).unwrap();
    assert!(outcome.bytes_freed > 100_000, "{outcome:?}");
    assert!(store.room().unwrap().used < 10_000);
    assert!(store.objects().read(&kept.tree).is_ok());
    clean(&store);
}

#[test]
fn a_writer_holds_collection_off() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    snapshot(&store, "gone", &[("a", b"x")]).unwrap();
    remove(&store, "gone");
    let batch = store.begin().unwrap();
    let options = GcOptions { wait: std::time::Duration::ZERO, ..GcOptions::default() };
    assert!(gc::collect(&store, &options).unwrap().deferred);
    let tree = board::tree(&batch, &[("a", b"x")]);
    assert_eq!(batch.objects(), 0, "it relies on what only a removed subject has");
    let extra = board::extra(&batch, "new");
    store.commit(batch, &board::draft("new", tree, extra)).unwrap();
    let outcome = gc::collect(&store, &options).unwrap();
    assert!(!outcome.deferred);
    clean(&store);
}

#[test]
fn quota_and_room_are_asked_before_writing() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    snapshot(&store, "s", &[("a", b"x")]).unwrap();
    store.set_quota(Some(store.room().unwrap().used + 2000)).unwrap();
    let batch = store.begin().unwrap();
    let large = batch.write_blob(2 << 20, &mut std::io::repeat(1));
    assert!(matches!(large, Err(WriteError::Quota { .. })), "{large:?}");
    let noise = board::noise(1, 4000);
    batch.write(ObjectKind::Blob, &noise).unwrap();
    assert!(matches!(batch.write(ObjectKind::Blob, b"one more"), Err(WriteError::Quota { .. })));
    drop(batch);
    store.set_quota(None).unwrap();
    store.set_kept_free(Some(u64::MAX)).unwrap();
    let batch = store.begin().unwrap();
    assert!(matches!(batch.write(ObjectKind::Blob, b"anything"), Err(WriteError::NoSpace { .. })));
    drop(batch);
    store.set_kept_free(Some(0)).unwrap();
    snapshot(&store, "s", &[("a", b"y")]).unwrap();
    clean(&store);
}

#[test]
fn every_tier_is_readable_and_can_be_synced() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    for (number, durability) in
        [Durability::Batched, Durability::Volatile, Durability::Durable].into_iter().enumerate()
    {
        let batch = store.begin().unwrap();
        let tree = board::tree(&batch, &[("a", &[u8::try_from(number).unwrap()])]);
        let extra = board::extra(&batch, "x");
        store.commit(batch, &SnapshotDraft { durability, ..board::draft("s", tree, extra) }).unwrap();
    }
    let unsynced = || store.meta().packs().unwrap().iter().filter(|pack| pack.unsynced.is_some()).count();
    assert_eq!(unsynced(), 2);
    store.sync().unwrap();
    assert_eq!(unsynced(), 0);
    clean(&store);
}

#[test]
fn a_draft_must_be_complete() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let batch = store.begin().unwrap();
    let tree = board::tree(&batch, &[("a", b"x")]);
    assert!(matches!(store.commit(batch, &board::draft("s", tree, tree)), Err(StoreError::Extra { .. })));
    let batch = store.begin().unwrap();
    let extra = board::extra(&batch, "x");
    assert!(matches!(store.commit(batch, &board::draft("s", tree, extra)), Err(StoreError::Draft(_))));
    assert!(store.meta().snapshots().unwrap().is_empty());
    assert_eq!(store.room().unwrap().used, 0, "nothing is left behind");
}

#[test]
fn leftovers_of_the_dead_go_and_refs_come_back() {
    let Board { dir, store } = board(HashKind::Sha1);
    let made = snapshot(&store, "s", &[("a", b"x")]).unwrap();
    let tmp = dir.path().join("store/tmp");
    fs_err::write(tmp.join("4194305-1-0.pack"), "x").unwrap();
    let batch = store.begin().unwrap();
    fs_err::remove_dir_all(store.git_dir().join("refs/sandtable")).unwrap();
    let store = Store::open(&dir.path().join("store")).unwrap();
    assert_eq!(fs_err::read_dir(&tmp).unwrap().count(), 1, "what a living process writes stays");
    drop(batch);
    assert_eq!(fs_err::read_dir(&tmp).unwrap().count(), 0);
    let git = Repository::at(&store.git_dir());
    assert_eq!(
        git.text(&["rev-parse", &format!("refs/sandtable/snapshots/{}", made.id)]),
        made.id.to_string()
    );
    clean(&store);
}

/// As a collection leaves it that is killed after the rows are gone and before the refs are.
#[test]
fn refs_of_snapshots_that_are_gone_go_with_the_next_opening() {
    let Board { dir, store } = board(HashKind::Sha1);
    let gone = snapshot(&store, "gone", &[("a", b"x")]).unwrap();
    let stays = snapshot(&store, "stays", &[("a", b"y")]).unwrap();
    let refs = ["snapshots", "extra"].map(|kind| {
        let path = store.git_dir().join("refs/sandtable").join(kind).join(gone.id.to_string());
        (path.clone(), fs_err::read(path).unwrap())
    });
    remove(&store, "gone");
    gc::collect(&store, &GcOptions { copy_below: 0, ..GcOptions::default() }).unwrap();
    clean(&store);
    for (path, text) in &refs {
        fs_err::write(path, text).unwrap();
    }
    assert_eq!(fsck(&store, Depth::Fast).unwrap().faults.len(), 2, "a check names them");
    fs_err::write(dir.path().join("store/removing"), "").unwrap();
    let store = Store::open(&dir.path().join("store")).unwrap();
    assert!(!dir.path().join("store/removing").exists());
    let git = Repository::at(&store.git_dir());
    let listed = git.text(&["for-each-ref", "--format=%(refname:lstrip=3)", "refs/sandtable/snapshots"]);
    assert_eq!(listed, stays.id.to_string());
    clean(&store);
}

#[test]
fn one_of_two_makes_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er/store");
    std::thread::scope(|scope| {
        let open = || Store::open_or_create(&path, "/s".as_ref(), HashKind::Sha1).unwrap();
        let all: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
        for one in all {
            one.join().unwrap();
        }
    });
    assert!(matches!(Store::create(&path, "/s".as_ref(), HashKind::Sha1), Err(StoreError::Exists(_))));
    assert!(matches!(Store::open(&dir.path().join("none")), Err(StoreError::Missing(_))));
    fs_err::write(path.join("format"), "sandtable-store 2\nsha1\n").unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::Format { .. })));
    assert_eq!(fs_err::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn what_a_power_cut_took_is_said() {
    let Board { dir, store } = board(HashKind::Sha1);
    let path = dir.path().join("store");
    let volatile = |subject: &str, content: &[u8]| {
        let batch = store.begin().unwrap();
        let tree = board::tree(&batch, &[("a", content)]);
        let extra = board::extra(&batch, subject);
        let parents = store.meta().head(subject).unwrap().map(|head| head.snapshot).into_iter().collect();
        let draft =
            SnapshotDraft { parents, durability: Durability::Batched, ..board::draft(subject, tree, extra) };
        store.commit(batch, &draft).unwrap()
    };
    let safe = snapshot(&store, "s", &[("a", b"safe")]).unwrap();
    let reached = volatile("s", b"reached the disk");
    let names = |store: &Store| -> Vec<String> {
        store.meta().packs().unwrap().into_iter().map(|pack| pack.name).collect()
    };
    let before = names(&store);
    volatile("s", b"was cut off");
    volatile("other", b"was cut off too");
    // As if the machine had been started again, with half of each new pack on disk.
    for name in names(&store).into_iter().filter(|name| !before.contains(name)) {
        let file = path.join(format!("git/objects/pack/{name}.pack"));
        let half = fs_err::read(&file).unwrap()[..20].to_vec();
        fs_err::remove_file(&file).unwrap();
        fs_err::write(&file, half).unwrap();
    }
    drop(store);
    let database = rusqlite::Connection::open(path.join("meta.db")).unwrap();
    database.execute_batch("UPDATE packs SET unsynced = 'another' WHERE unsynced <> ''").unwrap();
    drop(database);
    let store = Store::open(&path).unwrap();
    clean(&store);
    assert_eq!(store.meta().head("s").unwrap().unwrap().snapshot, reached.id);
    assert!(matches!(store.meta().undo("s"), Err(MetaError::NoMove { .. })), "not into what is lost");
    assert_eq!(store.meta().head("other").unwrap(), None);
    let kinds: Vec<String> = store
        .meta()
        .operations(&Filter::default())
        .unwrap()
        .into_iter()
        .map(|operation| operation.kind.to_string())
        .collect();
    assert_eq!(kinds, ["snapshot", "snapshot", "snapshot", "snapshot", "lost", "lost"]);
    let left: Vec<_> = store.meta().snapshots().unwrap().into_iter().map(|snapshot| snapshot.id).collect();
    assert_eq!(left, [safe.id, reached.id]);
    assert!(store.meta().packs().unwrap().iter().all(|pack| pack.unsynced.is_none()));
}

#[test]
fn a_ref_that_was_cut_off_is_written_again() {
    let Board { dir, store } = board(HashKind::Sha1);
    let made = snapshot(&store, "s", &[("a", b"x")]).unwrap();
    fs_err::write(store.git_dir().join(format!("refs/sandtable/extra/{}", made.id)), "").unwrap();
    drop(store);
    clean(&Store::open(&dir.path().join("store")).unwrap());
}

/// What undo and redo do, told with two lists.
#[derive(Default)]
struct Model {
    at: Option<u8>,
    back: Vec<u8>,
    forth: Vec<u8>,
}

impl Model {
    fn set(&mut self, state: u8) {
        if self.at == Some(state) {
            return;
        }
        self.back.extend(self.at.replace(state));
        self.forth.clear();
    }

    fn undo(&mut self) -> Option<u8> {
        let to = self.back.pop()?;
        self.forth.extend(self.at.replace(to));
        Some(to)
    }

    fn redo(&mut self) -> Option<u8> {
        let to = self.forth.pop()?;
        self.back.extend(self.at.replace(to));
        Some(to)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn undo_and_redo_are_two_stacks(steps in prop::collection::vec(0..9_u8, 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let meta = Meta::create(&dir.path().join("meta.db"), HashKind::Sha1).unwrap();
        let id = |state: u8| ObjectId::from_bytes(&[state; 20]).unwrap();
        let mut model = Model::default();
        for step in steps {
            let (made, expected) = match step {
                0..3 => {
                    model.set(step);
                    let head = HeadChange::Set(id(step));
                    let (subject, kind) = ("s".to_owned(), "set".into());
                    meta.append(&OperationDraft { subject, kind, at: at(1), head, details: String::new() }).unwrap();
                    continue;
                }
                3..7 => (meta.undo("s"), model.undo()),
                _ => (meta.redo("s"), model.redo()),
            };
            prop_assert_eq!(made.as_ref().ok().map(|made| made.to), expected.map(id));
            if let Ok(made) = made {
                meta.record(&made, at(2), "").unwrap();
            }
            prop_assert_eq!(meta.head("s").unwrap().map(|head| head.snapshot), model.at.map(id));
        }
        prop_assert_eq!(meta.chain_fault().unwrap(), None);
    }
}
