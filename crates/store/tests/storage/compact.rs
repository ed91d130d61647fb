//! Packs that are made compact: smaller, readable by stock git, and nothing lost on the way.

use std::collections::BTreeMap;
use std::time::Duration;

use sandtable_store::gc::{self, Compacted, GcOptions};
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::meta::Filter;
use sandtable_store::object::{Object, ReadObjects as _};
use sandtable_store::store::Store;

use crate::board::{self, Board, board, noise, snapshot};
use crate::git::Repository;
use crate::life::clean;

/// A text of which line `number` is another than in all others.
fn text(number: u64) -> Vec<u8> {
    let line = |line: u64| {
        let word = if line == number % 300 {
            format!("changed {number}")
        } else {
            format!("{}", line * 7919 % 1000)
        };
        format!("line {line} says {word}\n")
    };
    (0..300).map(line).collect::<String>().into_bytes()
}

/// A state that differs from the one before in a line, in an insertion among what does not compress, and at its end.
fn change(store: &Store, number: u64) {
    let (text, fixed) = (text(number), noise(7, 30_000));
    let inserted = [&fixed[..9000], &noise(number + 100, 40), &fixed[9000..]].concat();
    let growing: Vec<u8> = (0..=number).flat_map(text_line).collect();
    let others: Vec<(String, Vec<u8>)> = (0..40).map(|file| (format!("f{file}"), noise(file, 50))).collect();
    let mut files: Vec<(&str, &[u8])> =
        vec![("text.c", &text), ("inserted", &inserted), ("growing.md", &growing)];
    files.extend(others.iter().map(|(name, data)| (name.as_str(), data.as_slice())));
    snapshot(store, "s", &files).unwrap();
}

fn text_line(number: u64) -> Vec<u8> {
    format!("the line that came with state {number}\n").into_bytes()
}

/// Everything that is in the store's packs.
fn contents(store: &Store) -> BTreeMap<ObjectId, Object> {
    store.objects().refresh().unwrap();
    let packs = store.objects().packs().unwrap();
    let ids = packs.iter().flat_map(|pack| pack.index.all().unwrap().map(|found| found.unwrap().id));
    ids.map(|id| (id, store.objects().read(&id).unwrap())).collect()
}

/// Makes compact once all who start programs at the moment are done with it.
fn compact(store: &Store) -> Compacted {
    gc::compact(store, &GcOptions::default(), &|_, _| {}).unwrap()
}

/// How many deltas of each depth the only pack has, as git sees it.
fn depths(store: &Store) -> BTreeMap<usize, usize> {
    let packs = store.objects().packs().unwrap();
    assert_eq!(packs.len(), 1);
    let index = packs[0].path().with_extension("idx");
    let said = Repository::at(&store.git_dir()).text(&["verify-pack", "-v", index.to_str().unwrap()]);
    let number = |text: &str| text.split_whitespace().next().unwrap().parse().unwrap();
    let chains = said.lines().filter_map(|line| line.strip_prefix("chain length = ")?.split_once(": "));
    chains.map(|(depth, count)| (number(depth), number(count))).collect()
}

#[test]
fn compact_packs_are_git_s() {
    for hash in [HashKind::Sha1, HashKind::Sha256] {
        let Board { store, dir: _dir } = board(hash);
        (0..70).for_each(|number| change(&store, number));
        let before = contents(&store);
        assert_eq!(gc::to_compact(&store).unwrap(), 70);
        let done = compact(&store);
        assert_eq!((done.packs, done.deferred), (70, false));
        assert!(done.after * 10 < done.before, "{done:?}");
        assert_eq!(gc::to_compact(&store).unwrap(), 0);
        assert_eq!(compact(&store), Compacted::default(), "it is done");
        assert_eq!(contents(&store), before);
        let report = clean(&store);
        assert_eq!((report.packs, report.left_over.len()), (1, 0));
        let depths = depths(&store);
        let deltas: usize = depths.values().sum();
        assert!(deltas > 4 * 60 && *depths.keys().last().unwrap() <= 20, "{depths:?}");
        // Git makes an index of its own, which it would not if anything were wrong with a delta.
        let pack = fs_err::read(store.objects().packs().unwrap()[0].path()).unwrap();
        let other = Repository::new(hash);
        other.run(&["index-pack", "--strict", "--stdin"], &pack);
        for (id, object) in before {
            let id = id.to_string();
            assert_eq!(other.run(&["cat-file", object.kind.name(), &id], b""), object.data);
        }
    }
}

