//! Scanning a source and telling what moved in it, on real directories.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod support;

use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use sandtable_store::RelPath;
use sandtable_store::dir::{Kind, open_named};
use sandtable_store::id::HashKind;
use sandtable_store::ignore::Rules;
use sandtable_store::name_pattern::Pattern;
use sandtable_store::object::Memory;
use sandtable_store::snapshot;
use sandtable_store::source::{
    Drift, DriftKind, Listing, Owners, Sightings, SourceError, SourceOptions, Stamp, drift, find_secrets,
    scan, scan_with,
};

fn path(text: &str) -> RelPath {
    RelPath::new(text).unwrap()
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn write(root: &Path, name: &str, text: &str) {
    let file = root.join(name);
    fs_err::create_dir_all(file.parent().unwrap()).unwrap();
    fs_err::write(file, text).unwrap();
}

/// A source that has been quiet for longer than a tick, with a moment and a scan after it.
fn quiet_source(files: &[&str]) -> (tempfile::TempDir, Stamp, Listing) {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        write(dir.path(), file, "text\n");
    }
    std::thread::sleep(Duration::from_millis(25));
    let moment = Stamp::now();
    let listing = scan(dir.path(), &SourceOptions::new(&|| false)).unwrap();
    (dir, moment, listing)
}

fn moved(before: Option<&Listing>, root: &Path, moment: Stamp) -> Vec<(DriftKind, String)> {
    let drift = drift(before, root, moment, &SourceOptions::new(&|| false)).unwrap();
    drift.into_iter().map(|Drift { path, kind }| (kind, path.display_escaped())).collect()
}

fn list(expected: &[(DriftKind, &str)]) -> Vec<(DriftKind, String)> {
    expected.iter().map(|(kind, path)| (*kind, (*path).to_owned())).collect()
}

use DriftKind::{Added, Contents, Modified, Removed};

#[test]
fn a_scan_records_what_stat_says_and_follows_nothing() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a/b/f", "four");
    symlink("a", dir.path().join("link")).unwrap();
    fs_err::set_permissions(dir.path().join("a/b/f"), PermissionsExt::from_mode(0o640)).unwrap();
    let listing = scan(dir.path(), &SourceOptions::new(&|| false)).unwrap();
    let mut paths: Vec<_> = listing.entries().map(|(path, _)| path.display_escaped()).collect();
    paths.sort();
    assert_eq!(paths, ["a", "a/b", "a/b/f", "link"]);
    let file = listing.get(&path("a/b/f")).unwrap();
    let real = fs_err::metadata(dir.path().join("a/b/f")).unwrap();
    assert_eq!((file.kind, file.mode, file.size), (Kind::File, 0o640, 4));
    assert_eq!(file.ino, std::os::unix::fs::MetadataExt::ino(&real));
    assert_eq!(listing.get(&path("link")).unwrap().kind, Kind::Symlink);
    assert!(listing.get(&path("a/x")).is_none() && listing.get(&path("link/b")).is_none());
}

#[test]
fn a_scan_notes_secrets_and_strangers() {
    let dir = tempfile::tempdir().unwrap();
    for name in [".env", "d/.env.local", "d/.env.example", ".envs/x", ".git/.env", "id_rsa.d/y"] {
        write(dir.path(), name, "");
    }
    symlink("/elsewhere", dir.path().join("ID_RSA")).unwrap();
    let secrets = patterns(&[".env*", "id_rsa*", "!*.example"]);
    let strict = Owners { users: &[], groups: Some(&[]) };
    let options = SourceOptions { secrets: &secrets, owners: Some(strict), cancelled: &|| false };
    let listing = scan(dir.path(), &options).unwrap();
    let expected = [path(".env"), path("ID_RSA"), path("d/.env.local")];
    assert_eq!(listing.secrets(), expected);
    assert_eq!(find_secrets(dir.path(), &secrets, &|| false).unwrap(), expected);
    assert_eq!(listing.outsiders().len(), listing.len());
    let me = fs_err::metadata(dir.path()).unwrap();
    let (uid, gid) = (std::os::unix::fs::MetadataExt::uid(&me), std::os::unix::fs::MetadataExt::gid(&me));
    let owners = Some(Owners { users: &[uid], groups: Some(&[gid]) });
    assert!(scan(dir.path(), &SourceOptions { owners, ..options }).unwrap().outsiders().is_empty());
}

