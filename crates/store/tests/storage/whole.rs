//! All of it together: a repository becomes a snapshot, disappears, and comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sandtable_store::bring_in::{BringInOptions, bring_in_exactly};
use sandtable_store::checkout::{self, checkout};
use sandtable_store::dir::open_named;
use sandtable_store::fsck::{Depth, fsck};
use sandtable_store::id::{HashKind, ObjectId};
use sandtable_store::ignore::Rules;
use sandtable_store::object::ReadObjects as _;
use sandtable_store::objects::{Loose, Objects};
use sandtable_store::pack::Pack;
use sandtable_store::snapshot::{self, Known, take};
use sandtable_store::source::attributes::{Conversion, Conversions};
use sandtable_store::source::index::Index;
use sandtable_store::store::{Batch, Store, write_extra};

use crate::board::{Board, board, draft};
use crate::git::git;

/// Everything below a directory, but for `.git`.
fn listing(root: &Path) -> BTreeMap<String, (u32, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in
            fs_err::read_dir(dir).unwrap().map(Result::unwrap).filter(|entry| entry.file_name() != ".git")
        {
            let metadata = fs_err::symlink_metadata(entry.path()).unwrap();
            let content = if metadata.is_dir() {
                open.push(entry.path());
                vec![]
            } else if metadata.is_symlink() {
                fs_err::read_link(entry.path()).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs_err::read(entry.path()).unwrap()
            };
            let name = entry.path().strip_prefix(root).unwrap().display().to_string();
            found.insert(name, (metadata.mode(), metadata.mtime_nsec(), content));
        }
    }
    found
}

fn run(dir: &Path, arguments: &[&str]) {
    let place = ["-C", dir.to_str().unwrap()];
    let (output, said) = git(place.iter().chain(arguments).map(std::convert::AsRef::as_ref), b"");
    output.unwrap_or_else(|| panic!("git {arguments:?}: {said}"));
}

fn onboard(batch: &Batch<'_>, source: &Path) -> (snapshot::SnapshotOutcome, usize) {
    let rules = Rules::default();
    let index = fs_err::read(source.join(".git/index")).unwrap();
    let written = fs_err::metadata(source.join(".git/index")).unwrap();
    let written = written.mtime() * 1_000_000_000 + written.mtime_nsec();
    let index = Index::parse(&index, HashKind::Sha1, written).unwrap();
    let conversions = Conversions::everywhere(Conversion::LineEnds);
    let user = Objects::new(&source.join(".git/objects"), HashKind::Sha1, Loose::Read);
    let known = Known { index: &index, conversions: &conversions, objects: Some(&user) };
    let options = snapshot::SnapshotOptions {
        index: Some(&known),
        ..snapshot::SnapshotOptions::all(&rules, &|| false)
    };
    let store = snapshot::Store { objects: batch, sink: batch };
    let outcome = take(open_named(source).unwrap().as_fd(), store, &options, None).unwrap();
    let (from, options) = (source.join(".git/objects"), BringInOptions::default());
    let brought = bring_in_exactly(batch, &from, &outcome.borrowed, &options).unwrap();
    (outcome, brought.objects)
}

/// A repository of which git has seen every file, and long enough ago.
fn clean(source: &Path) {
    fs_err::create_dir_all(source).unwrap();
    run(source, &["init", "-q", "--object-format=sha1"]);
    for number in 0..30 {
        let place = source.join(format!("d{}/e{}", number % 3, number % 2));
        fs_err::create_dir_all(&place).unwrap();
        fs_err::write(place.join(format!("f{number}")), format!("file {number}\n").repeat(number + 1))
            .unwrap();
    }
    run(source, &["add", "-A"]);
    run(source, &["commit", "-qm", "first"]);
    std::thread::sleep(std::time::Duration::from_millis(30));
    run(source, &["update-index", "-q", "--really-refresh", "--force-write-index"]);
}

/// The same with one pack, as a clone has.
fn packed(parent: &Path) -> PathBuf {
    let source = parent.join("source");
    clean(&source);
    run(&source, &["repack", "-adq"]);
    source
}

/// All objects that a commit of a repository is made of, but for itself.
fn objects(source: &Path) -> BTreeSet<ObjectId> {
    let place = source.to_str().unwrap();
    let list = ["-C", place, "rev-list", "--objects", "HEAD^{tree}"];
    let said = git(list.iter().map(std::convert::AsRef::as_ref), b"").0.unwrap();
    String::from_utf8(said).unwrap().lines().map(|line| line[..40].parse().unwrap()).collect()
}

