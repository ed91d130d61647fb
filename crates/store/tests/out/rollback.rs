//! Directories turned from one state into another, broken off at every moment, and taken up again.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

use sandtable_store::RelPath;
use sandtable_store::dir::open_named;
use sandtable_store::object::Memory;
use sandtable_store::rollback::{
    Durability, Move, Recovered, Recovery, RollbackError, RollbackOptions, RollbackOutcome, Site, Verify,
    checkout_journalled, recover, rollback,
};
use sandtable_store::state::State;

use crate::checkout::unlock;
use crate::states::{Plain, Thing, Zoo, at, changed, look, path, put_on_disk, random, set, state, timeless};
use crate::support::{Dice, setting};

/// Two states, the directory, and its journal.
pub(crate) struct Scene {
    objects: Memory,
    pub(crate) old: Plain,
    pub(crate) new: Plain,
    from: State,
    to: State,
    pub(crate) dir: PathBuf,
}

impl Scene {
    pub(crate) fn new(dir: &Path, old: Plain, new: Plain) -> Self {
        let objects = Memory::default();
        let (from, to) = (state(&objects, &old), state(&objects, &new));
        Self { objects, old, new, from, to, dir: dir.to_owned() }
    }

    fn random(dir: &Path, dice: &mut Dice) -> Self {
        let old = random(dice, Zoo::Everything);
        let new = changed(&old, dice, Zoo::Everything);
        Self::new(dir, old, new)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.join("root")
    }

    fn journal(&self) -> OwnedFd {
        open_named(&self.dir.join("journal")).unwrap()
    }

    pub(crate) fn on_disk(self) -> Self {
        for name in ["root", "journal"] {
            fs_err::create_dir(self.dir.join(name)).unwrap();
        }
        put_on_disk(&self.root(), &self.old);
        self
    }

    pub(crate) fn roll(&self, options: &RollbackOptions<'_>) -> Result<RollbackOutcome, RollbackError> {
        let (root, journal) = (open_named(&self.root()).unwrap(), self.journal());
        let site = Site { root: root.as_fd(), path: &self.root(), journal: journal.as_fd(), id: "one" };
        rollback(&self.objects, Move { from: &self.from, to: &self.to }, &site, options)
    }

    pub(crate) fn recover(&self) -> Vec<Recovery> {
        let all = recover(&self.objects, self.journal().as_fd(), Verify::Check(&|_, _| None), &|_| Ok(()));
        let all = all.unwrap();
        all.into_iter().map(|recovered| recovered.result.unwrap()).collect()
    }

    pub(crate) fn journal_is_empty(&self) -> bool {
        fs_err::read_dir(self.dir.join("journal")).unwrap().next().is_none()
    }
}

pub(crate) fn quick<'a>() -> RollbackOptions<'a> {
    RollbackOptions { durability: Durability::Process, ..RollbackOptions::default() }
}

fn inodes(root: &Path, plain: &Plain) -> BTreeMap<RelPath, u64> {
    let inode = |path: &RelPath| fs_err::symlink_metadata(at(root, path)).unwrap().ino();
    plain.keys().map(|path| (path.clone(), inode(path))).collect()
}

#[test]
fn the_new_state_is_there_and_the_rest_is_untouched() {
    let mut dice = Dice::any();
    for round in 0..setting("SANDTABLE_ROUNDS", 200) {
        let dir = tempfile::tempdir().unwrap();
        let scene = Scene::random(dir.path(), &mut dice).on_disk();
        let before = inodes(&scene.root(), &scene.old);
        let outcome = scene.roll(&quick()).unwrap();
        let found = look(&scene.root());
        assert_eq!(timeless(&found), timeless(&scene.new), "round {round}");
        assert!(outcome.kept.is_empty() && outcome.skipped.is_empty() && scene.journal_is_empty());
        let after = inodes(&scene.root(), &scene.new);
        for (path, thing) in found.iter().filter(|(_, thing)| thing.kind != 'd') {
            let unchanged = scene.old.get(path).filter(|old| {
                Thing { mtime_ns: 0, ..(*old).clone() } == Thing { mtime_ns: 0, ..thing.clone() }
            });
            match unchanged {
                Some(old) => {
                    assert_eq!((old.mtime_ns, before[path]), (thing.mtime_ns, after[path]), "{path:?}");
                }
                None => assert_eq!(thing.mtime_ns, scene.new[path].mtime_ns, "{path:?}"),
            }
        }
        unlock(&scene.root());
    }
}