#[test]
fn a_cancelled_scan_says_so() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "f", "");
    let at_once = || true;
    assert!(matches!(scan(dir.path(), &SourceOptions::new(&at_once)), Err(SourceError::Cancelled)));
    assert!(matches!(find_secrets(dir.path(), &[], &at_once), Err(SourceError::Cancelled)));
    assert!(matches!(
        scan(&dir.path().join("none"), &SourceOptions::new(&|| false)),
        Err(SourceError::Open { .. })
    ));
}

#[test]
fn a_deep_and_odd_source_is_scanned_whole() {
    let dir = tempfile::tempdir().unwrap();
    let depth = 5000;
    support::few_descriptors();
    support::make_chain(dir.path(), b"dd", depth);
    let odd = dir.path().join(std::ffi::OsStr::from_bytes(b"\xff\n"));
    fs_err::write(odd, "").unwrap();
    let listing = scan(dir.path(), &SourceOptions::new(&|| false)).unwrap();
    assert_eq!(listing.len(), depth + 2, "each level, the leaf and the odd name");
    assert_eq!(find_secrets(dir.path(), &patterns(&["le?f"]), &|| false).unwrap().len(), 1);
    assert!(listing.get(&RelPath::new(b"\xff\n".to_vec()).unwrap()).is_some());
    support::remove_chain(dir.path(), b"dd");
}

#[test]
fn a_quiet_source_has_not_moved() {
    let (dir, moment, before) = quiet_source(&["a/f", "g", ".git/HEAD", ".git/index"]);
    assert_eq!(moved(Some(&before), dir.path(), moment), []);
    assert_eq!(moved(None, dir.path(), moment), []);
}

#[test]
fn edits_removals_and_renames_are_named() {
    let (dir, moment, before) = quiet_source(&["a/f", "a/g", "b/h", "b/i", "keep", "z/deep/x"]);
    write(dir.path(), "a/f", "longer text\n");
    fs_err::remove_file(dir.path().join("a/g")).unwrap();
    fs_err::rename(dir.path().join("b/h"), dir.path().join("b/j")).unwrap();
    fs_err::remove_dir_all(dir.path().join("z")).unwrap();
    write(dir.path(), "new/dir/x", "");
    let expected = list(&[
        (Modified, "a/f"),
        (Removed, "a/g"),
        (Removed, "b/h"),
        (Added, "b/j"),
        (Added, "new"),
        (Removed, "z"),
    ]);
    assert_eq!(moved(Some(&before), dir.path(), moment), expected);
    let without = list(&[
        (Contents, "."),
        (Contents, "a"),
        (Modified, "a/f"),
        (Contents, "b"),
        (Modified, "b/j"),
        (Contents, "new"),
        (Contents, "new/dir"),
        (Modified, "new/dir/x"),
    ]);
    assert_eq!(moved(None, dir.path(), moment), without);
}

#[test]
fn an_edit_in_place_with_its_times_set_back_is_found() {
    let (dir, moment, before) = quiet_source(&["f", "g"]);
    let file = dir.path().join("f");
    let modified = fs_err::metadata(&file).unwrap().modified().unwrap();
    fs_err::write(&file, "TEXT\n").unwrap();
    let open = fs_err::OpenOptions::new().write(true).open(&file).unwrap();
    open.file().set_modified(modified).unwrap();
    for before in [Some(&before), None] {
        assert_eq!(moved(before, dir.path(), moment), list(&[(Modified, "f")]));
    }
}

#[test]
fn modes_and_kinds_count() {
    let (dir, moment, before) = quiet_source(&["d/f", "e"]);
    fs_err::set_permissions(dir.path().join("d"), PermissionsExt::from_mode(0o700)).unwrap();
    fs_err::remove_file(dir.path().join("e")).unwrap();
    fs_err::create_dir(dir.path().join("e")).unwrap();
    let found = moved(Some(&before), dir.path(), moment);
    assert!(found.contains(&(Modified, "d".into())) && found.contains(&(Modified, "e".into())), "{found:?}");
    assert!(!found.contains(&(Contents, "d".into())), "{found:?}");
}

#[test]
fn what_went_before_the_scan_came_is_seen_by_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "d/f", "");
    write(dir.path(), "e/g", "");
    std::thread::sleep(Duration::from_millis(25));
    let moment = Stamp::now();
    fs_err::remove_file(dir.path().join("d/f")).unwrap();
    let before = scan(dir.path(), &SourceOptions::new(&|| false)).unwrap();
    assert_eq!(moved(Some(&before), dir.path(), moment), list(&[(Contents, "d")]));
}

