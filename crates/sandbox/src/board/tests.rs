//! Directories brought from state to state, where some states were recorded with ignored files and some without.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use sandtable_store::id::ObjectId;
use sandtable_store::meta::Direction;
use sandtable_store::meta::OperationKind;
use sandtable_store::state::{Limits, Walk};

use super::{Board, BoardError, Ignored, Taking};
use crate::model::path::HostPath;

type Files = BTreeMap<PathBuf, Vec<u8>>;

#[derive(Clone, Debug)]
enum Act {
    Write(usize, u8),
    Remove(usize),
    /// Lets the rules in one of the directories be others.
    Rules(usize, usize),
    /// As a command in a sandbox does, or as the user does.
    Record(Ignored),
    Rollback(usize),
    Undo,
    Redo,
}

const FILES: [&str; 10] = [
    ".env",
    "main.c",
    "main.o",
    "a/.env",
    "a/x.c",
    "a/x.o",
    "a/b/y.c",
    "a/b/y.o",
    "build/out",
    "build/a/x.c",
];
const LISTS: [&str; 4] = [".gitignore", "a/.gitignore", "a/b/.gitignore", "build/.gitignore"];
const RULES: [&str; 7] = ["*\n", "*.o\n", ".env\nbuild/\n", "b/\n", "*\n!*.c\n", "/x.o\n!.gitignore\n", "\n"];

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0..FILES.len(), any::<u8>()).prop_map(|(file, byte)| Act::Write(file, byte)),
        1 => (0..FILES.len()).prop_map(Act::Remove),
        2 => (0..LISTS.len(), 0..=RULES.len()).prop_map(|(list, rules)| Act::Rules(list, rules)),
        2 => Just(Act::Record(Ignored::All)),
        2 => Just(Act::Record(Ignored::None)),
        1 => Just(Act::Record(Ignored::Changed)),
        3 => any::<usize>().prop_map(Act::Rollback),
        2 => Just(Act::Undo),
        1 => Just(Act::Redo),
    ];
    let rules = (0..LISTS.len(), 0..RULES.len()).prop_map(|(list, rules)| Act::Rules(list, rules));
    let file = (0..FILES.len(), any::<u8>()).prop_map(|(file, byte)| Act::Write(file, byte));
    // Begins with files, some of them ignored, and a state without those; then a way back to it is taken.
    let begin = (prop::collection::vec(rules, 1..4), prop::collection::vec(file, 4..10));
    (begin, prop::collection::vec(act, 2..12)).prop_map(|((rules, files), acts)| {
        let first = rules.into_iter().chain(files).chain([Act::Record(Ignored::None)]);
        first.chain(acts).chain([Act::Rollback(0), Act::Undo, Act::Redo]).collect()
    })
}

