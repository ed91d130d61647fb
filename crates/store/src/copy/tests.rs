use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, XattrFlags, mkfifoat};

use super::*;
use crate::dir::open_named;

fn nothing(_: &RelPath, _: Kind) -> bool {
    false
}

fn options() -> CopyOptions<'static> {
    CopyOptions { leave_out: &nothing, progress: &|_| (), cancelled: &|| false }
}

fn copied(source: &Path, target: &Path, options: &CopyOptions<'_>) -> Result<CopyOutcome, CopyError> {
    let (from, to) = (open_named(source).unwrap(), open_named(target).unwrap());
    copy(from.as_fd(), to.as_fd(), options)
}

#[test]
fn a_copy_is_like_its_source() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |path: &str| source.path().join(path);
    fs_err::create_dir_all(at("a/b/c")).unwrap();
    fs_err::write(at("a/b/text"), "hello").unwrap();
    fs_err::write(at("empty"), "").unwrap();
    fs_err::write(at("a/large"), vec![7; 300_000]).unwrap();
    fs_err::hard_link(at("a/large"), at("a/b/same")).unwrap();
    symlink("/nowhere/at all", at("a/link")).unwrap();
    fs_err::set_permissions(at("a/b/text"), PermissionsExt::from_mode(0o751)).unwrap();
    fs_err::set_permissions(at("a/b/c"), PermissionsExt::from_mode(0o555)).unwrap();
    let past = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    fs_err::File::options().write(true).open(at("a/b/text")).unwrap().set_modified(past).unwrap();
    fs_err::File::open(at("a/b")).unwrap().set_modified(past).unwrap();
    let outcome = copied(source.path(), target.path(), &options()).unwrap();
    assert_eq!((outcome.copied.files, outcome.copied.bytes, outcome.skipped.len()), (3, 300_005, 0));
    let to = |path: &str| fs_err::symlink_metadata(target.path().join(path)).unwrap();
    for path in ["", "a", "a/b", "a/b/c", "a/b/text", "a/large", "empty"] {
        let from = fs_err::symlink_metadata(at(path)).unwrap();
        let seen = |data: &std::fs::Metadata| (data.mode(), data.mtime(), data.mtime_nsec(), data.uid());
        assert_eq!(seen(&from), seen(&to(path)), "{path}");
    }
    assert_eq!(fs_err::read(target.path().join("a/large")).unwrap(), vec![7; 300_000]);
    assert_eq!(fs_err::read_link(target.path().join("a/link")).unwrap(), Path::new("/nowhere/at all"));
    assert_eq!(to("a/large").ino(), to("a/b/same").ino());
    assert_ne!(to("a/large").ino(), fs_err::metadata(at("a/large")).unwrap().ino());
}

#[test]
fn holes_and_attributes_are_kept() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = fs_err::File::create(source.path().join("sparse")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(file.file(), b"middle", 8 << 20).unwrap();
    file.set_len(64 << 20).unwrap();
    let kept = rustix::fs::fsetxattr(file.file(), "user.note", b"kept", XattrFlags::empty());
    copied(source.path(), target.path(), &options()).unwrap();
    let made = fs_err::File::open(target.path().join("sparse")).unwrap();
    let data = made.metadata().unwrap();
    assert_eq!(data.len(), 64 << 20);
    assert!(data.blocks() * 512 < 2 << 20, "{} blocks", data.blocks());
    let mut middle = [0; 6];
    std::os::unix::fs::FileExt::read_exact_at(made.file(), &mut middle, 8 << 20).unwrap();
    assert_eq!(&middle, b"middle");
    // Before Linux 6.6 tmpfs has no such attributes.
    if kept.is_ok() {
        let mut value = [0; 16];
        let length = rustix::fs::fgetxattr(made.file(), "user.note", &mut value[..]).unwrap();
        assert_eq!(&value[..length], b"kept");
    }
}

#[test]
fn what_is_left_out_or_cannot_be_copied_is_not_there() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs_err::create_dir_all(source.path().join("secret/deep")).unwrap();
    fs_err::write(source.path().join("keep"), "x").unwrap();
    let top = open_named(source.path()).unwrap();
    mkfifoat(&top, "pipe", Mode::RUSR).unwrap();
    std::os::unix::net::UnixListener::bind(source.path().join("socket")).unwrap();
    let leave_out = |path: &RelPath, kind: Kind| kind == Kind::Directory && path.as_bytes() == b"secret";
    let outcome =
        copied(source.path(), target.path(), &CopyOptions { leave_out: &leave_out, ..options() }).unwrap();
    let made = open_named(target.path()).unwrap();
    let found: Vec<_> = crate::dir::names(made.as_fd()).unwrap().into_iter().map(|name| name.bytes).collect();
    assert_eq!(found, [b"keep".to_vec(), b"pipe".to_vec()]);
    assert_eq!(outcome.skipped.iter().map(|entry| entry.why).collect::<Vec<_>>(), ["is a socket"]);
}

#[test]
fn it_tells_how_far_it_is_and_stops_when_told() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for number in 0..50 {
        fs_err::create_dir(source.path().join(format!("d{number}"))).unwrap();
        fs_err::write(source.path().join(format!("d{number}/f")), "12345").unwrap();
    }
    let most = AtomicU64::new(0);
    let progress = |now: Progress| {
        most.fetch_max(now.files, Ordering::Relaxed);
    };
    let cancelled = || most.load(Ordering::Relaxed) >= 10;
    let stopped = copied(
        source.path(),
        target.path(),
        &CopyOptions { progress: &progress, cancelled: &cancelled, ..options() },
    );
    assert!(matches!(stopped, Err(CopyError::Cancelled)), "{stopped:?}");
    assert!((10..50).contains(&most.load(Ordering::Relaxed)));
}

#[test]
fn a_deep_tree_costs_no_descriptors() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut here = open_named(source.path()).unwrap();
    for _ in 0..3000 {
        rustix::fs::mkdirat(&here, "deeper", Mode::RWXU).unwrap();
        here = crate::dir::open_dir(here.as_fd(), b"deeper").unwrap();
    }
    rustix::fs::symlinkat("x", &here, "bottom").unwrap();
    copied(source.path(), target.path(), &options()).unwrap();
    let made = open_named(target.path()).unwrap();
    let path = RelPath::new(vec!["deeper"; 3000].join("/")).unwrap();
    let bottom = crate::dir::open_below(made.as_fd(), &path).unwrap();
    assert!(crate::dir::stat_at(bottom.as_fd(), b"bottom").is_ok());
    for dir in [source.path(), target.path()] {
        crate::remove::remove_tree(&dir.join("deeper")).unwrap();
    }
}