#[test]
fn a_branch_switch_is_all_of_its_files_and_one_entry_for_git() {
    let files: Vec<_> = (0..40).map(|n| format!("src/{}/f{n}", n % 4)).collect();
    let mut all: Vec<&str> = files.iter().map(String::as_str).collect();
    all.extend([".git/HEAD", ".git/index", ".git/refs/heads/main", ".git/logs/HEAD", ".git/objects/aa/b"]);
    let (dir, moment, before) = quiet_source(&all);
    for file in &files[..30] {
        fs_err::remove_file(dir.path().join(file)).unwrap();
        write(dir.path(), file, "other\n");
    }
    for file in &files[30..] {
        fs_err::remove_file(dir.path().join(file)).unwrap();
    }
    write(dir.path(), ".git/HEAD.lock", "ref: refs/heads/other\n");
    fs_err::rename(dir.path().join(".git/HEAD.lock"), dir.path().join(".git/HEAD")).unwrap();
    let found = moved(Some(&before), dir.path(), moment);
    let count = |kind| found.iter().filter(|(found, _)| *found == kind).count();
    assert_eq!((count(Modified), count(Removed), count(Added), count(Contents)), (31, 10, 0, 0));
    assert!(found.contains(&(Modified, ".git".into())));
    assert!(moved(None, dir.path(), moment).contains(&(Modified, ".git".into())));
}

#[test]
fn new_objects_alone_do_not_move_git() {
    let (dir, moment, before) = quiet_source(&[".git/HEAD", ".git/objects/aa/b"]);
    write(dir.path(), ".git/objects/bb/c", "");
    assert_eq!(moved(Some(&before), dir.path(), moment), []);
}

#[test]
fn a_large_source_takes_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..4000 {
        write(dir.path(), &format!("d{}/file-number-{n}.c", n % 50), "");
    }
    let listing = scan(dir.path(), &SourceOptions::new(&|| false)).unwrap();
    let each = listing.memory() / listing.len();
    assert!(each <= 96, "{each} bytes for each entry");
}

/// Records the state of `root` as `session` does beside a command.
fn record(root: &Path, sightings: &Sightings) {
    let rules = Rules::default();
    let options = snapshot::SnapshotOptions {
        ignored: snapshot::Ignored::None,
        sightings: Some(sightings),
        ..snapshot::SnapshotOptions::all(&rules, &|| false)
    };
    let memory = Memory::new(HashKind::Sha1);
    let store = snapshot::Store { objects: &memory, sink: &memory };
    snapshot::take(open_named(root).unwrap().as_fd(), store, &options, None).unwrap();
}

fn looks(listing: &Listing) -> Vec<(String, i64, u64, u64, u16)> {
    let look = |(path, entry): (RelPath, &sandtable_store::source::Entry)| {
        (path.display_escaped(), entry.ctime_ns, entry.ino, entry.size, entry.mode)
    };
    let mut looks: Vec<_> = listing.entries().map(look).collect();
    looks.sort();
    looks
}

#[test]
fn what_a_recording_has_seen_need_not_be_looked_at_again() {
    let files = ["a/b/f", "a/g", "ignored/h", "repository/.git/i", "repository/j"];
    let (dir, _, before) = quiet_source(&files);
    write(dir.path(), ".gitignore", "ignored\n");
    let sightings = Sightings::default();
    record(dir.path(), &sightings);
    assert!(sightings.is_empty(), "it has not begun");
    sightings.begin();
    record(dir.path(), &sightings);
    // The root, `a` and `a/b`; what is left out, or holds what is left out, is looked at by the scan.
    assert_eq!(sightings.len(), 3);
    let options = SourceOptions::new(&|| false);
    assert_eq!(
        looks(&scan_with(dir.path(), &options, &sightings).unwrap()),
        looks(&scan(dir.path(), &options).unwrap())
    );
    assert_eq!(looks(&before).len(), files.len() + 5);

    // It is really not looked at: what comes later is not seen there, and is seen elsewhere.
    record(dir.path(), &sightings);
    for new in ["a/new", "ignored/new", "repository/new", "new"] {
        write(dir.path(), new, "");
    }
    let seen = scan_with(dir.path(), &options, &sightings).unwrap();
    let found = ["a/new", "ignored/new", "repository/new", "new"].map(|new| seen.get(&path(new)).is_some());
    assert_eq!(found, [false, true, true, true]);
}
