//! The reader against a real overlay: random changes through the mount, and an oracle that knows nothing
//! of overlays, only how the mounted tree looked before and after.
//!
//! Mounting needs a mount namespace of its own, so each test starts itself again inside one: as root in a
//! plain one, in a new user namespace, and, if `SANDTABLE_TEST_USER` names an ordinary user, as that user.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod oracle;
mod support;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, XattrFlags, mkfifoat, setxattr};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use sandtable_store::RelPath;
use sandtable_store::dir::{open_named, stat_fd};
use sandtable_store::id::HashKind;
use sandtable_store::ignore::Rules;
use sandtable_store::layer::{
    CaptureOptions, Captured, ForeignReason, Git, LayerOptions, LayerOutcome, Run, Watch, capture, pins,
};
use sandtable_store::object::Memory;
use sandtable_store::snapshot::{self, Ignored, Store};
use sandtable_store::statcache::{StatCache, Subject, Writer};
use sandtable_store::state::{Limits, Node, State, Walk};
use support::{Dice, lines, setting, skipped};

const INSIDE: &str = "SANDTABLE_TEST_INSIDE";

#[test]
fn random_changes_are_found_exactly() {
    if is_inside("random_changes_are_found_exactly") {
        let mut dice = Dice::any();
        for round in 0..setting("SANDTABLE_ROUNDS", 60) {
            one_round(round, &mut dice);
        }
    }
}

fn one_round(round: u64, dice: &mut Dice) {
    let overlay = Overlay::new();
    for _ in 0..10 + dice.roll(40) {
        change(&overlay.at("lower"), dice);
    }
    hide_some(&overlay, dice);
    let mounted = overlay.mount();
    let before = oracle::look(&overlay.at("merged"));
    let mut log = Vec::new();
    for _ in 0..dice.roll(40) {
        log.push(change(&overlay.at("merged"), dice));
    }
    let after = oracle::look(&overlay.at("merged"));
    drop(mounted);
    let outcome = overlay.read();
    let (changes, special) = oracle::changes(&before, &after);
    assert_eq!(lines(&outcome), changes, "round {round}: {log:#?}");
    assert_eq!(skipped(&outcome), special, "round {round}: {log:#?}");
    assert_eq!(outcome.foreign, [], "round {round}");
    assert!(!outcome.truncated);
}

#[test]
fn captured_states_are_what_the_mount_shows() {
    if is_inside("captured_states_are_what_the_mount_shows") {
        let mut dice = Dice::any();
        for round in 0..setting("SANDTABLE_ROUNDS", 60) {
            capture_round(round, &mut dice);
        }
    }
}

/// Changes in two steps: the second capture has the stat cache of the first.
fn capture_round(round: u64, dice: &mut Dice) {
    let overlay = Overlay::new();
    for _ in 0..10 + dice.roll(40) {
        change(&overlay.at("lower"), dice);
    }
    hide_some(&overlay, dice);
    let memory = Memory::new(HashKind::Sha1);
    let mounted = overlay.mount();
    let base = cold(&memory, &overlay.at("merged"));
    let mut log = Vec::new();
    let mut cache = None;
    for _ in 0..2 {
        for _ in 0..dice.roll(20) {
            log.push(change(&overlay.at("merged"), dice));
            if dice.roll(5) == 0 {
                let path = somewhere(&overlay.at("merged"), dice);
                let _refused = setxattr(&path, "user.mark", b"x", XattrFlags::empty());
            }
        }
        // Looked at while it is mounted, as while a sandbox is frozen.
        let shown = cold(&memory, &overlay.at("merged"));
        let (captured, new) = captured(&memory, &overlay.at("upper"), &base, cache.as_ref());
        assert_eq!(captured.foreign, [], "round {round}");
        assert_eq!(all(&memory, &captured.outcome.state), all(&memory, &shown), "round {round}: {log:#?}");
        assert_eq!(captured.outcome.state.hash(), shown.hash(), "round {round}: {log:#?}");
        cache = Some(new);
    }
    drop(mounted);
}

fn cold(memory: &Memory, dir: &Path) -> State {
    let rules = Rules::default();
    let store = Store { objects: memory, sink: memory };
    let options = snapshot::SnapshotOptions::all(&rules, &|| false);
    snapshot::take(open_named(dir).unwrap().as_fd(), store, &options, None).unwrap().state
}

fn captured(memory: &Memory, upper: &Path, base: &State, cache: Option<&StatCache>) -> (Captured, StatCache) {
    let (rules, upper) = (Rules::default(), open_named(upper).unwrap());
    let subject = Subject::new(&stat_fd(upper.as_fd()).unwrap());
    let file = tempfile::tempfile().unwrap();
    let mut writer = Writer::new(Box::new(file.try_clone().unwrap()), HashKind::Sha1, subject, 1).unwrap();
    let options = CaptureOptions {
        ignored: Ignored::All,
        rules: &rules,
        file_limit: u64::MAX,
        cancelled: &|| false,
        watch: Watch::Still,
        cache,
    };
    let run = Run { options: &options, cache: Some(&mut writer) };
    let captured = capture(upper.as_fd(), base, Store { objects: memory, sink: memory }, run).unwrap();
    writer.finish().unwrap();
    (captured, StatCache::open(file, HashKind::Sha1, subject).unwrap())
}

