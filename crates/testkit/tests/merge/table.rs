//! Every state a target can be in (`snapshots.md` §5.8) with each of the three ways to bring work there: the right result,
//! or a refusal that says why and leaves every byte where it was.

use sandtable_merge::{Mode, Outcome, Reason};
use sandtable_testkit::env::PATH;
use sandtable_testkit::process::Run;

use crate::states::changed;
use crate::world::{World, host};

/// What must come of it.
#[derive(Clone, Copy, Debug)]
enum Expect {
    Success,
    Conflict,
    Refused(Reason),
}

use Expect::{Conflict, Refused, Success};

const FINE: [Expect; 3] = [Success; 3];

/// A state, how it comes about once the sandbox has its copy, and what merge, apply and a branch make of it. The sandbox
/// changes `README` and adds `new.txt`.
struct State {
    name: &'static str,
    make: fn(&World),
    expect: [Expect; 3],
}

const fn state(name: &'static str, make: fn(&World), expect: [Expect; 3]) -> State {
    State { name, make, expect }
}

fn lock(world: &World, name: &str) {
    fs_err::write(world.repo().join(".git").join(name), "").unwrap();
}

fn sign(world: &World, name: &str) {
    fs_err::write(world.repo().join(".git").join(name), world.git(&["rev-parse", "HEAD"])).unwrap();
}

const LOCKED: [Expect; 3] = [Refused(Reason::Locked), Refused(Reason::Locked), Success];
const BUSY: [Expect; 3] = [Refused(Reason::Operation), Refused(Reason::Operation), Success];

const STATES: &[State] = &[
    state("clean", |_| {}, FINE),
    state("dirty elsewhere", |world| world.write("docs/guide.txt", "dirty\n"), FINE),
    state("the same change on disk", |world| world.write("README", "Another.\n"), FINE),
    state(
        "another change of the same file",
        |world| world.write("README", "Mine.\n"),
        [Refused(Reason::Dirty), Conflict, Success],
    ),
    state(
        "staged elsewhere, then changed again",
        |world| {
            world.write("src/main.c", "staged\n");
            world.git(&["add", "src/main.c"]);
            world.write("src/main.c", "changed\n");
        },
        FINE,
    ),
    state(
        "another change of the same file staged",
        |world| {
            world.write("README", "Mine.\n");
            world.git(&["add", "README"]);
            world.write("README", "A sample.\n");
        },
        [Refused(Reason::Dirty), Success, Success],
    ),
    state("the same file untracked", |world| world.write("new.txt", "new\n"), FINE),
    state(
        "another file untracked in the way",
        |world| world.write("new.txt", "mine\n"),
        [Refused(Reason::Dirty), Conflict, Success],
    ),
    state(
        "a directory in the way",
        |world| world.write("new.txt/mine", "mine\n"),
        [Refused(Reason::Dirty), Refused(Reason::Dirty), Success],
    ),
    state(
        "an ignored file elsewhere",
        |world| {
            fs_err::write(world.repo().join(".git/info/exclude"), "*.log\n").unwrap();
            world.write("build.log", "x\n");
        },
        FINE,
    ),
    state(
        "a change hidden by assume-unchanged",
        |world| {
            world.write("README", "Mine.\n");
            world.git(&["update-index", "--assume-unchanged", "README"]);
        },
        [Refused(Reason::Dirty), Conflict, Success],
    ),
    state(
        "only announced to the index",
        |world| {
            world.write("new.txt", "new\n");
            world.git(&["add", "-N", "new.txt"]);
        },
        FINE,
    ),
    state("the index locked", |world| lock(world, "index.lock"), LOCKED),
    state("HEAD locked", |world| lock(world, "HEAD.lock"), LOCKED),
    state("the branch locked", |world| lock(world, "refs/heads/main.lock"), LOCKED),
    state(
        "HEAD detached",
        |world| drop(world.git(&["checkout", "-q", "--detach"])),
        [Refused(Reason::Detached), Success, Success],
    ),
    state("a merge in progress", |world| sign(world, "MERGE_HEAD"), BUSY),
    state("a cherry-pick in progress", |world| sign(world, "CHERRY_PICK_HEAD"), BUSY),
    state("a revert in progress", |world| sign(world, "REVERT_HEAD"), BUSY),
    state("a bisection in progress", |world| sign(world, "BISECT_LOG"), BUSY),
    state(
        "a rebase in progress",
        |world| fs_err::create_dir(world.repo().join(".git/rebase-merge")).unwrap(),
        BUSY,
    ),
    state(
        "commits made meanwhile",
        |world| {
            world.write("docs/guide.txt", "meanwhile\n");
            world.commit("meanwhile");
        },
        FINE,
    ),
    state(
        "another commit on the same file",
        |world| {
            world.write("README", "Mine.\n");
            world.commit("mine");
        },
        [Conflict; 3],
    ),
    state(
        "the base rebased away and collected",
        |world| {
            world.write("docs/guide.txt", "amended\n");
            world.git(&["commit", "-q", "-a", "--amend", "-m", "rewritten"]);
            world.git(&["reflog", "expire", "--expire=now", "--all"]);
            world.git(&["gc", "-q", "--prune=now"]);
        },
        FINE,
    ),
    state("references packed", |world| drop(world.git(&["pack-refs", "--all"])), FINE),
    state(
        "sparse",
        |world| drop(world.git(&["sparse-checkout", "set", "--cone", "--no-sparse-index", "src"])),
        FINE,
    ),
    state("an index of version 4", |world| drop(world.git(&["update-index", "--index-version", "4"])), FINE),
    state("a split index", |world| drop(world.git(&["update-index", "--split-index"])), FINE),
    state(
        "a stash",
        |world| {
            world.write("docs/guide.txt", "stashed\n");
            world.git(&["stash", "-q"]);
        },
        FINE,
    ),
    state("line ends converted", |world| drop(world.git(&["config", "core.autocrlf", "true"])), FINE),
    state(
        "a filter that is a program",
        |world| {
            world.write(".gitattributes", "README filter=lfs\n");
            world.commit("filter");
            world.write("README", "version 2 of a pointer\n");
            world.git(&["-c", "filter.lfs.clean=cat", "commit", "-q", "-a", "-m", "pointer"]);
            world.write("README", "A sample.\n");
        },
        [Refused(Reason::Filtered), Success, Refused(Reason::Filtered)],
    ),
    state(
        "a populated submodule",
        |world| {
            world.git_in(world.root(), &["clone", "-q", "repo", "module"]);
            world.git(&[
                "-c",
                "protocol.file.allow=always",
                "submodule",
                "--quiet",
                "add",
                "../module",
                "sub",
            ]);
            world.commit("submodule");
        },
        FINE,
    ),
    state(
        "signatures required",
        |world| drop(world.git(&["config", "commit.gpgSign", "true"])),
        [Refused(Reason::Signing), Success, Success],
    ),
    state(
        "the branch checked out twice",
        |world| {
            world.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
            let head = world.repo().join(".git/worktrees/linked/HEAD");
            fs_err::write(head, "ref: refs/heads/main\n").unwrap();
        },
        [Refused(Reason::CheckedOutTwice), Success, Success],
    ),
    state(
        "a git directory that could be the sandbox's",
        |world| {
            fs_err::rename(world.repo().join(".git"), world.repo().join("evil")).unwrap();
            fs_err::write(world.repo().join(".git"), "gitdir: evil\n").unwrap();
        },
        [Refused(Reason::GitDirectory); 3],
    ),
];

