//! Layers against a real overlay: what the mount shows must be the state.
//!
//! Mounting needs a mount namespace of its own, so each test starts itself again inside one: as root in a plain one, in
//! a new user namespace, and, if `SANDTABLE_TEST_USER` names an ordinary user, as that user.

use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use sandtable_store::RelPath;
use sandtable_store::dir::open_named;
use sandtable_store::layer::write::{
    LayerWriteError, LayerWriteOptions, exchange_upper, pin, unpin, unpinned, write_upper,
};
use sandtable_store::object::Memory;
use sandtable_store::state::State;

use crate::checkout::unlock;
use crate::states::{Plain, Thing, Zoo, changed, look, path, put_on_disk, random, set, state, timeless};
use crate::support::{Dice, setting};

const INSIDE: &str = "SANDTABLE_TEST_INSIDE";

#[expect(clippy::disallowed_methods, reason = "a namespace is entered by a process of its own")]
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let stage = tempfile::tempdir().unwrap();
    fs_err::set_permissions(stage.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = stage.path().join("test");
    fs_err::copy(std::env::current_exe().unwrap(), &program).unwrap();
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
        let output = started(command.env(INSIDE, "1"));
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{way:?}: {said}");
    }
    false
}

/// A program that was just written may be held open for a moment by a child another thread is starting.
fn started(command: &mut std::process::Command) -> std::process::Output {
    loop {
        let output = command.output().unwrap();
        if !String::from_utf8_lossy(&output.stderr).contains("Text file busy") {
            return output;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

struct Overlay {
    dir: tempfile::TempDir,
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(&self.0, UnmountFlags::empty()).unwrap();
    }
}

impl Overlay {
    fn new(lower: &Plain) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["lower", "pins", "upper", "work", "merged"] {
            fs_err::create_dir(dir.path().join(name)).unwrap();
        }
        let overlay = Self { dir };
        put_on_disk(&overlay.at("lower"), lower);
        overlay
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

    /// What a sandbox would see.
    fn shown(&self) -> Plain {
        let mounted = self.mount();
        let shown = look(&self.at("merged"));
        drop(mounted);
        shown
    }

    fn write(&self, objects: &Memory, base: &State, to: &State) -> Result<(), LayerWriteError> {
        let lower = open_named(&self.at("lower")).unwrap();
        let options = LayerWriteOptions { lower: Some(lower.as_fd()), ..LayerWriteOptions::default() };
        exchange_upper(self.dir.path(), "upper", |upper| write_upper(objects, (base, to), upper, &options))
            .map(|outcome| assert_eq!(outcome.skipped, []))
    }

    fn unlock(&self) {
        for name in ["lower", "pins", "upper"] {
            unlock(&self.at(name));
        }
    }
}

#[test]
fn a_written_layer_shows_exactly_the_state() {
    if !is_inside("layer::a_written_layer_shows_exactly_the_state") {
        return;
    }
    let mut dice = Dice::any();
    for round in 0..setting("SANDTABLE_ROUNDS", 60) {
        let base = random(&mut dice, Zoo::Everything);
        let overlay = Overlay::new(&base);
        let objects = Memory::default();
        let from = state(&objects, &base);
        let mut now = base.clone();
        // Each state is laid over the base anew, in the place of the layer before.
        for step in 0..3 {
            now = changed(&now, &mut dice, Zoo::Everything);
            overlay.write(&objects, &from, &state(&objects, &now)).unwrap();
            let shown = overlay.shown();
            assert_eq!(timeless(&shown), timeless(&now), "round {round}, step {step}");
            for (path, thing) in
                now.iter().filter(|(path, thing)| thing.kind == 'f' && base.get(path) != Some(thing))
            {
                let same = base.get(path).is_some_and(|old| {
                    Thing { mtime_ns: 0, ..old.clone() } == Thing { mtime_ns: 0, ..thing.clone() }
                });
                assert!(same || shown[path].mtime_ns == thing.mtime_ns, "{path:?}");
            }
            assert!(!overlay.at("upper.new").exists(), "the old layer is still there");
        }
        overlay.unlock();
    }
}

#[test]
fn a_directory_of_the_sandbox_shows_nothing_of_one_that_the_source_gets_later() {
    if !is_inside("layer::a_directory_of_the_sandbox_shows_nothing_of_one_that_the_source_gets_later") {
        return;
    }
    let objects = Memory::default();
    let (base, mut now) = (Plain::new(), Plain::new());
    set(&mut now, &path("d/e/f"), Thing::file("mine"));
    let overlay = Overlay::new(&base);
    overlay.write(&objects, &state(&objects, &base), &state(&objects, &now)).unwrap();
    fs_err::create_dir_all(overlay.at("lower/d/e")).unwrap();
    fs_err::write(overlay.at("lower/d/e/stranger"), "x").unwrap();
    assert_eq!(timeless(&overlay.shown()), timeless(&now));
}

#[test]
fn pinned_paths_are_shown_as_they_were() {
    if !is_inside("layer::pinned_paths_are_shown_as_they_were") {
        return;
    }
    let mut dice = Dice::any();
    for round in 0..setting("SANDTABLE_ROUNDS", 60) {
        let base = random(&mut dice, Zoo::Everything);
        let drifted = changed(&base, &mut dice, Zoo::Everything);
        // The source is not what it was.
        let overlay = Overlay::new(&drifted);
        let objects = Memory::default();
        let from = state(&objects, &base);
        let mut paths: Vec<RelPath> = base.keys().chain(drifted.keys()).cloned().collect();
        paths.retain(|path| {
            let timeless =
                |plain: &Plain| plain.get(path).map(|thing| Thing { mtime_ns: 0, ..thing.clone() });
            timeless(&base) != timeless(&drifted)
        });
        paths.sort();
        paths.dedup();
        for again in 0..2 {
            let (pins, lower) =
                (open_named(&overlay.at("pins")).unwrap(), open_named(&overlay.at("lower")).unwrap());
            let options = LayerWriteOptions { lower: Some(lower.as_fd()), ..LayerWriteOptions::default() };
            pin(&objects, &from, (pins.as_fd(), &paths), &options).unwrap();
            assert_eq!(timeless(&overlay.shown()), timeless(&base), "round {round}.{again}: {paths:?}");
        }
        overlay.unlock();
    }
}

#[test]
fn half_a_pin_is_taken_out_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::create_dir_all(dir.path().join("a/b")).unwrap();
    fs_err::write(dir.path().join("a/before"), "1").unwrap();
    let pins = open_named(dir.path()).unwrap();
    let wanted = ["a/before", "a/b/new", "c/d/e", "c/f", "g"].map(path);
    let made = unpinned(pins.as_fd(), &wanted);
    assert_eq!(made, ["a/b/new", "c", "g"].map(path));
    fs_err::create_dir_all(dir.path().join("c/d")).unwrap();
    fs_err::write(dir.path().join("a/b/new"), "").unwrap();
    unpin(pins.as_fd(), &made).unwrap();
    assert_eq!(look(dir.path()).into_keys().collect::<Vec<_>>(), ["a", "a/b", "a/before"].map(path));
}

#[test]
fn what_is_hidden_stays_hidden() {
    let base = {
        let mut plain = Plain::new();
        set(&mut plain, &path("d/.env"), Thing::file("secret"));
        plain
    };
    let objects = Memory::default();
    let from = state(&objects, &base);
    let dir = tempfile::tempdir().unwrap();
    let pins = open_named(dir.path()).unwrap();
    let hidden = [path("d/.env")];
    sandtable_store::layer::pins::write_whiteouts(pins.as_fd(), None, &hidden).unwrap();
    pin(&objects, &from, (pins.as_fd(), &hidden), &LayerWriteOptions::default()).unwrap();
    assert_eq!(look(dir.path())[&path("d/.env")].kind, '?');
}

#[test]
fn a_layer_that_cannot_be_written_leaves_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::create_dir_all(dir.path().join("upper/kept")).unwrap();
    fs_err::create_dir_all(dir.path().join("upper.new/left/over")).unwrap();
    let failed = exchange_upper(dir.path(), "upper", |new| -> Result<(), LayerWriteError> {
        assert_eq!(look(&dir.path().join("upper.new")), Plain::new());
        rustix::fs::mkdirat(new, "half", rustix::fs::Mode::RWXU).unwrap();
        Err(LayerWriteError::Exchange(std::io::Error::other("no")))
    });
    assert!(failed.is_err());
    assert_eq!(look(dir.path()).into_keys().collect::<Vec<_>>(), [path("upper"), path("upper/kept")]);
    exchange_upper(dir.path(), "upper", |_| Ok(())).unwrap();
    assert_eq!(look(dir.path()).into_keys().collect::<Vec<_>>(), [path("upper")]);
}

#[test]
fn a_layer_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::write(dir.path().join("something"), "").unwrap();
    let objects = Memory::default();
    let empty = State::empty(&objects).unwrap();
    let upper = open_named(dir.path()).unwrap();
    assert!(write_upper(&objects, (&empty, &empty), upper.as_fd(), &LayerWriteOptions::default()).is_err());
}