/// Every entry, with its times.
fn all(memory: &Memory, state: &State) -> Vec<(RelPath, Node)> {
    let mut found = Vec::new();
    let mut walk = Walk::new(memory, state, Limits::default()).unwrap();
    while let Some(visit) = walk.next().unwrap() {
        found.push((visit.path.clone(), visit.node.clone()));
    }
    found
}

/// Hides a few entries by a layer in between.
fn hide_some(overlay: &Overlay, dice: &mut Dice) {
    let all: Vec<_> = oracle::look(&overlay.at("lower")).into_keys().collect();
    let mut chosen: Vec<RelPath> = Vec::new();
    for _ in 0..dice.roll(4) {
        if all.is_empty() {
            return;
        }
        let path = RelPath::new(dice.pick(&all).as_slice()).unwrap();
        let mut tops = chosen.iter().map(RelPath::as_bytes);
        if !tops.any(|top| path.as_bytes().starts_with(top) || top.starts_with(path.as_bytes())) {
            chosen.push(path);
        }
    }
    let (top, below) = (open_named(&overlay.at("pins")).unwrap(), open_named(&overlay.at("lower")).unwrap());
    pins::write_whiteouts(top.as_fd(), Some(below.as_fd()), &chosen).unwrap();
}

/// One random change below `root`. Many are impossible where they are tried; that is part of the game.
fn change(root: &Path, dice: &mut Dice) -> String {
    let (one, two) = (somewhere(root, dice), somewhere(root, dice));
    let text = ["", "text", "TEXT", "longer text"][dice.roll(4)];
    let modes: [u32; 4] = [0o700, 0o755, 0o740, 0o711];
    let (what, done) = match dice.roll(17) {
        0..=2 => ("write", write(&one, text)),
        3 | 4 => ("mkdir", fs_err::create_dir_all(&one)),
        5 => ("append", append(&one, text)),
        6 => ("touch", touch(&one)),
        7 => ("chmod", chmod(&one, *dice.pick(&modes))),
        8 | 9 => ("rename", fs_err::rename(&one, &two)),
        10 => ("unlink", fs_err::remove_file(&one)),
        11 => ("rm -r", fs_err::remove_dir_all(&one)),
        12 => ("rm -r; mkdir", remove(&one).and_then(|()| fs_err::create_dir(&one))),
        13 => ("rm -r; write", remove(&one).and_then(|()| fs_err::write(&one, text))),
        14 => ("rm -r; symlink", remove(&one).and_then(|()| symlink(dice.pick(&["a", "b/c"]), &one))),
        15 => ("link", fs_err::hard_link(&one, &two)),
        _ => ("mkfifo", mkfifoat(CWD, &one, Mode::RUSR).map_err(Into::into)),
    };
    format!(
        "{what} {} {} {text:?}: {}",
        one.display(),
        two.display(),
        done.map_or_else(|error| error.to_string(), |()| "done".into())
    )
}

fn somewhere(root: &Path, dice: &mut Dice) -> PathBuf {
    const NAMES: [&[u8]; 5] = [b"a", b"b", b"c", b"\xff\n", b"\xc3\xa9"];
    let mut path = root.to_owned();
    for _ in 0..=dice.roll(3) {
        path.push(OsStr::from_bytes(dice.pick::<&[u8]>(&NAMES)));
    }
    path
}

/// Opens for writing; a pipe, which would wait for a reader, is refused instead.
fn open(path: &Path, options: &mut fs_err::OpenOptions) -> std::io::Result<fs_err::File> {
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = fs_err::OpenOptions::new();
    open(path, options.write(true).create(true).truncate(true))?.write_all(text.as_bytes())
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    open(path, fs_err::OpenOptions::new().append(true))?.write_all(text.as_bytes())
}

/// Copies the file up without changing it.
fn touch(path: &Path) -> std::io::Result<()> {
    let file = open(path, fs_err::OpenOptions::new().append(true))?;
    file.file().set_modified(std::time::SystemTime::UNIX_EPOCH)
}

fn chmod(path: &Path, mode: u32) -> std::io::Result<()> {
    // Following a symlink would change something else, perhaps outside.
    if path.symlink_metadata()?.is_symlink() {
        return Ok(());
    }
    fs_err::set_permissions(path, PermissionsExt::from_mode(mode))
}

fn remove(path: &Path) -> std::io::Result<()> {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs_err::remove_dir_all(path),
        Ok(_) => fs_err::remove_file(path),
        Err(error) => Err(error),
    }
}

