//! Layers made by hand, as a hostile sandbox or a damaged disk might leave them, and what a capture makes of them.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod support;

use std::os::fd::AsFd as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, makedev, mkfifoat, mknodat};
use sandtable_store::dir::open_named;
use sandtable_store::id::HashKind;
use sandtable_store::ignore::Rules;
use sandtable_store::layer::opaque::{self, LayerName};
use sandtable_store::layer::write::write_git;
use sandtable_store::layer::{self, CaptureOptions, Captured, ForeignReason, GitState, Run, Watch, capture};
use sandtable_store::object::{Memory, ObjectKind, ReadObjects as _};
use sandtable_store::snapshot::{self, Ignored, SkipReason, Store, take};
use sandtable_store::state::{Editor, Limits, Node, Own, State, Walk, What};
use support::{make_chain, remove_chain, set, whiteout};

/// A directory in a known state, and a layer on it.
struct Trees {
    dir: tempfile::TempDir,
    memory: Memory,
}

impl Trees {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["upper", "lower"] {
            fs_err::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir, memory: Memory::new(HashKind::Sha1) }
    }

    fn upper(&self, path: &str) -> PathBuf {
        self.dir.path().join("upper").join(path)
    }

    fn lower(&self, path: &str) -> PathBuf {
        self.dir.path().join("lower").join(path)
    }

    fn store(&self) -> Store<'_> {
        Store { objects: &self.memory, sink: &self.memory }
    }

    fn base(&self) -> State {
        let rules = Rules::default();
        let options = snapshot::SnapshotOptions::all(&rules, &|| false);
        take(open_named(&self.lower("")).unwrap().as_fd(), self.store(), &options, None).unwrap().state
    }

    fn capture(&self, ignored: Ignored) -> Captured {
        self.capture_on(&self.base(), ignored)
    }

    fn capture_on(&self, base: &State, ignored: Ignored) -> Captured {
        let rules = Rules::default();
        let options = CaptureOptions {
            ignored,
            rules: &rules,
            file_limit: 1 << 20,
            cancelled: &|| false,
            watch: Watch::Live,
            cache: None,
        };
        let upper = open_named(&self.upper("")).unwrap();
        capture(upper.as_fd(), base, self.store(), Run { options: &options, cache: None }).unwrap()
    }

    fn paths(&self, state: &State) -> Vec<String> {
        let mut paths = Vec::new();
        let mut walk = Walk::new(&self.memory, state, Limits::default()).unwrap();
        while let Some(visit) = walk.next().unwrap() {
            paths.push(visit.path.display_escaped());
        }
        paths
    }
}

fn write(path: &Path, text: &str) {
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}

fn skipped(captured: &Captured) -> Vec<(String, SkipReason)> {
    let skipped = captured.outcome.skipped.iter();
    skipped.map(|skipped| (skipped.path.display_escaped(), skipped.why)).collect()
}

/// A state has a file for each name: what lies on disk once would be hashed, and later written, thousands of times.
#[test]
fn a_file_with_many_names_is_read_once_and_only_so_many_names_are_taken() {
    let trees = Trees::new();
    fs_err::create_dir(trees.upper(".git")).unwrap();
    for directory in ["", ".git/"] {
        let first = trees.upper(&format!("{directory}n0000"));
        fs_err::write(&first, vec![b'x'; 1 << 20]).unwrap();
        for name in 1..1030 {
            fs_err::hard_link(&first, trees.upper(&format!("{directory}n{name:04}"))).unwrap();
        }
    }
    let captured = trees.capture(Ignored::All);
    let counts = captured.outcome.counts;
    assert_eq!((counts.files_read, counts.bytes_read), (2, 2 << 20), "{counts:?}");
    let left_out: Vec<_> = ["", ".git/"]
        .iter()
        .flat_map(|directory| {
            (1025..1030).map(move |name| (format!("{directory}n{name}"), SkipReason::Names))
        })
        .collect();
    let mut skipped = skipped(&captured);
    skipped.sort_by_key(|(path, _)| path.starts_with('.'));
    assert_eq!(skipped, left_out);
    assert_eq!(trees.paths(&captured.outcome.state).len(), 1025);
}

#[test]
fn whiteouts_opaque_directories_and_changes_of_kind() {
    let trees = Trees::new();
    for path in ["gone", "dir/a", "dir/b", "hidden/x/y", "file", "tree/f", "link", "same"] {
        write(&trees.lower(path), path);
    }
    whiteout(&trees.upper("gone"));
    fs_err::create_dir(trees.upper("dir")).unwrap();
    whiteout(&trees.upper("dir/a"));
    whiteout(&trees.upper("dir/never-there"));
    write(&trees.upper("hidden/z"), "");
    set(&trees.upper("hidden"), "user.overlay.opaque", "y");
    write(&trees.upper("file/now/a/tree"), "");
    write(&trees.upper("tree"), "now a file");
    symlink("/etc/passwd", trees.upper("link")).unwrap();
    write(&trees.upper("same"), "same");
    let captured = trees.capture(Ignored::All);
    assert_eq!(
        trees.paths(&captured.outcome.state),
        [
            "dir",
            "dir/b",
            "file",
            "file/now",
            "file/now/a",
            "file/now/a/tree",
            "hidden",
            "hidden/z",
            "link",
            "same",
            "tree",
        ]
    );
    assert_eq!((captured.foreign.len(), captured.git), (0, GitState::Untouched));
    assert_eq!(captured.outcome.changed.count, 0);
}

