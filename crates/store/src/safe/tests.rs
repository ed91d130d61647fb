//! Every case goes through both ways down: the kernel's, and the one for where that is missing.

use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{RenameFlags, renameat_with};

use super::*;
use crate::dir::open_named;

const BOTH: [Resolver; 2] = [Resolver::Kernel, Resolver::Stepwise];

struct Place {
    /// Holds `root` and, beside it, what must not be reached.
    dir: tempfile::TempDir,
    root: OwnedFd,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    fs_err::create_dir_all(dir.path().join("root/a/b")).unwrap();
    fs_err::create_dir(dir.path().join("out")).unwrap();
    fs_err::write(dir.path().join("secrets.txt"), "canary").unwrap();
    fs_err::write(dir.path().join("out/f"), "canary").unwrap();
    fs_err::write(dir.path().join("root/a/b/f"), "inside").unwrap();
    let root = open_named(&dir.path().join("root")).unwrap();
    Place { dir, root }
}

impl Place {
    fn open(&self, by: Resolver, text: impl AsRef<[u8]>) -> Result<SafePath, Unsafe> {
        open_safe_by(by, self.root.as_fd(), text.as_ref())
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.dir.path().join("root").join(path)
    }
}

fn text(file: OwnedFd) -> String {
    let mut text = String::new();
    std::fs::File::from(file).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn what_the_seed_refuses_is_refused() {
    let place = place();
    symlink(place.dir.path().join("secrets.txt"), place.at("link")).unwrap();
    symlink("/", place.at("top")).unwrap();
    symlink("../out", place.at("a/out")).unwrap();
    symlink("b", place.at("a/inner")).unwrap();
    symlink("/proc/self/root", place.at("magic")).unwrap();
    symlink("/proc/self/fd/0", place.at("descriptor")).unwrap();
    symlink("self", place.at("self")).unwrap();
    for by in BOTH {
        let words =
            ["/etc/passwd", "../secrets.txt", "a/../../secrets.txt", "a/./b", "a//b", "a/", "", ".", ".."];
        for text in words.iter().copied().chain(["a\0b", "/"]) {
            assert!(matches!(place.open(by, text), Err(Unsafe::Path { .. })), "{text:?}");
        }
        let links = [
            "link",
            "top/etc/passwd",
            "a/out/f",
            "a/out/new",
            "a/inner/f",
            "magic/etc",
            "descriptor",
            "self",
        ];
        for text in links.iter().copied().chain(["self/x", "top", "magic"]) {
            assert!(matches!(place.open(by, text), Err(Unsafe::Symlink(_))), "{by:?} {text:?}");
        }
        for text in
            [".git/config", "a/.GIT/x", "git~1", "x/.git ", ".git::$INDEX_ALLOCATION", ".g\u{200c}it/hooks"]
        {
            assert!(matches!(place.open(by, text), Err(Unsafe::Git(_))), "{text:?}");
        }
        assert!(matches!(place.open(by, "a/b/f/x"), Err(Unsafe::Io { .. })));
    }
}

#[test]
fn odd_encodings_are_odd_names_inside() {
    let place = place();
    let names: [&[u8]; 7] = [
        b"%2e%2e%2fsecrets.txt",
        b"..\\secrets.txt",
        b"\xc0\xae\xc0\xae",
        b"...",
        b".. ",
        b"\xed\xa0\x80",
        b"-rf \x1b[2J\n",
    ];
    for by in BOTH {
        for name in names {
            let found = place.open(by, [name, b"/x/y"].concat()).unwrap();
            assert!(found.parent().is_none() && found.stat().unwrap().is_none());
            let made = found.make_parents().unwrap();
            drop(made.create_file().unwrap());
            assert_eq!(made.create_file().unwrap_err(), Errno::EXIST);
            let inside = crate::dir::open_below(place.root.as_fd(), &made.path().parent().unwrap()).unwrap();
            assert_eq!(stat_at(inside.as_fd(), b"y").unwrap().kind, Kind::File);
            crate::remove::remove_tree(&place.at("").join(OsStr::from_bytes(name))).unwrap();
        }
        assert_eq!(fs_err::read_dir(place.dir.path()).unwrap().count(), 3);
    }
}

#[test]
fn a_place_that_exists_and_one_that_does_not_yet() {
    let place = place();
    for by in BOTH {
        let file = place.open(by, "a/b/f").unwrap();
        assert_eq!(text(file.open_file().unwrap()), "inside");
        assert_eq!(file.open_dir().unwrap_err(), Errno::NOTDIR);
        assert!(place.open(by, "a/b").unwrap().open_dir().is_ok());
        let new = place.open(by, "a/new").unwrap();
        assert_eq!(new.stat().unwrap(), None);
        assert_eq!(new.open_file().unwrap_err(), Errno::NOENT);
        // What comes meanwhile is not followed.
        symlink(place.dir.path().join("secrets.txt"), place.at("a/new")).unwrap();
        assert_eq!(new.open_file().unwrap_err(), Errno::LOOP);
        assert_eq!(new.create_file().unwrap_err(), Errno::EXIST);
        fs_err::remove_file(place.at("a/new")).unwrap();
        let deep = place.open(by, "x/y/z").unwrap();
        symlink(place.dir.path().join("out"), place.at("x")).unwrap();
        assert!(deep.make_parents().is_err());
        assert_eq!(fs_err::read_dir(place.dir.path().join("out")).unwrap().count(), 1);
        fs_err::remove_file(place.at("x")).unwrap();
    }
}

#[test]
fn another_mount_is_not_entered() {
    let top = open_named(Path::new("/")).unwrap();
    for by in BOTH {
        for text in ["proc", "proc/version", "proc/self/status"] {
            let refused = open_safe_by(by, top.as_fd(), text.as_bytes());
            assert!(matches!(refused, Err(Unsafe::Mount(_))), "{by:?} {text}: {refused:?}");
        }
    }
}

/// Exchanges two names as fast as it can, until told to stop.
fn swap(parent: &Path, one: &str, two: &str, stop: &AtomicBool) {
    let dir = open_named(parent).unwrap();
    while !stop.load(Ordering::Relaxed) {
        renameat_with(&dir, one, &dir, two, RenameFlags::EXCHANGE).unwrap();
    }
}

#[test]
fn nothing_outside_is_reached_while_names_are_exchanged() {
    let place = place();
    symlink(place.dir.path().join("out"), place.at("a/link")).unwrap();
    symlink(place.dir.path().join("secrets.txt"), place.at("a/b/g")).unwrap();
    let stop = AtomicBool::new(false);
    let mut reached = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| swap(&place.at("a"), "b", "link", &stop));
        for round in 0..4000 {
            for by in BOTH {
                let Ok(found) = place.open(by, "a/b/f") else { continue };
                if let Ok(file) = found.open_file() {
                    assert_eq!(text(file), "inside");
                    reached += 1;
                }
                if let Ok(new) = place.open(by, format!("a/b/new-{round}-{by:?}")) {
                    drop(new.create_file());
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(reached > 0, "the directory was never there");
    assert_eq!(fs_err::read_dir(place.dir.path().join("out")).unwrap().count(), 1);
}

#[test]
fn a_file_that_is_exchanged_for_a_symlink_is_not_followed() {
    let place = place();
    symlink(place.dir.path().join("secrets.txt"), place.at("a/b/g")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| swap(&place.at("a/b"), "f", "g", &stop));
        for _ in 0..4000 {
            for by in BOTH {
                if let Ok(file) = place
                    .open(by, "a/b/f")
                    .and_then(|found| found.open_file().map_err(|errno| unsafe_at(&RelPath::root(), errno)))
                {
                    assert_eq!(text(file), "inside");
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