/// A directory and what is known of the states that were recorded of it.
struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
    board: Board,
    /// Each with the files that were there when it was recorded and that it does not have.
    silent: Vec<(ObjectId, BTreeSet<PathBuf>)>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().join("root");
        fs_err::create_dir(&root).expect("a directory");
        let board = Board::new(&HostPath::new(dir.path().join("data")).expect("it is absolute"));
        Self { _dir: dir, root, board, silent: Vec::new() }
    }

    fn files(&self) -> Files {
        let mut files = Files::new();
        let mut open = vec![PathBuf::new()];
        while let Some(at) = open.pop() {
            for entry in fs_err::read_dir(self.root.join(&at)).expect("it can be listed") {
                let entry = entry.expect("it can be listed");
                let path = at.join(entry.file_name());
                if entry.file_type().expect("a kind").is_dir() {
                    open.push(path);
                } else {
                    files.insert(path, fs_err::read(entry.path()).expect("it can be read"));
                }
            }
        }
        files
    }

    /// Knows the newest state.
    fn note(&mut self, id: ObjectId) {
        let found = self.board.snapshot(&id.to_string()).expect("it was recorded");
        let (state, objects) = (found.state().expect("a state"), found.store.objects());
        let mut held = BTreeSet::new();
        let mut walk = Walk::new(objects, &state, Limits::default()).expect("a state");
        while let Some(visit) = walk.next().expect("a state") {
            held.insert(PathBuf::from(OsStr::from_bytes(visit.path.as_bytes())));
        }
        let silent = self.files().into_keys().filter(|path| !held.contains(path)).collect();
        self.silent.push((id, silent));
    }

    fn write(&self, path: &Path, bytes: &[u8]) {
        let path = self.root.join(path);
        fs_err::create_dir_all(path.parent().expect("it is in a directory")).expect("a directory");
        fs_err::write(path, bytes).expect("a file");
    }

    fn record(&mut self, ignored: Ignored) {
        let operation =
            if ignored == Ignored::All { OperationKind::Snapshot } else { OperationKind::Onboard };
        let taking = Taking::of(ignored, &operation, &());
        let taken = self.board.snapshot_directory(&self.root, &taking).expect("it is recorded");
        self.note(taken.snapshot.id);
    }

    /// Goes to a state, and looks whether what it never spoke of is as it was.
    fn go(&mut self, go: impl FnOnce(&Self) -> Result<ObjectId, BoardError>) {
        let before = self.files();
        let Ok(to) = go(self) else {
            // Nothing may have been touched.
            return assert_eq!(self.files(), before);
        };
        let after = self.files();
        // What a rollback recorded first holds everything.
        let Some((_, silent)) = self.silent.iter().find(|(id, _)| *id == to) else { return };
        for (path, bytes) in before.iter().filter(|(path, _)| silent.contains(*path)) {
            assert_eq!(after.get(path), Some(bytes), "{} on the way to {to}", path.display());
        }
    }

    fn step(&mut self, direction: Direction) {
        self.go(|world| world.board.step(&world.root, direction).map(|(_, turned)| turned.to));
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Write(file, byte) => self.write(Path::new(FILES[file]), &[byte; 3]),
            Act::Remove(file) => drop(fs_err::remove_file(self.root.join(FILES[file]))),
            Act::Rules(list, rules) => match RULES.get(rules) {
                Some(rules) => self.write(Path::new(LISTS[list]), rules.as_bytes()),
                None => drop(fs_err::remove_file(self.root.join(LISTS[list]))),
            },
            Act::Record(ignored) => self.record(ignored),
            Act::Rollback(which) if !self.silent.is_empty() => {
                let to = self.silent[which % self.silent.len()].0;
                self.go(|world| {
                    let found = world.board.snapshot(&to.to_string())?;
                    world.board.rollback(&found, &world.root).map(|turned| turned.to)
                });
            }
            Act::Rollback(_) => {}
            Act::Undo => self.step(Direction::Undo),
            Act::Redo => self.step(Direction::Redo),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_a_state_never_spoke_of_stays_on_the_way_to_it(acts in acts()) {
        let mut world = World::new();
        for act in &acts {
            world.act(act);
        }
    }
}

/// Whoever comes second finds what the first one wrote, and brings the directory to the state it was asked for.
#[test]
fn two_checkouts_into_one_directory_at_once_leave_one_that_is_known() {
    let mut world = World::new();
    let states = ["one", "two"].map(|text| {
        for file in FILES {
            world.write(Path::new(file), text.as_bytes());
        }
        world.record(Ignored::All);
        world.silent.last().expect("it was recorded").0.to_string()
    });
    for round in 0..20 {
        let target = world.root.with_file_name(format!("out-{round}"));
        let together = std::sync::Barrier::new(states.len());
        std::thread::scope(|scope| {
            for state in &states {
                scope.spawn(|| {
                    let found = world.board.snapshot(state).expect("it was recorded");
                    together.wait();
                    world.board.checkout_snapshot(&found, &target).expect("it is written");
                });
            }
        });
        let found = world.board.snapshot(&states[0]).expect("it was recorded");
        world.board.checkout_snapshot(&found, &target).expect("a state was written into it before");
        for file in FILES {
            assert_eq!(fs_err::read_to_string(target.join(file)).expect("it is there"), "one", "{round}");
        }
    }
}