#[test]
fn of_a_clean_repository_nothing_is_written_that_git_has_packed() {
    let dir = tempfile::tempdir().unwrap();
    let source = packed(dir.path());
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let batch = store.begin().unwrap();
    let (outcome, _) = onboard(&batch, &source);
    assert_eq!((outcome.counts.files_known, outcome.counts.files_read), (30, 0));
    let all = objects(&source);
    assert_eq!(outcome.borrowed, all.iter().copied().collect::<Vec<_>>(), "blobs and trees, and no others");
    assert!(all.contains(&outcome.state.tree));
    let extra = write_extra(&batch, &outcome.state).unwrap();
    let made = store.commit(batch, &draft("s", outcome.state.tree, extra)).unwrap();
    assert!(!made.borrowed);
    store.objects().refresh().unwrap();
    let packs = store.objects().packs().unwrap();
    let has = |pack: &Pack, id: &ObjectId| pack.index.find(id).unwrap().is_some();
    let (own, users): (Vec<_>, Vec<_>) = packs.iter().partition(|pack| has(pack, &made.id));
    assert_eq!((own.len(), users.len()), (1, 1));
    assert!(all.iter().all(|id| !has(own[0], id) && has(users[0], id)));
    fs_err::remove_dir_all(&source).unwrap();
    assert_eq!(fsck(&Store::open(store.dir()).unwrap(), Depth::Deep).unwrap().faults, []);
}

#[test]
fn a_second_state_of_a_clean_repository_borrows_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let source = packed(dir.path());
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let batch = store.begin().unwrap();
    let (first, _) = onboard(&batch, &source);
    let extra = write_extra(&batch, &first.state).unwrap();
    store.commit(batch, &draft("s", first.state.tree, extra)).unwrap();
    let batch = store.begin().unwrap();
    let (second, _) = onboard(&batch, &source);
    assert_eq!((second.state, second.borrowed, batch.objects()), (first.state, vec![], 0));
}

#[test]
fn a_file_whose_object_is_loose_is_read_instead() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    clean(&source);
    let tree = objects(&source);
    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let batch = store.begin().unwrap();
    let (outcome, brought) = onboard(&batch, &source);
    assert_eq!((outcome.counts.files_known, outcome.counts.files_read, brought), (0, 30, 0));
    assert!(tree.contains(&outcome.state.tree) && tree.iter().all(|id| batch.contains(id)));
}

#[test]
fn a_repository_comes_back_after_it_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    fs_err::create_dir_all(source.join("sub/empty")).unwrap();
    run(&source, &["init", "-q", "--object-format=sha1"]);
    for number in 0..40 {
        fs_err::write(source.join(format!("sub/{number}")), format!("file {number}\n").repeat(number + 1))
            .unwrap();
    }
    fs_err::write(source.join("run"), "#!/bin/sh\n").unwrap();
    fs_err::set_permissions(source.join("run"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("/nowhere", source.join("link")).unwrap();
    run(&source, &["add", "-A"]);
    run(&source, &["commit", "-qm", "first"]);
    run(&source, &["repack", "-adq"]);
    // So that git may believe the times of its files; then one changes, and one is new.
    std::thread::sleep(std::time::Duration::from_millis(30));
    run(&source, &["update-index", "-q", "--really-refresh"]);
    fs_err::write(source.join("sub/7"), "changed").unwrap();
    fs_err::write(source.join("untracked"), "new").unwrap();
    fs_err::set_permissions(source.join("untracked"), PermissionsExt::from_mode(0o640)).unwrap();

    let Board { store, dir: _dir } = board(HashKind::Sha1);
    let batch = store.begin().unwrap();
    let (outcome, _) = onboard(&batch, &source);
    let extra = write_extra(&batch, &outcome.state).unwrap();
    let made = store.commit(batch, &draft("s", outcome.state.tree, extra)).unwrap();
    assert_eq!(made.state.to_string(), outcome.state.hash());

    let expected = listing(&source);
    fs_err::remove_dir_all(&source).unwrap();
    let store = Store::open(store.dir()).unwrap();
    assert_eq!(fsck(&store, Depth::Deep).unwrap().faults, []);
    let state = store.state(&made.id).unwrap();
    assert_eq!(state, outcome.state);
    let target = dir.path().join("target");
    fs_err::create_dir(&target).unwrap();
    let handle = open_named(&target).unwrap();
    checkout(store.objects(), &state, handle.as_fd(), &checkout::CheckoutOptions::default()).unwrap();
    assert_eq!(listing(&target), expected);
}