#[test]
fn what_is_compact_stays_so() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    (0..30).for_each(|number| change(&store, number));
    let first = compact(&store);
    (30..60).for_each(|number| change(&store, number));
    let before = contents(&store);
    gc::roll_up(&store).unwrap();
    let rows = store.meta().packs().unwrap();
    assert!(rows.iter().any(|row| row.bytes == first.after), "a roll-up leaves it alone");
    let second = compact(&store);
    assert!(second.packs > 1 && second.after < first.after * 2, "{first:?} {second:?}");
    assert_eq!(contents(&store), before);
    assert_eq!(clean(&store).packs, 1);
    // What is not needed any more goes from a compact pack as from any other.
    let kept = snapshot(&store, "kept", &[("text.c", &text(3))]).unwrap();
    board::remove(&store, "s");
    gc::collect(&store, &GcOptions::default()).unwrap();
    compact(&store);
    assert_eq!(clean(&store).snapshots, 1);
    assert!(store.objects().read(&kept.tree).is_ok());
    assert!(store.room().unwrap().used < 20_000);
}

#[test]
fn the_journal_of_the_database_is_given_back() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    (0..20).for_each(|number| change(&store, number));
    let journal = store.dir().join("meta.db-wal");
    assert!(fs_err::metadata(&journal).unwrap().len() > 50_000);
    let operations = store.meta().operations(&Filter::default()).unwrap();
    compact(&store);
    assert_eq!(fs_err::metadata(&journal).unwrap().len(), 0);
    assert_eq!(store.meta().operations(&Filter::default()).unwrap(), operations);
}

#[test]
fn old_files_stay_while_others_write() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    (0..5).for_each(|number| change(&store, number));
    let batch = store.begin().unwrap();
    let at_once = GcOptions { wait: Duration::ZERO, ..GcOptions::default() };
    let done = gc::compact(&store, &at_once, &|_, _| {}).unwrap();
    assert_eq!((done.packs, done.deferred), (5, true));
    assert_eq!(store.objects().packs().unwrap().len(), 6);
    drop(batch);
    let again = compact(&store);
    assert_eq!((again.packs, again.deferred), (0, false));
    assert_eq!(clean(&store).packs, 1);
}

#[test]
fn damage_is_not_taken_over() {
    let Board { store, dir } = board(HashKind::Sha1);
    (0..5).for_each(|number| change(&store, number));
    drop(store);
    let packs = dir.path().join("store/git/objects/pack");
    let is_pack = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "pack");
    let files = || fs_err::read_dir(&packs).unwrap().map(|entry| entry.unwrap().path()).filter(is_pack);
    let before: Vec<_> = files().collect();
    let broken = &before[0];
    let mut bytes = fs_err::read(broken).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs_err::remove_file(broken).unwrap();
    fs_err::write(broken, bytes).unwrap();
    let store = Store::open(&dir.path().join("store")).unwrap();
    let error = gc::compact(&store, &GcOptions::default(), &|_, _| {}).unwrap_err();
    assert!(error.to_string().contains("is damaged"), "{error}");
    assert_eq!(files().collect::<Vec<_>>(), before, "nothing is written and nothing is gone");
    assert_eq!(fs_err::read_dir(store.dir().join("tmp")).unwrap().count(), 0);
}

#[test]
fn no_more_than_there_is_room_for() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    (0..5).for_each(|number| change(&store, number));
    let used = store.room().unwrap().used;
    store.set_quota(Some(used + used / 2)).unwrap();
    let count = gc::to_compact(&store).unwrap();
    assert!((1..5).contains(&count), "{count}");
    let before = contents(&store);
    while compact(&store).packs > 0 {}
    assert_eq!(contents(&store), before);
    assert!(store.room().unwrap().used < used / 2, "each round makes room for the next");
    clean(&store);
}

#[test]
fn progress_is_told() {
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    (0..3).for_each(|number| change(&store, number));
    let told = std::sync::Mutex::new((0, 0));
    let watch = |objects, bytes| {
        let mut told = told.lock().unwrap();
        *told = (told.0.max(objects), told.1.max(bytes));
    };
    let (objects, bytes) = contents(&store)
        .values()
        .fold((0, 0), |(objects, bytes), object| (objects + 1, bytes + object.data.len() as u64));
    gc::compact(&store, &GcOptions::default(), &watch).unwrap();
    assert_eq!(*told.lock().unwrap(), (objects, bytes));
}