impl World {
    /// The same world in another place, which goes with the first.
    fn again(&self, name: &str) -> Self {
        let root = self.root().join(name);
        fs_err::create_dir(&root).unwrap();
        let copy =
            Run::new("cp", self.root()).variable("PATH", PATH).args(["-a", "repo", "store", "home", name]);
        drop(copy.ended().expect_code(0));
        Self::at(&root)
    }
}

/// Each state for one of the ways.
fn every_state(number: usize, mode: &Mode) {
    let first = World::new();
    let base = changed(&first);
    let snapshot = first.snapshot(&first.inside(), Some(&base));
    for (place, State { name, make, expect }) in STATES.iter().enumerate() {
        let world = first.again(&format!("case-{place}"));
        make(&world);
        let before = world.fingerprint();
        let outcome = world.merge(&world.request_of(base, snapshot, mode.clone()));
        let what = format!("{name}, {}: {:?}", mode.name(), outcome.outcome);
        match (&outcome.outcome, expect[number]) {
            (Outcome::Refused { refusal }, Refused(reason)) if refusal.reason == reason => {}
            (Outcome::Conflicts { .. }, Conflict) => {}
            (_, Success) if outcome.success => {
                if *mode == Mode::Merge {
                    assert_eq!(world.git(&["show", "HEAD:README"]), "Another.\n", "{what}");
                }
                continue;
            }
            _ => panic!("{what}"),
        }
        assert_eq!(before.differences(&world.fingerprint()), [""; 0], "{what}");
        assert!(!outcome.success && !outcome.message.is_empty(), "{what}");
        assert_eq!(outcome.kept_at, host(&world.store()), "{what}");
    }
}

#[test]
fn every_state_with_a_merge() {
    every_state(0, &Mode::Merge);
}

#[test]
fn every_state_with_an_apply() {
    every_state(1, &Mode::Apply);
}

#[test]
fn every_state_with_a_branch() {
    every_state(2, &Mode::Branch("b".to_owned()));
}