#[test]
fn attributes_set_from_inside_arrive_escaped() {
    if is_inside("attributes_set_from_inside_arrive_escaped") {
        let overlay = Overlay::new();
        fs_err::write(overlay.at("lower/f"), "text").unwrap();
        let mounted = overlay.mount();
        let file = overlay.at("merged/f");
        // Kernels before 6.7 refuse it instead.
        let set = setxattr(&file, "user.overlay.redirect", b"/etc", XattrFlags::empty());
        drop(mounted);
        let outcome = overlay.read();
        assert_eq!(lines(&outcome), [] as [&str; 0]);
        let found: Vec<_> = outcome.foreign.iter().map(|foreign| foreign.why).collect();
        assert_eq!(found, if set.is_ok() { vec![ForeignReason::Escaped] } else { vec![] });
    }
}

#[test]
fn mounts_are_not_entered() {
    if is_inside("mounts_are_not_entered") {
        let overlay = Overlay::new();
        for name in ["lower/m", "lower/d", "upper/d", "upper/d/new", "upper/m", "other"] {
            fs_err::create_dir(overlay.at(name)).unwrap();
        }
        fs_err::write(overlay.at("other/secret"), "").unwrap();
        fs_err::write(overlay.at("upper/m/f"), "").unwrap();
        fs_err::write(overlay.at("upper/d/file"), "").unwrap();
        for place in ["upper/d/new", "lower/m"] {
            mount_bind(overlay.at("other"), overlay.at(place)).unwrap();
        }
        mount_bind(overlay.at("other/secret"), overlay.at("upper/d/file")).unwrap();
        let outcome = overlay.read();
        assert_eq!(lines(&outcome), ["A m/f"]);
        assert_eq!(skipped(&outcome), ["Mount d/file", "Mount d/new", "LowerMount m"]);
        let options = sandtable_store::source::SourceOptions::new(&|| false);
        let listing = sandtable_store::source::scan(&overlay.at("lower"), &options).unwrap();
        assert_eq!(listing.submounts(), [RelPath::new("m").unwrap()]);
        assert!(listing.entries().all(|(path, _)| path.name() != Some(b"secret")));
        for place in ["upper/d/new", "lower/m", "upper/d/file"] {
            unmount(overlay.at(place), UnmountFlags::DETACH).unwrap();
        }
    }
}

/// Directories for an overlay, in a directory of their own.
struct Overlay {
    dir: tempfile::TempDir,
}

struct Mounted(PathBuf);

impl Overlay {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["lower", "pins", "upper", "work", "merged"] {
            fs_err::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn mount(&self) -> Mounted {
        let at = |name| self.at(name).into_os_string().into_string().unwrap();
        let options = format!(
            "userxattr,lowerdir={}:{},upperdir={},workdir={}",
            at("pins"),
            at("lower"),
            at("upper"),
            at("work")
        );
        let options = std::ffi::CString::new(options).unwrap();
        mount("overlay", self.at("merged"), "overlay", MountFlags::empty(), options.as_c_str()).unwrap();
        Mounted(self.at("merged"))
    }

    fn read(&self) -> LayerOutcome {
        let options = LayerOptions { git: Git::List, ..LayerOptions::default() };
        support::read(&self.at("upper"), &[&self.at("pins"), &self.at("lower")], &options)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(&self.0, UnmountFlags::empty()).unwrap();
    }
}

impl Drop for Overlay {
    /// The kernel leaves a directory that its owner may not enter.
    fn drop(&mut self) {
        let left = self.at("work/work");
        if left.exists() {
            fs_err::set_permissions(left, PermissionsExt::from_mode(0o700)).unwrap();
        }
    }
}

/// A process that another test started while the copy was written holds it open for writing for a moment.
#[expect(clippy::disallowed_methods, reason = "the test starts itself again")]
fn wait_until_executable(program: &std::path::Path) {
    for _ in 0..500 {
        match std::process::Command::new(program).arg("--list").output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            other => return drop(other.unwrap()),
        }
    }
}

/// Whether this is already a namespace to mount in; if not, runs the test in each kind of them.
#[expect(clippy::disallowed_methods, reason = "the test starts itself again")]
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let stage = tempfile::tempdir().unwrap();
    fs_err::set_permissions(stage.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = stage.path().join("test");
    fs_err::copy(std::env::current_exe().unwrap(), &program).unwrap();
    wait_until_executable(&program);
    let mut ways: Vec<Vec<String>> = vec![vec!["unshare".into(), "-Urm".into()]];
    if rustix::process::geteuid().is_root() {
        ways.push(vec!["unshare".into(), "-m".into()]);
        if let Ok(user) = std::env::var("SANDTABLE_TEST_USER") {
            ways.push(["runuser", "-u", &user, "--", "unshare", "-Urm"].map(str::to_owned).to_vec());
        }
    }
    for way in ways {
        let mut command = std::process::Command::new(&way[0]);
        command.args(&way[1..]).arg(&program).args(["--exact", test, "--nocapture"]);
        let output = command.env(INSIDE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{way:?}: {said}");
    }
    false
}
