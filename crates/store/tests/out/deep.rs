//! States of very many directories in each other, with long names. Whoever has a path for each of them, or goes to each from the
//! top, takes time and memory with the square of the depth: minutes where these take a second.

use std::cell::Cell;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use sandtable_store::dir::{names, open_below, open_named};
use sandtable_store::layer::write::{self as layer, exchange_upper, write_upper};
use sandtable_store::object::Memory;
use sandtable_store::remove::remove_tree;
use sandtable_store::rollback::{
    Move, RollbackError, RollbackOptions, RollbackOutcome, Site, Verify, rollback,
};
use sandtable_store::state::State;

use crate::checkout::comb;
use crate::rollback::quick;
use crate::states::{Plain, look, path};

const DEPTH: usize = 1000;
const NAME: [u8; 240] = [b'd'; 240];
/// Of the processor, for one turn. A build for tests takes two seconds, and took a minute.
const MOST: Duration = Duration::from_secs(15);

struct Scene {
    objects: Memory,
    empty: State,
    deep: State,
    dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let objects = Memory::default();
        let (empty, deep) = (State::empty(&objects).unwrap(), comb(&objects, DEPTH, &NAME));
        let dir = tempfile::tempdir().unwrap();
        for name in ["root", "journal"] {
            fs_err::create_dir(dir.path().join(name)).unwrap();
        }
        Self { objects, empty, deep, dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    fn turn(
        &self,
        from: &State,
        to: &State,
        options: &RollbackOptions<'_>,
    ) -> Result<RollbackOutcome, RollbackError> {
        let (root, journal) = (open_named(&self.root()).unwrap(), self.dir.path().join("journal"));
        let journal = open_named(&journal).unwrap();
        let site = Site { root: root.as_fd(), path: &self.root(), journal: journal.as_fd(), id: "one" };
        in_time(|| rollback(&self.objects, Move { from, to }, &site, options))
    }
}

impl Drop for Scene {
    /// What removes the directory of a test cannot go so deep.
    fn drop(&mut self) {
        for name in ["root", "upper"] {
            let _gone = remove_tree(&self.dir.path().join(name));
        }
    }
}

fn in_time<T>(act: impl FnOnce() -> T) -> T {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let began = now();
    let done = act();
    let took = now().checked_sub(began).unwrap();
    assert!(took < MOST, "{took:?}");
    done
}

/// Whether everything is there, at levels near the top, around what is held open, and at the end.
fn assert_deep(root: &Path) {
    let root = open_named(root).unwrap();
    let name = str::from_utf8(&NAME).unwrap();
    let above = |levels: usize| format!("{name}/").repeat(levels);
    for levels in [0, 1, 63, 64, 65, 66, 500, DEPTH - 1] {
        let tooth = path(&format!("{}tooth", above(levels)));
        let found = names(open_below(root.as_fd(), &tooth).unwrap().as_fd()).unwrap();
        assert_eq!(found.len(), 2, "{levels}");
    }
}

#[test]
fn a_layer() {
    let scene = Scene::new();
    let states = (&scene.empty, &scene.deep);
    let options = layer::LayerWriteOptions::default();
    let fill = |upper: std::os::fd::BorrowedFd<'_>| write_upper(&scene.objects, states, upper, &options);
    let outcome = in_time(|| exchange_upper(scene.dir.path(), "upper", fill)).unwrap();
    assert_eq!(outcome.files, DEPTH as u64 + 1);
    assert_deep(&scene.dir.path().join("upper"));
}

#[test]
fn a_directory_there_and_back() {
    let scene = Scene::new();
    for verify in [Verify::Trust, Verify::Check(&|_, _| None)] {
        let options = RollbackOptions { verify, ..quick() };
        let outcome = scene.turn(&scene.empty, &scene.deep, &options).unwrap();
        assert_eq!(outcome.written, 4 * DEPTH as u64 + 1);
        assert_deep(&scene.root());
        let outcome = scene.turn(&scene.deep, &scene.empty, &options).unwrap();
        assert_eq!(outcome.removed, 4 * DEPTH as u64 + 1);
        assert_eq!(look(&scene.root()), Plain::new());
    }
}

/// What is put in place last meets what somebody made meanwhile, and all the rest goes away again.
#[test]
fn a_directory_that_is_put_back() {
    let scene = Scene::new();
    let begun = Cell::new(false);
    let progress = || {
        if !begun.replace(true) {
            fs_err::write(scene.root().join("tooth"), "mine").unwrap();
        }
    };
    let options = RollbackOptions { progress: &progress, ..quick() };
    let refused = scene.turn(&scene.empty, &scene.deep, &options);
    assert!(
        matches!(&refused, Err(RollbackError::Changed(paths)) if paths.contains(&path("tooth"))),
        "{refused:?}"
    );
    let left: Vec<_> = look(&scene.root()).into_keys().collect();
    assert_eq!(left, [path("tooth")]);
}
