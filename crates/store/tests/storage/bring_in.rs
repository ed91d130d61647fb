//! The user's repository comes in, and nothing that happens there takes anything away again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::board::{Board, board, draft, extra};
use crate::git::Repository;
use sandtable_store::bring_in::{BringInOptions, BroughtIn, Way, bring_in, bring_in_exactly};
use sandtable_store::fsck::{Depth, fsck};
use sandtable_store::gc::{self, GcOptions};
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::meta::Snapshot;
use sandtable_store::object::{ObjectKind, ReadObjects as _};
use sandtable_store::objects::{Loose, Objects};
use sandtable_store::store::{Store, StoreError};

/// A repository with a history in packs, and with some of its newest tree in files of their own.
fn user_repository(kind: HashKind) -> (Repository, ObjectId) {
    let repository = Repository::new(kind);
    let old = repository.write(ObjectKind::Blob, b"what never changes\n");
    let mut text = String::new();
    // A commit of another repository.
    let module = "5".repeat(kind.bytes() * 2);
    let mut parent: Option<String> = None;
    let mut tree = String::new();
    for round in 0..8 {
        text.push_str(&format!("a line of round {round}\n").repeat(20));
        let blob = repository.write(ObjectKind::Blob, text.as_bytes());
        let sub = repository.run(&["mktree"], format!("100755 blob {blob}\trun\n").as_bytes());
        let sub = String::from_utf8(sub).unwrap().trim().to_owned();
        let lines = format!(
            "100644 blob {blob}\ta\n040000 tree {sub}\tsub\n160000 commit {module}\tmodule\n100644 blob {old}\told\n"
        );
        let made = repository.run(&["mktree", "--missing"], lines.as_bytes());
        tree = String::from_utf8(made).unwrap().trim().into();
        let message = format!("round {round}");
        let mut arguments = vec!["commit-tree", &tree, "-m", &message];
        if let Some(parent) = &parent {
            arguments.extend(["-p", parent]);
        }
        parent = Some(repository.text(&arguments));
        repository.run(&["update-ref", "refs/heads/main", parent.as_ref().unwrap()], b"");
        if round == 6 {
            repository.run(&["repack", "-adq"], b"");
            repository.run(&["prune-packed"], b"");
        }
    }
    (repository, tree.parse().unwrap())
}

fn stamps(dir: &Path) -> BTreeMap<String, (u64, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs_err::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                open.push(entry.path());
            }
            found.insert(entry.path().display().to_string(), (metadata.len(), metadata.modified().unwrap()));
        }
    }
    found
}

fn bring(store: &Store, from: &Path, tree: ObjectId, options: &BringInOptions) -> (BroughtIn, Snapshot) {
    let batch = store.begin().unwrap();
    let brought = bring_in(&batch, from, &[tree], options).unwrap();
    let extra = extra(&batch, "x");
    let snapshot = store.commit(batch, &draft("s", tree, extra)).unwrap();
    (brought, snapshot)
}

fn check_all(store: &Store) {
    let report = fsck(store, Depth::Deep).unwrap();
    assert_eq!(report.faults, []);
    let said = Repository::at(&store.git_dir()).run(&["fsck", "--strict", "--full", "--no-dangling"], b"");
    assert_eq!(String::from_utf8(said).unwrap(), "");
}

#[test]
fn every_way_brings_everything() {
    for (kind, first) in [
        (HashKind::Sha1, Way::Reflink),
        (HashKind::Sha256, Way::Reflink),
        (HashKind::Sha1, Way::HardLink),
        (HashKind::Sha1, Way::Copy),
        (HashKind::Sha256, Way::Copy),
    ] {
        let (user, tree) = user_repository(kind);
        let before = stamps(&user.path);
        let Board { store, dir: _dir } = board(kind);
        let options = BringInOptions { first, ..BringInOptions::default() };
        let (brought, snapshot) = bring(&store, &user.objects(), tree, &options);
        assert!(brought.way >= Some(first) && brought.way <= Some(Way::Copy), "{brought:?}");
        assert!(brought.copied > 0, "files of their own are copied: {brought:?}");
        assert!(!snapshot.borrowed);
        assert_eq!(stamps(&user.path), before, "the user's repository is only read");
        // The worst that can happen there.
        fs_err::remove_dir_all(&user.path).unwrap();
        check_all(&store);
        let again = store.begin().unwrap();
        assert!(again.contains(&tree));
        drop(again);
        gc::collect(&store, &GcOptions::default()).unwrap();
        check_all(&store);
        assert_eq!(store.objects().read(&tree).unwrap().kind, ObjectKind::Tree);
    }
}

#[test]
fn a_second_time_costs_nothing() {
    let (user, tree) = user_repository(HashKind::Sha1);
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    bring(&store, &user.objects(), tree, &BringInOptions::default());
    let batch = store.begin().unwrap();
    let brought = bring_in(&batch, &user.objects(), &[tree], &BringInOptions::default()).unwrap();
    assert_eq!((brought.way, brought.packs, brought.copied), (None, 0, 0));
}