#[test]
fn what_somebody_changed_stops_it_before_anything_is_touched() {
    type Edit = fn(&Path);
    let edits: [(Edit, &str); 6] = [
        (|root| fs_err::write(root.join("edited"), "mine").unwrap(), "edited"),
        (|root| fs_err::remove_file(root.join("edited")).unwrap(), "edited"),
        (|root| fs_err::write(root.join("comes"), "mine").unwrap(), "comes"),
        (|root| fs_err::write(root.join("goes/mine"), "x").unwrap(), "goes/mine"),
        (|root| std::os::unix::fs::symlink("/", root.join("comes")).unwrap(), "comes"),
        (
            |root| {
                use std::os::unix::fs::PermissionsExt as _;
                fs_err::set_permissions(root.join("edited"), std::fs::Permissions::from_mode(0o600)).unwrap();
            },
            "edited",
        ),
    ];
    for (edit, named) in edits {
        let dir = tempfile::tempdir().unwrap();
        let scene = edited(dir.path());
        edit(&scene.root());
        let before = look(&scene.root());
        let refused = scene.roll(&quick());
        assert!(
            matches!(&refused, Err(RollbackError::Changed(paths)) if *paths == [path(named)]),
            "{named}: {refused:?}"
        );
        assert_eq!(look(&scene.root()), before);
        assert!(scene.journal_is_empty());
    }
}

pub(crate) fn edited(dir: &Path) -> Scene {
    fixed(dir).on_disk()
}

fn fixed(dir: &Path) -> Scene {
    let (mut old, mut new) = (Plain::new(), Plain::new());
    set(&mut old, &path("edited"), Thing::file("old"));
    set(&mut new, &path("edited"), Thing::file("new"));
    set(&mut new, &path("comes"), Thing::file("new"));
    set(&mut old, &path("goes/f"), Thing::file("f"));
    for plain in [&mut old, &mut new] {
        set(plain, &path("stays"), Thing::file("same"));
    }
    Scene::new(dir, old, new)
}

#[test]
fn a_state_just_taken_is_trusted_and_strangers_stay() {
    let dir = tempfile::tempdir().unwrap();
    let scene = edited(dir.path());
    // Not part of any state.
    fs_err::write(scene.root().join("goes/stranger"), "x").unwrap();
    let outcome = scene.roll(&RollbackOptions { verify: Verify::Trust, ..quick() }).unwrap();
    assert_eq!(outcome.kept, [path("goes")]);
    let found: Vec<_> = look(&scene.root()).into_keys().collect();
    assert_eq!(found, ["comes", "edited", "goes", "goes/stranger", "stays"].map(path));
    assert_eq!(fs_err::read(scene.root().join("edited")).unwrap(), b"new");
    // A stranger where a file must come is in the way, even if the state is trusted.
    let dir = tempfile::tempdir().unwrap();
    let scene = edited(dir.path());
    fs_err::write(scene.root().join("comes"), "x").unwrap();
    let refused = scene.roll(&RollbackOptions { verify: Verify::Trust, ..quick() });
    assert!(matches!(refused, Err(RollbackError::Changed(paths)) if paths == [path("comes")]));
}

#[test]
fn a_known_content_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let scene = edited(dir.path());
    let id = scene.from.lookup(&scene.objects, &path("edited")).unwrap().unwrap().id();
    // The file says something else than the stat cache: proof that it was not asked.
    fs_err::write(scene.root().join("edited"), "OLD").unwrap();
    let known = |which: &dyn Fn() -> RelPath, _: &sandtable_store::dir::Meta| {
        id.filter(|_| which() == path("edited"))
    };
    scene.roll(&RollbackOptions { verify: Verify::Check(&known), ..quick() }).unwrap();
    assert_eq!(timeless(&look(&scene.root())), timeless(&scene.new));
}

#[test]
fn other_names_of_a_file_keep_what_they_have() {
    let dir = tempfile::tempdir().unwrap();
    let scene = edited(dir.path());
    fs_err::hard_link(scene.root().join("edited"), dir.path().join("outside")).unwrap();
    scene.roll(&quick()).unwrap();
    assert_eq!(fs_err::read(dir.path().join("outside")).unwrap(), b"old");
}

