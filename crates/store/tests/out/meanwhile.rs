//! What somebody saves while a directory is turned: it is never lost.

use std::cell::Cell;
use std::path::Path;

use sandtable_store::RelPath;
use sandtable_store::rollback::{RollbackError, RollbackOptions, Verify};

use crate::checkout::unlock;
use crate::rollback::{Scene, contains, edited, quick};
use crate::states::{Plain, Thing, at, look, path, set, timeless};
use crate::support::{Dice, held_back};

/// Whether a file somewhere below has this in it.
fn is_kept(root: &Path, text: &str) -> bool {
    fs_err::read_dir(root).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() { is_kept(&path, text) } else { contains(&path, text) }
    })
}

/// Saves as most editors do: a new file takes the name.
fn save(file: &Path) -> std::io::Result<()> {
    let draft = file.with_extension("draft");
    fs_err::write(&draft, "mine")?;
    fs_err::rename(draft, file)
}

fn append(file: &Path) -> std::io::Result<()> {
    use std::io::Write as _;
    fs_err::OpenOptions::new().create(true).append(true).open(file)?.write_all(b"mine")
}

#[test]
fn what_somebody_saves_meanwhile_is_not_lost() {
    let verifies = [Verify::Trust, Verify::Check(&|_, _| None)];
    for (verify, saves) in [(0, append as fn(&Path) -> _), (0, save), (1, append), (1, save)] {
        for (name, moment) in ["edited", "goes/f", "comes"]
            .into_iter()
            .flat_map(|name| (1..30).map(move |moment| (name, moment)))
        {
            let dir = tempfile::tempdir().unwrap();
            let scene = edited(dir.path());
            let (step, saved) = (Cell::new(0), Cell::new(false));
            let progress = || {
                step.set(step.get() + 1);
                if step.get() == moment {
                    saved.set(saves(&scene.root().join(name)).is_ok());
                }
            };
            let options = RollbackOptions { verify: verifies[verify], progress: &progress, ..quick() };
            let turned = scene.roll(&options);
            let case = format!("{name} at {moment}: {turned:?}");
            assert!(!saved.get() || is_kept(&scene.root(), "mine"), "{case}");
            assert!(scene.journal_is_empty(), "{case}");
            if let Err(error) = turned {
                assert!(
                    matches!(&error, RollbackError::Changed(paths) if paths.contains(&path(name))),
                    "{case}"
                );
                let mut found = timeless(&look(&scene.root()));
                let mut old = timeless(&scene.old);
                for plain in [&mut found, &mut old] {
                    plain.retain(|path, _| !path.as_bytes().starts_with(name.as_bytes()));
                }
                assert_eq!(found, old, "{case}");
            }
        }
    }
}

#[test]
fn no_edit_beside_a_turn_is_lost() {
    use std::sync::atomic::{AtomicBool, Ordering};
    const FILES: usize = 500;
    let mut dice = Dice::any();
    for round in 0..6 {
        let dir = tempfile::tempdir().unwrap();
        let (mut old, mut new) = (Plain::new(), Plain::new());
        let name = |number: usize| path(&format!("d{}/f{number}", number % 7));
        for number in 0..FILES {
            set(&mut old, &name(number), Thing::file("old\n"));
            if number % 5 != 0 {
                set(&mut new, &name(number), Thing::file("new\n"));
            }
        }
        let scene = Scene::new(dir.path(), old, new).on_disk();
        let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let verify = if round % 2 == 0 { Verify::Trust } else { Verify::Check(&|_, _| None) };
        let mut edits = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !begun.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
                while !ended.load(Ordering::SeqCst) {
                    let file = at(&scene.root(), &name(dice.roll(FILES)));
                    let edit = format!("edit {} of this round.", edits.len());
                    let opened = std::fs::OpenOptions::new().append(true).open(&file);
                    if opened
                        .is_ok_and(|mut file| std::io::Write::write_all(&mut file, edit.as_bytes()).is_ok())
                    {
                        edits.push(edit);
                    }
                    // The first ones come late, so that something is under way.
                    std::thread::sleep(std::time::Duration::from_micros(300));
                }
            });
            let steps = Cell::new(0);
            let progress = || {
                steps.set(steps.get() + 1);
                begun.store(steps.get() > FILES + 50 * round, Ordering::SeqCst);
            };
            drop(scene.roll(&RollbackOptions { verify, progress: &progress, ..quick() }));
            begun.store(true, Ordering::SeqCst);
            ended.store(true, Ordering::SeqCst);
        });
        let lost: Vec<_> = edits.iter().filter(|edit| !is_kept(&scene.root(), edit)).collect();
        assert!(lost.is_empty(), "round {round}: {} of {} edits: {lost:?}", lost.len(), edits.len());
        assert!(scene.journal_is_empty());
    }
}

/// A file that gets a successor in a directory that nobody may write to afterwards, and what somebody wrote to it last.
fn written_to(name: &str, taken: &[&str]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let (mut old, mut new) = (Plain::new(), Plain::new());
    set(&mut old, &path("d"), Thing::directory(0o755));
    set(&mut new, &path("d"), Thing::directory(0o555));
    for taken in taken {
        set(&mut old, &path(&format!("d/{taken}")), Thing::file("theirs"));
        set(&mut new, &path(&format!("d/{taken}")), Thing::file("theirs"));
    }
    set(&mut old, &path(&format!("d/{name}")), Thing::file("old"));
    set(&mut new, &path(&format!("d/{name}")), Thing::file("new"));
    let scene = Scene::new(dir.path(), old, new).on_disk();
    let file = scene.root().join("d").join(name);
    let handle = fs_err::OpenOptions::new().append(true).open(&file).unwrap();
    let progress = || {
        if contains(&file, "new") && handle.metadata().unwrap().len() == 3 {
            std::io::Write::write_all(&mut handle.file(), b"mine").unwrap();
        }
    };
    let outcome = scene.roll(&RollbackOptions { progress: &progress, ..quick() }).unwrap();
    assert!(scene.journal_is_empty());
    for beside in &outcome.beside {
        assert!(contains(&at(&scene.root(), beside), "oldmine"));
    }
    let mut found = timeless(&look(&scene.root()));
    found.retain(|path, _| !outcome.beside.contains(path));
    assert_eq!(found, timeless(&scene.new), "the directory has its permissions");
    unlock(&scene.root());
    outcome.beside.iter().map(RelPath::display_escaped).collect()
}

#[test]
fn what_is_kept_beside_finds_a_place_in_a_directory_that_is_locked() {
    let beside = held_back(|| written_to("f", &[]));
    assert_eq!(beside, ["d/f.sandtable-one"]);
}

#[test]
fn what_is_kept_beside_finds_a_name() {
    let taken = ["f.sandtable-one", "f.sandtable-one-1"];
    assert_eq!(written_to("f", &taken), ["d/f.sandtable-one-2"]);
    let long = format!("a{}", "\u{e9}".repeat(127));
    assert_eq!(written_to(&long, &[]), [format!("d/a{}.sandtable-one", "\u{e9}".repeat(120))]);
}