#[test]
fn what_would_be_too_much_is_borrowed_and_says_so() {
    let (user, tree) = user_repository(HashKind::Sha1);
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let options = BringInOptions { first: Way::Copy, copy_limit: 10 };
    let (brought, snapshot) = bring(&store, &user.objects(), tree, &options);
    assert_eq!(brought.way, Some(Way::Borrow));
    assert!(snapshot.borrowed);
    check_all(&store);
    gc::collect(&store, &GcOptions::default()).unwrap();
    check_all(&store);
    // A history rewritten and cleaned up takes something away: that is said, with its name.
    fs_err::remove_dir_all(user.objects().join("pack")).unwrap();
    let store = Store::open(store.dir()).unwrap();
    let report = fsck(&store, Depth::Fast).unwrap();
    assert!(report.faults.iter().any(|fault| fault.to_string().contains("there is no object")), "{report:?}");
    assert!(gc::collect(&store, &GcOptions::default()).is_err(), "nothing is deleted from a damaged store");
}

#[test]
fn a_repository_that_borrows_itself_is_followed() {
    let (user, tree) = user_repository(HashKind::Sha1);
    let shared = Repository::new(HashKind::Sha1);
    let list = shared.objects().join("info/alternates");
    fs_err::write(list, format!("{}\n", user.objects().display())).unwrap();
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let (brought, _) = bring(&store, &shared.objects(), tree, &BringInOptions::default());
    assert!(brought.objects > 3);
    fs_err::remove_dir_all(&user.path).unwrap();
    check_all(&store);
}

#[test]
fn the_size_of_a_delta_is_that_of_what_it_makes() {
    let (user, _) = user_repository(HashKind::Sha1);
    let objects = Objects::new(&user.objects(), HashKind::Sha1, Loose::Read);
    let pack = Arc::clone(&objects.packs().unwrap()[0]);
    let mut deltas = 0;
    for place in pack.places().unwrap() {
        deltas += usize::from(!pack.stands_alone(place.offset).unwrap());
        let size = objects.read(&place.id).unwrap().data.len() as u64;
        assert_eq!(objects.packed_size(&place.id), Some(size));
        assert_eq!(objects.header(&place.id).unwrap().1, size);
    }
    assert!(deltas > 0, "there was no delta to look at");
    let loose = user.write(ObjectKind::Blob, b"in a file of its own");
    assert_eq!((objects.packed_size(&loose), objects.header(&loose).unwrap().1), (None, 20));
}

#[test]
fn what_is_asked_for_exactly_comes_in_alone() {
    let (user, tree) = user_repository(HashKind::Sha1);
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let batch = store.begin().unwrap();
    let options = BringInOptions { first: Way::Copy, ..BringInOptions::default() };
    let brought = bring_in_exactly(&batch, &user.objects(), &[tree, tree], &options).unwrap();
    assert_eq!((brought.objects, brought.copied, batch.objects()), (1, 1, 1));
    let missing = "5".repeat(40).parse().unwrap();
    let failed = bring_in_exactly(&batch, &user.objects(), &[missing], &options);
    assert!(matches!(failed, Err(StoreError::Read(_))), "{failed:?}");
}

#[test]
fn many_loose_objects_come_in_together() {
    let user = Repository::new(HashKind::Sha1);
    let content = |number: usize| format!("number {number}\n").repeat(number).into_bytes();
    let ids: Vec<ObjectId> = (0..60).map(|number| user.write(ObjectKind::Blob, &content(number))).collect();
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let batch = store.begin().unwrap();
    let brought = bring_in_exactly(&batch, &user.objects(), &ids, &BringInOptions::default()).unwrap();
    assert_eq!((brought.copied, batch.objects()), (60, 60));
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(batch.read(id).unwrap().data, content(number));
    }
    // One that is damaged stops it, by name.
    let bad = user.write(ObjectKind::Blob, b"soon to be damaged");
    let path = user.objects().join(&bad.to_string()[..2]).join(&bad.to_string()[2..]);
    fs_err::remove_file(&path).unwrap();
    fs_err::copy(user.objects().join(&ids[9].to_string()[..2]).join(&ids[9].to_string()[2..]), &path)
        .unwrap();
    let failed = bring_in_exactly(&batch, &user.objects(), &[bad], &BringInOptions::default());
    assert!(failed.unwrap_err().to_string().contains(&bad.to_string()));
}

#[test]
fn what_the_user_lacks_is_named() {
    let (user, _) = user_repository(HashKind::Sha1);
    let lines = format!("100644 blob {}\ta\n", "5".repeat(40));
    let tree = String::from_utf8(user.run(&["mktree", "--missing"], lines.as_bytes())).unwrap();
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let batch = store.begin().unwrap();
    let root = tree.trim().parse().unwrap();
    let failed = bring_in(&batch, &user.objects(), &[root], &BringInOptions::default());
    assert!(matches!(failed, Err(StoreError::Read(_))), "{failed:?}");
}