#[test]
fn whiteouts_written_as_attributes_count_only_where_they_may() {
    let trees = Trees::new();
    for path in ["marked/a", "marked/b", "plain/a"] {
        write(&trees.lower(path), "text");
        write(&trees.upper(path), "");
    }
    set(&trees.upper("marked"), "user.overlay.opaque", "x");
    set(&trees.upper("marked/a"), "user.overlay.whiteout", "y");
    set(&trees.upper("plain/a"), "user.overlay.whiteout", "y");
    let captured = trees.capture(Ignored::All);
    assert_eq!(trees.paths(&captured.outcome.state), ["marked", "marked/b", "plain", "plain/a"]);
    let foreign: Vec<_> = captured.foreign.iter().map(|one| (one.path.display_escaped(), one.why)).collect();
    assert_eq!(foreign, [("plain/a".to_owned(), ForeignReason::Place)]);
}

#[test]
fn nothing_is_read_through_a_forged_mark() {
    let trees = Trees::new();
    write(&trees.lower("secret"), "secret");
    write(&trees.lower("d/old"), "old");
    let base = trees.base();
    // From here on the directory below would show if it were looked at.
    fs_err::write(trees.lower("secret"), "CANARY").unwrap();
    fs_err::write(trees.lower("d/old"), "CANARY").unwrap();
    write(&trees.upper("d/f"), "");
    set(&trees.upper("d"), "user.overlay.redirect", "/secret");
    set(&trees.upper("d/f"), "user.overlay.metacopy", "");
    set(&trees.upper("d/f"), "user.overlay.redirect", "/secret");
    set(&trees.upper(""), "user.overlay.opaque", "y");
    set(&trees.upper("d/f"), "user.overlay.overlay.opaque", "y");
    set(&trees.upper("d/f"), "user.mine", "kept");
    let captured = trees.capture_on(&base, Ignored::All);
    assert_eq!(trees.paths(&captured.outcome.state), ["d", "d/f", "d/old", "secret"]);
    assert_eq!(captured.foreign.len(), 5);
    for id in trees.memory.ids() {
        assert_ne!(trees.memory.read(&id).unwrap().data, b"CANARY");
    }
    let path = sandtable_store::RelPath::new("d/f").unwrap();
    let node = captured.outcome.state.lookup(&trees.memory, &path).unwrap().unwrap();
    let names: Vec<_> = node.own.attributes.iter().map(|one| one.name.to_vec()).collect();
    assert_eq!(names, [b"user.mine".to_vec()]);
}

#[test]
fn what_a_state_cannot_hold_is_gone_and_named() {
    let trees = Trees::new();
    for path in ["pipe", "device", "large", "kept"] {
        write(&trees.lower(path), path);
    }
    mkfifoat(CWD, trees.upper("pipe"), Mode::RUSR).unwrap();
    mknodat(CWD, trees.upper("device"), FileType::CharacterDevice, Mode::RUSR, makedev(1, 3)).unwrap();
    fs_err::File::create(trees.upper("large")).unwrap().set_len(2 << 20).unwrap();
    write(&trees.upper("nested/.git/HEAD"), "");
    write(&trees.upper("nested/file"), "");
    write(&trees.upper("git~1"), "");
    symlink("x", trees.upper(".gitmodules")).unwrap();
    let captured = trees.capture(Ignored::All);
    assert_eq!(trees.paths(&captured.outcome.state), ["kept", "nested", "nested/file"]);
    let why = |name: &str, why| (name.to_owned(), why);
    assert_eq!(
        skipped(&captured),
        [
            why(".gitmodules", SkipReason::Name),
            why("device", SkipReason::Device),
            why("git~1", SkipReason::Name),
            why("large", SkipReason::TooLarge),
            why("nested/.git", SkipReason::Repository),
            why("pipe", SkipReason::Fifo),
        ]
    );
}

#[test]
fn a_submodule_of_the_base_stays_what_it_is() {
    let trees = Trees::new();
    let empty = State::empty(&trees.memory).unwrap();
    let mut editor = Editor::new(&trees.memory, &trees.memory, &empty).unwrap();
    let commit = Node {
        what: What::Gitlink(empty.tree),
        own: Own::usual(sandtable_store::object::EntryMode::Gitlink),
    };
    editor.set(b"sub", commit);
    let base = editor.finish().unwrap();
    write(&trees.upper("sub/file"), "changed inside");
    let captured = trees.capture_on(&base, Ignored::All);
    assert_eq!(captured.outcome.state.tree, base.tree);
    assert_eq!(skipped(&captured), [("sub".to_owned(), SkipReason::Submodule)]);
}

