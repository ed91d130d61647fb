//! Layers that no overlay wrote: forged marks, special files, trees made to break a walker.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, makedev, mkfifoat, mknodat};
use sandtable_store::layer::{ForeignReason, Git, GitState, LayerOptions, LayerOutcome};
use support::{lines, make_chain, remove_chain, set, skipped, whiteout};

struct Trees {
    dir: tempfile::TempDir,
}

impl Trees {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["upper", "lower", "pins"] {
            fs_err::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    fn upper(&self, path: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join("upper").join(path)
    }

    fn lower(&self, path: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join("lower").join(path)
    }

    fn pins(&self, path: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join("pins").join(path)
    }

    fn both(&self, path: &str, text: &str) {
        write(&self.upper(path), text);
        write(&self.lower(path), text);
    }

    fn read(&self) -> LayerOutcome {
        self.read_with(&LayerOptions::default())
    }

    fn read_with(&self, options: &LayerOptions) -> LayerOutcome {
        support::read(&self.upper(""), &[&self.pins(""), &self.lower("")], options)
    }
}

fn write(path: &Path, text: &str) {
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}

#[test]
fn forged_attributes_are_listed_and_not_obeyed() {
    let trees = Trees::new();
    write(&trees.lower("secret/key"), "secret");
    write(&trees.lower("d/old"), "");
    trees.both("f", "same");
    write(&trees.upper("d/f"), "");
    set(&trees.upper("d"), "user.overlay.redirect", "/secret");
    set(&trees.upper("d/f"), "user.overlay.metacopy", "");
    set(&trees.upper("d/f"), "user.overlay.redirect", "/secret/key");
    set(&trees.upper("f"), "user.overlay.overlay.opaque", "y");
    set(&trees.upper("f"), "user.overlay.opaque", "y");
    set(&trees.upper("f"), "user.overlay.whiteout", "y");
    set(&trees.upper(""), "user.overlay.opaque", "y");
    set(&trees.upper("f"), "user.comment", "mine");
    let outcome = trees.read();
    assert_eq!(lines(&outcome), ["A d/f"]);
    let foreign: Vec<_> = outcome
        .foreign
        .iter()
        .map(|foreign| (foreign.path.display_escaped(), foreign.attribute.as_str(), foreign.why))
        .collect();
    let expected = [
        (".", "user.overlay.opaque", ForeignReason::Place),
        ("d", "user.overlay.redirect", ForeignReason::Redirect),
        ("d/f", "user.overlay.metacopy", ForeignReason::Metacopy),
        ("d/f", "user.overlay.redirect", ForeignReason::Redirect),
        ("f", "user.overlay.opaque", ForeignReason::Place),
        ("f", "user.overlay.overlay.opaque", ForeignReason::Escaped),
        ("f", "user.overlay.whiteout", ForeignReason::Place),
    ];
    assert_eq!(foreign, expected.map(|(path, name, why)| (path.to_owned(), name, why)));
}

#[test]
fn whiteouts_as_attributes_count_only_where_announced() {
    let trees = Trees::new();
    for name in ["x/gone", "x/full", "y/gone"] {
        write(&trees.lower(name), "text");
        write(&trees.upper(name), if name == "x/full" { "more" } else { "" });
        set(&trees.upper(name), "user.overlay.whiteout", "y");
    }
    set(&trees.upper("x"), "user.overlay.opaque", "x");
    assert_eq!(lines(&trees.read()), ["M x/full", "D x/gone", "M y/gone"]);
}

#[test]
fn lower_layers_hide_what_is_below_them() {
    let trees = Trees::new();
    for name in ["d/a", "d/b", "e/a", "e/b", "k/.env", "k/f", "o/under", "x/marked", "x/plain"] {
        write(&trees.lower(name), "text");
    }
    write(&trees.pins("o/over"), "");
    set(&trees.pins("o"), "user.overlay.opaque", "y");
    fs_err::create_dir_all(trees.pins("k")).unwrap();
    whiteout(&trees.pins("k/.env"));
    whiteout(&trees.pins("e"));
    write(&trees.pins("x/marked"), "");
    set(&trees.pins("x"), "user.overlay.opaque", "x");
    set(&trees.pins("x/marked"), "user.overlay.whiteout", "y");
    for name in ["d", "e", "k", "o", "x"] {
        whiteout(&trees.upper(name));
    }
    assert_eq!(lines(&trees.read()), ["D d/ (2)", "D k/ (1)", "D o/ (1)", "D x/ (1)"]);
}

#[test]
fn special_files_are_named_and_never_opened() {
    let trees = Trees::new();
    write(&trees.lower("was"), "text");
    fs_err::create_dir(trees.upper("d")).unwrap();
    mkfifoat(CWD, trees.upper("d/pipe"), Mode::RUSR).unwrap();
    mkfifoat(CWD, trees.upper("was"), Mode::RUSR).unwrap();
    let _listener = UnixListener::bind(trees.upper("socket")).unwrap();
    let mut expected = vec!["Fifo d/pipe", "Socket socket", "Fifo was"];
    let null = mknodat(CWD, trees.upper("null"), FileType::CharacterDevice, Mode::RUSR, makedev(1, 3));
    if null.is_ok() {
        expected.insert(1, "Device null");
    }
    let outcome = trees.read();
    assert_eq!(skipped(&outcome), expected);
    assert_eq!(lines(&outcome), ["A d/", "T was!"]);
}

#[test]
fn a_special_file_of_the_source_that_was_only_copied_is_no_change() {
    let trees = Trees::new();
    for name in ["same", "mode"] {
        mkfifoat(CWD, trees.lower(name), Mode::RUSR).unwrap();
    }
    mkfifoat(CWD, trees.upper("same"), Mode::RUSR).unwrap();
    mkfifoat(CWD, trees.upper("mode"), Mode::WUSR).unwrap();
    let outcome = trees.read();
    assert_eq!((lines(&outcome), skipped(&outcome)), (vec!["P mode!".to_owned()], vec![]));
}

#[test]
fn a_symlink_at_any_position_is_a_symlink() {
    let trees = Trees::new();
    let outside = trees.dir.path().join("outside");
    write(&outside.join("f"), "secret");
    for name in ["top/f", "d/mid/f", "d/file"] {
        write(&trees.lower(name), "secret");
    }
    fs_err::create_dir(trees.upper("d")).unwrap();
    symlink(&outside, trees.upper("top")).unwrap();
    symlink(&outside, trees.upper("d/mid")).unwrap();
    symlink(outside.join("f"), trees.upper("d/file")).unwrap();
    symlink("/", trees.upper("new")).unwrap();
    symlink("..", trees.upper("d/up")).unwrap();
    symlink(&outside, trees.lower("link")).unwrap();
    write(&trees.upper("link/f"), "secret");
    let expected = ["T d/file@", "T d/mid@ (1)", "A d/up@", "T link/", "A link/f", "A new@", "T top@ (1)"];
    assert_eq!(lines(&trees.read()), expected);
}

#[test]
fn links_are_compared_by_their_text() {
    let trees = Trees::new();
    for (name, old, new) in [("same", "a", "a"), ("other", "a", "b"), ("longer", "a", "aa")] {
        symlink(old, trees.lower(name)).unwrap();
        symlink(new, trees.upper(name)).unwrap();
    }
    assert_eq!(lines(&trees.read()), ["M longer@", "M other@"]);
}

#[test]
fn five_thousand_levels_on_both_sides() {
    support::few_descriptors();
    let trees = Trees::new();
    for side in [trees.upper("d"), trees.lower("d"), trees.lower("gone"), trees.upper("new")] {
        fs_err::create_dir(&side).unwrap();
        make_chain(&side, b"nn", 5000);
    }
    whiteout(&trees.upper("gone"));
    let outcome = trees.read();
    let found = lines(&outcome);
    assert_eq!(found.len(), 2, "the copied chain is unchanged");
    assert_eq!(found[0], "D gone/ (1)");
    assert_eq!(outcome.changes[1].path.components().count(), 5002);
    for side in [trees.upper("d"), trees.lower("d"), trees.lower("gone"), trees.upper("new")] {
        remove_chain(&side, b"nn");
    }
}

#[test]
fn names_may_be_long_and_any_bytes() {
    let trees = Trees::new();
    let long = "n".repeat(255);
    let odd = OsStr::from_bytes(b"\xff\n\x1b]0;x\x07");
    write(&trees.upper(&long).join(&long), "");
    write(&trees.upper(odd), "");
    whiteout(&trees.upper(OsStr::from_bytes(b"\xfe")));
    write(&trees.lower(OsStr::from_bytes(b"\xfe")), "");
    let outcome = trees.read();
    let expected = [format!("A {long}/{long}"), "D \\xfe".into(), "A \\xff\\n\\u{1b}]0;x\\u{7}".into()];
    assert_eq!(lines(&outcome), expected);
}

#[test]
fn copies_are_compared_to_the_last_byte() {
    let trees = Trees::new();
    let big = "x".repeat(300_000);
    trees.both("same", &big);
    trees.both("last", &big);
    trees.both("mode", "text");
    trees.both("both", "text");
    fs_err::write(trees.upper("last"), format!("{}y", &big[1..])).unwrap();
    fs_err::write(trees.upper("both"), "TEXT").unwrap();
    for name in ["mode", "both"] {
        fs_err::set_permissions(trees.upper(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    assert_eq!(lines(&trees.read()), ["M both", "M last", "P mode"]);
}

#[test]
fn an_opaque_directory_names_what_it_hides() {
    let trees = Trees::new();
    for name in ["d/keep", "d/gone", "d/sub/one", "d/sub/two", "d/both/in", "d/both/out"] {
        write(&trees.lower(name), "text");
    }
    write(&trees.upper("d/keep"), "text");
    write(&trees.upper("d/both/in"), "text");
    whiteout(&trees.upper("d/gone"));
    set(&trees.upper("d"), "user.overlay.opaque", "y");
    assert_eq!(lines(&trees.read()), ["D d/both/out", "D d/gone", "D d/sub/ (2)"]);
}

#[test]
fn whiteouts_of_nothing_and_empty_directories() {
    let trees = Trees::new();
    fs_err::create_dir_all(trees.upper("a/b")).unwrap();
    fs_err::create_dir_all(trees.upper("c")).unwrap();
    whiteout(&trees.upper("c/never"));
    whiteout(&trees.upper("never"));
    write(&trees.lower("file"), "");
    fs_err::create_dir_all(trees.upper("file")).unwrap();
    assert_eq!(lines(&trees.read()), ["A a/b/", "A c/", "T file/"]);
}

#[test]
fn git_is_one_flag_unless_asked_for() {
    let trees = Trees::new();
    trees.both(".git/HEAD", "ref");
    trees.both("sub/.git/HEAD", "ref");
    assert_eq!(trees.read().git, GitState::Untouched);
    write(&trees.upper("sub/.git/HEAD"), "other");
    assert_eq!(trees.read().git, GitState::Untouched);
    write(&trees.upper(".git/objects/aa/bb"), "");
    let outcome = trees.read();
    assert_eq!((outcome.git, lines(&outcome)), (GitState::Changed, vec!["M sub/.git/HEAD".to_owned()]));
    let listed = trees.read_with(&LayerOptions { git: Git::List, ..LayerOptions::default() });
    assert_eq!((listed.git, lines(&listed).len()), (GitState::Changed, 2));
}

#[test]
fn a_limit_ends_the_walk() {
    let trees = Trees::new();
    for n in 0..20 {
        write(&trees.upper(format!("f{n:02}")), "");
    }
    let limited = |limit| trees.read_with(&LayerOptions { limit, ..LayerOptions::default() });
    assert!(!limited(20).truncated);
    let cut = limited(5);
    assert_eq!((cut.truncated, cut.changes.len()), (true, 5));
}

/// Root may read everything, so for root this runs again as nobody.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test starts itself as another user")]
fn what_may_not_be_read_is_named() {
    if rustix::process::geteuid().is_root() {
        let stage = tempfile::tempdir().unwrap();
        fs_err::set_permissions(stage.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let program = stage.path().join("test");
        fs_err::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let output = std::process::Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
            .arg(&program)
            .args(["--exact", "what_may_not_be_read_is_named"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let trees = Trees::new();
    trees.both("copy", "text");
    trees.both("mode", "text");
    write(&trees.lower("closed/f"), "");
    write(&trees.upper("closed/g"), "");
    write(&trees.upper("new/g"), "");
    write(&trees.upper("file"), "");
    let chmod = |path: PathBuf, mode| fs_err::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    chmod(trees.upper("mode"), 0o000);
    chmod(trees.lower("copy"), 0o000);
    chmod(trees.upper("file"), 0o000);
    for name in ["closed", "new"] {
        chmod(trees.upper(name), 0o000);
    }
    let outcome = trees.read();
    assert_eq!(lines(&outcome), ["P closed/", "P copy", "A file", "P mode", "A new/"]);
    let expected =
        ["Unreadable closed", "LowerUnreadable copy", "Unreadable file", "Unreadable mode", "Unreadable new"];
    assert_eq!(skipped(&outcome), expected);
    for name in ["closed", "new"] {
        chmod(trees.upper(name), 0o700);
    }
}
