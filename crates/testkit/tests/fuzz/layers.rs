//! Upper layers as an agent could leave them: every kind of entry, with attributes that mean something to an
//! overlay, in any combination. Whatever is in one, it is read to an end or refused, and nothing outside the
//! layer is ever named by what comes out.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, lsetxattr, mkfifoat, mknodat};
use sandtable_store::dir::open_named;
use sandtable_store::id::HashKind;
use sandtable_store::ignore::Rules;
use sandtable_store::layer::{CaptureOptions, Git, Lower, Options, Run, Watch, capture, read};
use sandtable_store::object::Memory;
use sandtable_store::snapshot::{Ignored, Store};
use sandtable_store::state::State;
use sandtable_testkit::counts;
use sandtable_testkit::fuzz::Dice;
use sandtable_testkit::require::say;

const NAMES: [&str; 8] = ["a", "b", ".git", ".wh.a", "a\nb", "...", "#1", "config"];
const ATTRIBUTES: [&str; 8] = [
    "user.overlay.opaque",
    "user.overlay.redirect",
    "user.overlay.whiteout",
    "user.overlay.metacopy",
    "user.overlay.origin",
    "user.overlay.nlink",
    "user.overlay.overlay.opaque",
    "user.other",
];
const VALUES: [&[u8]; 6] = [b"y", b"x", b"", b"/etc", b"../../etc", b"\xff\x00\x01"];

/// Makes an entry in one of the directories made before, so never behind a link.
fn grow(directories: &mut Vec<PathBuf>, dice: &mut Dice) {
    let path = directories[dice.below(directories.len())].join(NAMES[dice.below(NAMES.len())]);
    if path.symlink_metadata().is_err() {
        match dice.below(7) {
            0 | 1 => {
                fs_err::create_dir(&path).unwrap();
                directories.push(path.clone());
            }
            2 => fs_err::write(&path, b"content").unwrap(),
            3 => symlink("/etc/passwd", &path).unwrap(),
            4 => symlink("..", &path).unwrap(),
            5 => mkfifoat(CWD, &path, Mode::from_raw_mode(0o644)).unwrap(),
            // Only root may; a layer without one is a layer too.
            _ => mknodat(CWD, &path, FileType::CharacterDevice, Mode::empty(), 0).unwrap_or_default(),
        }
    }
    if dice.below(2) == 0 {
        let attribute = ATTRIBUTES[dice.below(ATTRIBUTES.len())];
        // A link or a device takes none, a file system may take none at all.
        lsetxattr(&path, attribute, VALUES[dice.below(VALUES.len())], XattrFlags::empty()).ok();
    }
}

fn open(path: &Path) -> OwnedFd {
    open_named(path).unwrap()
}

#[test]
fn upper_layers() {
    let seed = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    say(&format!("layers from seed {seed}"));
    let mut dice = Dice::new(seed);
    for _ in 0..counts::of("fuzz-trees") {
        let dir = tempfile::tempdir().unwrap();
        let [upper, lower] = ["upper", "lower"].map(|name| dir.path().join(name));
        for (root, entries) in [(&lower, 6), (&upper, 24)] {
            fs_err::create_dir(root).unwrap();
            let mut directories = vec![root.clone()];
            for _ in 0..dice.below(entries) {
                grow(&mut directories, &mut dice);
            }
        }
        read_as_a_list(&upper, &lower);
        capture_as_a_state(&upper);
    }
}

fn read_as_a_list(upper: &Path, lower: &Path) {
    let options = Options { git: Git::List, limit: 1000 };
    let (upper_fd, lower) = (open(upper), Lower::new(vec![open(lower)]));
    if let Ok(outcome) = read(upper_fd.as_fd(), &lower, &options) {
        for change in &outcome.changes {
            let mut parts = change.path.as_bytes().split(|byte| *byte == b'/');
            assert!(parts.all(|part| !part.is_empty() && part != b".."), "{change:?}");
        }
    }
}

/// On nothing: whatever is in the state can only have come from the layer.
fn capture_as_a_state(upper: &Path) {
    let memory = Memory::new(HashKind::Sha1);
    let base = State::empty(&memory).unwrap();
    let (rules, cancel) = (Rules::default(), AtomicBool::new(false));
    let options = CaptureOptions {
        ignored: Ignored::All,
        rules: &rules,
        file_limit: 1 << 20,
        cancel: &cancel,
        watch: Watch::Still,
        cache: None,
    };
    let store = Store { objects: &memory, sink: &memory };
    let secret = fs_err::read("/etc/passwd").unwrap();
    let upper = open(upper);
    drop(capture(upper.as_fd(), &base, store, Run { options: &options, cache: None }));
    for id in memory.ids() {
        let object = memory.remove(&id).unwrap();
        assert_ne!(object.data, secret, "read through a link");
    }
}