#[test]
fn ignored_files_can_be_left_out() {
    let trees = Trees::new();
    write(&trees.lower(".gitignore"), "*.o\nbuild/\n");
    write(&trees.lower("tracked.o"), "in the base");
    write(&trees.lower("d/.gitignore"), "x\n");
    write(&trees.upper("new.o"), "");
    write(&trees.upper("tracked.o"), "changed");
    write(&trees.upper("build/deep/file"), "");
    write(&trees.upper("d/x"), "");
    write(&trees.upper("d/y"), "");
    write(&trees.upper("e/.gitignore"), "!new.o\n");
    write(&trees.upper("e/new.o"), "");
    let captured = trees.capture(Ignored::None);
    assert_eq!(
        trees.paths(&captured.outcome.state),
        [".gitignore", "d", "d/.gitignore", "d/y", "e", "e/.gitignore", "e/new.o", "tracked.o"]
    );
    assert_eq!(captured.outcome.counts.ignored, 3);
    assert!(
        trees.paths(&trees.capture(Ignored::Changed).outcome.state).contains(&"build/deep/file".to_owned())
    );
}

#[test]
fn the_git_layer_is_kept_with_its_marks() {
    let trees = Trees::new();
    write(&trees.lower("file"), "");
    write(&trees.upper(".git/HEAD"), "ref: refs/heads/agent\n");
    write(&trees.upper(".git/objects/aa/bb"), "object");
    fs_err::set_permissions(trees.upper(".git/objects/aa/bb"), PermissionsExt::from_mode(0o444)).unwrap();
    write(&trees.upper(".git/modules/sub/.git/x"), "a name that git keeps for itself");
    whiteout(&trees.upper(".git/index"));
    set(&trees.upper(".git/objects"), "user.overlay.opaque", "y");
    let captured = trees.capture(Ignored::All);
    assert_eq!(captured.git, GitState::Changed);
    assert_eq!(trees.paths(&captured.outcome.state), ["file"]);
    let state = opaque::open(&trees.memory, &captured.outcome.state.layer.unwrap()).unwrap();
    let paths = trees.paths(&state);
    assert_eq!(
        paths,
        [
            "=.git",
            "=.git/-index",
            "=.git/=HEAD",
            "=.git/=modules",
            "=.git/=modules/=sub",
            "=.git/=modules/=sub/=.git",
            "=.git/=modules/=sub/=.git/=x",
            "=.git/=objects",
            "=.git/=objects/!",
            "=.git/=objects/=aa",
            "=.git/=objects/=aa/=bb",
        ]
    );
    // Put back into another layer, it is the same.
    let again = Trees::new();
    let upper = open_named(&again.upper("")).unwrap();
    let kept = captured.outcome.state.layer.unwrap();
    write_git(&trees.memory, &kept, upper.as_fd(), &layer::write::LayerWriteOptions::default()).unwrap();
    assert_eq!(again.capture(Ignored::All).outcome.state.layer, Some(kept));
    let path = sandtable_store::RelPath::new(paths[10].as_str()).unwrap();
    let node = state.lookup(&trees.memory, &path).unwrap().unwrap();
    assert_eq!(node.own.bits, 0o444);
    assert_eq!(trees.memory.read_kind(&node.id().unwrap(), ObjectKind::Blob).unwrap(), b"object");
    assert_eq!(LayerName::parse(b"=.git"), Some(LayerName::Entry(b".git")));
    assert_eq!(LayerName::parse(b"-index"), Some(LayerName::Whiteout(b"index")));
    for name in [&b"x"[..], b"=", b"=..", b"-."] {
        assert_eq!(LayerName::parse(name), None);
    }
    // A layer in which all of it is gone says just that.
    let other = Trees::new();
    whiteout(&other.upper(".git"));
    let captured = other.capture(Ignored::All);
    let state = opaque::open(&other.memory, &captured.outcome.state.layer.unwrap()).unwrap();
    assert_eq!(other.paths(&state), ["-.git"]);
}

#[test]
fn a_deep_layer_needs_few_descriptors() {
    support::few_descriptors();
    let trees = Trees::new();
    fs_err::create_dir(trees.upper(".git")).unwrap();
    for (place, depth) in [("", 3000), (".git", 1000)] {
        make_chain(&trees.upper(place), b"dd", depth);
    }
    let captured = trees.capture(Ignored::All);
    assert_eq!(captured.outcome.skipped, []);
    let mut walk = Walk::new(&trees.memory, &captured.outcome.state, Limits::default()).unwrap();
    let mut count = 0;
    while walk.next().unwrap().is_some() {
        count += 1;
    }
    // The chain, the file at its end, and nothing of the git directory.
    assert_eq!(count, 3001);
    for place in ["", ".git"] {
        remove_chain(&trees.upper(place), b"dd");
    }
}