#[test]
fn a_symlink_in_the_way_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (mut old, mut new) = (Plain::new(), Plain::new());
    set(&mut old, &path("d/f"), Thing::file("old"));
    set(&mut new, &path("d/f"), Thing::file("new"));
    let scene = Scene::new(dir.path(), old, new).on_disk();
    fs_err::create_dir(dir.path().join("out")).unwrap();
    fs_err::write(dir.path().join("out/f"), "old").unwrap();
    fs_err::remove_dir_all(scene.root().join("d")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("out"), scene.root().join("d")).unwrap();
    for verify in [Verify::Check(&|_, _| None), Verify::Trust] {
        assert!(scene.roll(&RollbackOptions { verify, ..quick() }).is_err());
        assert_eq!(fs_err::read(dir.path().join("out/f")).unwrap(), b"old");
        assert_eq!(scene.recover().len(), 0);
    }
}

#[test]
fn it_stops_when_told_with_the_old_state_in_place() {
    for verify in [Verify::Check(&|_, _| None), Verify::Trust] {
        let mut moments = 0;
        loop {
            let dir = tempfile::tempdir().unwrap();
            let scene = edited(dir.path());
            let (asked, seen) = (Cell::new(0), Cell::new(false));
            let cancelled = || {
                assert!(asked.get() <= moments, "it was cancelled before");
                let half = look(&scene.root());
                seen.set(
                    seen.get() || !half.contains_key(&path("goes")) || half.contains_key(&path("comes")),
                );
                asked.replace(asked.get() + 1) == moments
            };
            let stopped = scene.roll(&RollbackOptions { cancelled: &cancelled, verify, ..quick() });
            assert!(scene.journal_is_empty());
            if asked.get() <= moments {
                assert!(seen.get(), "asked while files change places too");
                stopped.unwrap();
                assert_eq!(timeless(&look(&scene.root())), timeless(&scene.new));
                break;
            }
            assert!(matches!(stopped, Err(RollbackError::Cancelled)), "{stopped:?}");
            assert_eq!(timeless(&look(&scene.root())), timeless(&scene.old));
            moments += 1;
        }
        // Four steps, each looked at, staged, cleared and placed, and once before it stands.
        assert!(moments > 4 * 4, "{moments}");
    }
}

pub(crate) fn contains(path: &Path, text: &str) -> bool {
    fs_err::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text))
}

const CHILD: &str = "SANDTABLE_TEST_ROLLBACK";
/// The seed that stands for the scene that is always the same.
pub(crate) const FIXED: u64 = u64::MAX;

#[test]
fn a_journal_that_cannot_go_on_leaves_the_old_state_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let scene = fixed(dir.path()).on_disk();
    // New files are being made by now, so only the second version of the record meets the directory in its way.
    let in_the_way = scene.dir.join("journal/one.new");
    let progress = || drop(fs_err::create_dir(&in_the_way));
    let failed = scene.roll(&RollbackOptions { progress: &progress, ..quick() });
    assert!(matches!(failed, Err(RollbackError::Journal(_))), "{failed:?}");
    assert_eq!(timeless(&look(&scene.root())), timeless(&scene.old));
    fs_err::remove_dir(&in_the_way).unwrap();
    assert!(scene.journal_is_empty());
}

/// Runs this test again as a process of its own that rolls back the scene in `dir` made with `seed`, and kills itself
/// at the given step. Says whether it came to its end.
pub(crate) fn broken_off(dir: &Path, seed: u64, step: u64) -> bool {
    ended(child(dir, seed, step))
}

#[expect(clippy::disallowed_methods, reason = "a process that is to be killed must be another one")]
fn child(dir: &Path, seed: u64, step: u64) -> std::process::Child {
    let name = "rollback::every_moment_leads_to_one_of_both_states";
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, format!("{seed} {step} {}", dir.display()))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}

fn ended(child: std::process::Child) -> bool {
    let child = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() || child.status.signal() == Some(9), "{:?}: {said}", child.status);
    child.status.success()
}

#[expect(clippy::disallowed_methods, reason = "how a test process knows that it is the one to be killed")]
fn is_child() -> bool {
    let Ok(text) = std::env::var(CHILD) else { return false };
    let mut words = text.splitn(3, ' ');
    let mut number = || words.next().unwrap().parse::<u64>().unwrap();
    let (seed, last) = (number(), number());
    let dir = PathBuf::from(words.next().unwrap());
    let scene = if seed == FIXED { fixed(&dir) } else { Scene::random(&dir, &mut Dice::new(seed)) };
    let step = Cell::new(0);
    let progress = || {
        step.set(step.get() + 1);
        if step.get() == last {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    };
    scene.roll(&RollbackOptions { progress: &progress, ..quick() }).unwrap();
    true
}

/// Killed from outside, whatever it does then.
fn at_any_time(dice: &mut Dice) {
    let seed = dice.roll(1_000_000) as u64;
    let dir = tempfile::tempdir().unwrap();
    let scene = Scene::random(dir.path(), &mut Dice::new(seed)).on_disk();
    let mut child = child(dir.path(), seed, 0);
    std::thread::sleep(std::time::Duration::from_micros(dice.roll(9000) as u64));
    child.kill().unwrap();
    ended(child);
    scene.recover();
    let found = timeless(&look(&scene.root()));
    assert!(found == timeless(&scene.old) || found == timeless(&scene.new), "seed {seed}: {found:#?}");
    assert!(scene.journal_is_empty());
    unlock(&scene.root());
}

#[test]
fn a_checkout_that_was_broken_off_is_taken_away() {
    let dir = tempfile::tempdir().unwrap();
    let scene = fixed(dir.path());
    for name in ["root", "journal"] {
        fs_err::create_dir(dir.path().join(name)).unwrap();
    }
    let (root, journal) = (open_named(&scene.root()).unwrap(), scene.journal());
    let site = Site { root: root.as_fd(), path: &scene.root(), journal: journal.as_fd(), id: "one" };
    // The record as a process leaves it that is killed after its last file.
    let copy = dir.path().join("copy");
    let progress = |_| drop(fs_err::copy(dir.path().join("journal/one"), &copy));
    let options = sandtable_store::checkout::CheckoutOptions { progress: &progress, ..Default::default() };
    checkout_journalled(&scene.objects, &scene.from, &site, &options).unwrap();
    assert!(scene.journal_is_empty());
    assert_eq!(timeless(&look(&scene.root())), timeless(&scene.old));
    fs_err::rename(&copy, dir.path().join("journal/one")).unwrap();
    fs_err::write(scene.root().join("mine"), "x").unwrap();
    fs_err::write(scene.root().join("stays"), "sa").unwrap();
    assert_eq!(scene.recover(), [Recovery::Undone]);
    assert_eq!(look(&scene.root()).into_keys().collect::<Vec<_>>(), [path("mine")]);
    let refused = checkout_journalled(&scene.objects, &scene.from, &site, &options);
    assert!(matches!(
        refused,
        Err(RollbackError::Write(sandtable_store::checkout::CheckoutError::NotEmpty(_)))
    ));
    assert!(scene.journal_is_empty());
}

#[test]
fn every_moment_leads_to_one_of_both_states() {
    if is_child() {
        return;
    }
    let mut dice = Dice::any();
    let (mut undone, mut finished) = (0, 0);
    for _ in 0..setting("SANDTABLE_ROUNDS", 20) {
        at_any_time(&mut dice);
    }
    for _ in 0..setting("SANDTABLE_ROUNDS", 4) {
        let seed = dice.roll(1_000_000) as u64;
        // Every step in turn at first, then faster, so that a long one does not take for ever.
        let mut step = 1;
        loop {
            let dir = tempfile::tempdir().unwrap();
            let scene = Scene::random(dir.path(), &mut Dice::new(seed)).on_disk();
            let ended = broken_off(dir.path(), seed, step);
            let recovered = scene.recover();
            let found = timeless(&look(&scene.root()));
            match recovered[..] {
                [] => assert!(ended, "no journal, though it was killed"),
                [Recovery::Undone] => {
                    undone += 1;
                    assert_eq!(found, timeless(&scene.old), "seed {seed}, step {step}");
                }
                [Recovery::Finished] => finished += 1,
                _ => panic!("{recovered:?}"),
            }
            if !matches!(recovered[..], [Recovery::Undone]) {
                assert_eq!(found, timeless(&scene.new), "seed {seed}, step {step}");
            }
            assert!(scene.journal_is_empty());
            unlock(&scene.root());
            if ended {
                break;
            }
            step += 1 + step / 20;
        }
    }
    assert!(undone > 0 && finished > 0, "{undone} undone, {finished} finished");
}

/// The only record, carried to its end.
pub(crate) fn recovered(scene: &Scene, noted: &dyn Fn(&str) -> std::io::Result<()>) -> Recovered {
    let all = recover(&scene.objects, scene.journal().as_fd(), Verify::Check(&|_, _| None), noted);
    let mut all = all.unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn what_somebody_did_after_it_was_broken_off_stays() {
    // All is staged and `goes` is gone; `comes` is there; so is `edited`.
    for (moment, placed) in [(9, ["comes"].as_slice()), (10, &["comes", "edited"])] {
        for mine in [Some("mine"), Some("old"), None] {
            let dir = tempfile::tempdir().unwrap();
            let scene = edited(dir.path());
            assert!(!broken_off(dir.path(), FIXED, moment));
            assert!(!scene.root().join("goes").exists() && scene.root().join("comes").exists());
            let file = scene.root().join("edited");
            assert_eq!(contains(&file, "new"), placed.contains(&"edited"));
            match mine {
                Some(text) => fs_err::write(&file, text).unwrap(),
                None => fs_err::remove_file(&file).unwrap(),
            }
            let done = recovered(&scene, &|_| Ok(()));
            assert!(matches!(&done.result, Ok(Recovery::Undone)), "{done:?}");
            // Where nothing of ours had come there is nothing to say of an edit.
            let is_named = placed.contains(&"edited") || mine.is_none();
            assert_eq!(done.left_alone, if is_named { vec![path("edited")] } else { Vec::new() });
            assert_eq!((done.id.as_str(), done.target), ("one", scene.root()));
            assert_eq!(fs_err::read_to_string(&file).ok().as_deref(), mine);
            // All the rest is what it was, and nothing of ours is left.
            let (mut found, mut old) = (timeless(&look(&scene.root())), timeless(&scene.old));
            found.remove(&path("edited"));
            old.remove(&path("edited"));
            assert_eq!(found, old);
            assert!(scene.journal_is_empty());
        }
    }
}

/// The scene after a turn, with the record as it was at the last step at which it said so.
fn with_record(dir: &Path, scene: &Scene, phase: &str) {
    let (record, copy) = (dir.join("journal/one"), dir.join("copy"));
    let progress = || {
        if contains(&record, phase) {
            fs_err::copy(&record, &copy).unwrap();
        }
    };
    scene.roll(&RollbackOptions { progress: &progress, note: Some("words"), ..quick() }).unwrap();
    fs_err::rename(&copy, &record).unwrap();
}

#[test]
fn a_directory_that_somebody_removed_meanwhile_stays_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (mut old, mut new) = (Plain::new(), Plain::new());
    set(&mut old, &path("d/f"), Thing::file("old"));
    set(&mut new, &path("d/f"), Thing::file("new"));
    set(&mut new, &path("d/g"), Thing::file("new"));
    set(&mut new, &path("z"), Thing::file("new"));
    let scene = Scene::new(dir.path(), old, new).on_disk();
    with_record(dir.path(), &scene, "\napplying\n");
    fs_err::remove_dir_all(scene.root().join("d")).unwrap();
    let done = recovered(&scene, &|_| Ok(()));
    assert!(matches!(&done.result, Ok(Recovery::Undone)), "{done:?}");
    assert_eq!(done.left_alone, [path("d/f")]);
    assert_eq!(look(&scene.root()).into_keys().count(), 0);
    assert!(scene.journal_is_empty());
}

#[test]
fn what_stands_is_written_down_by_whoever_finds_it() {
    let dir = tempfile::tempdir().unwrap();
    let scene = edited(dir.path());
    with_record(dir.path(), &scene, "\ndone\n");
    fs_err::write(scene.root().join("edited"), "mine").unwrap();
    let heard = std::cell::RefCell::new(String::new());
    let noted = |note: &str| {
        heard.borrow_mut().push_str(note);
        Ok(())
    };
    let done = recovered(&scene, &noted);
    assert!(matches!(&done.result, Ok(Recovery::Finished)), "{done:?}");
    assert_eq!(heard.into_inner(), "words");
    assert!(contains(&scene.root().join("edited"), "mine") && scene.journal_is_empty());
}

#[test]
fn without_what_was_kept_aside_everything_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let scene = edited(dir.path());
    with_record(dir.path(), &scene, "\napplying\n");
    let done = recovered(&scene, &|_| Ok(()));
    assert!(matches!(&done.result, Ok(Recovery::Undone)) && done.left_alone.is_empty(), "{done:?}");
    assert_eq!(timeless(&look(&scene.root())), timeless(&scene.old));
}
