//! What a sandbox leaves behind may be made so that reading it hangs or needs all memory. Every command that works on the
//! host ends in bounded time and memory on each of these trees, with a code that is expected of it.
//!
//! The limit of time is one of processor time, of the command and all that it starts; the wall clock is looked at too, with
//! the limit multiplied by the load of the machine. The limit of memory is one of a single process, not of all together.
//! What is held is approved and delivered into the source, and taken back there.

mod pipes;
mod table;
mod trees;
mod watch;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};
use sandtable_testkit::container::{Contained, Kind, add, libraries};
use sandtable_testkit::counts;
use sandtable_testkit::env::{Caller, PATH, TestEnv};
use sandtable_testkit::process::Run;
use sandtable_testkit::require;

use crate::cli::Unused as _;
use table::Table;
use watch::{below, load, measured, watched};

/// What one command may take, with all programs that it starts: of the processor, however busy the machine is, and of
/// the clock on a machine that is not.
const SECONDS: u64 = 20;
const KILOBYTES: u64 = 512 << 10;

/// A call, and the codes that it may end with.
type Command = (&'static str, &'static [i32]);

const DONE: &[i32] = &[0];
/// Work may be held for a review, or refused.
const DONE_OR_HELD: &[i32] = &[0, 1];
/// Nothing of it is held any more; there may be nothing that git would take.
const DELIVERED: &[i32] = &[0, 1];

/// What a delivery says that had nothing to deliver: pipes are in no state, for example.
const NOTHING: [&str; 2] = ["the target has it all already", "there is nothing to bring"];

/// The calls in their order, in rows: after one that did not end with 0, or had nothing to deliver, the rest of its row is left
/// out. `STATE` is the newest
/// state of the sandbox, `DIR` a new directory, and `APPROVED` what lets everything pass that the call before held.
const ROWS: [&[Command]; 6] = [
    &[
        ("ls", DONE),
        ("inspect box", DONE),
        ("snapshot box", DONE),
        ("diff box", DONE),
        ("diff --json box", DONE),
        ("merge --dry-run box", DONE_OR_HELD),
    ],
    &[("merge APPROVED box", DELIVERED), ("ls", DONE), ("undo", DONE), ("redo", DONE), ("undo", DONE)],
    &[("apply --dry-run box", DONE_OR_HELD)],
    &[("apply APPROVED box", DELIVERED), ("diff box", DONE), ("undo", DONE)],
    &[("rollback STATE .", DONE), ("undo", DONE)],
    &[
        ("export --patch DIR.patch --approve all box", DELIVERED),
        ("checkout STATE DIR", DONE),
        ("undo box", DONE),
        // Everything is written anew: for each of these there is nothing of it in the sandbox.
        ("redo box", DONE),
        ("undo box", DONE),
        ("rollback STATE box", DONE),
        ("undo box", DONE),
        ("fork STATE --name other", DONE),
        ("log box", DONE),
        ("store fsck", DONE),
        ("store gc", DONE),
        ("rm -f other", DONE),
        ("rm -f box", DONE),
    ],
];

#[test]
fn every_command_ends_in_time_and_within_its_memory() {
    as_caller("root", Caller::Same);
}

#[test]
fn every_command_of_an_ordinary_user_ends_in_time_and_within_its_memory() {
    as_caller("user", Caller::ordinary());
}

fn as_caller(who: &str, caller: Caller) {
    if require::program("perl").is_none() || !Path::new(watch::TIME).exists() {
        return require::skip("the trees are made by perl and measured by time");
    }
    let mut table = Table::of(who);
    for tree in trees::asked() {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { return };
        let source = env.repository("source");
        (tree.before)(&env, &source);
        let place = Place { env: &env, source: &source };
        let before = place.names();
        let words = ["run", "--name", "box", "--", "perl", "-e", &tree.script];
        let mut said = table.note(&tree, ("run", DONE), measured(&env, &source, &words)).said;
        let state = env.sandtable().directory(&source).args(["snapshot", "box"]).ended().stdout;
        for row in tree.more.iter().chain(&ROWS) {
            for &(line, codes) in *row {
                let words = place.words(line, state.trim(), &approval(&said));
                let taken = table.note(&tree, (line, codes), measured(&env, &source, &words));
                said = taken.said;
                if taken.code != Some(0) || NOTHING.iter().any(|words| said.contains(words)) {
                    break;
                }
            }
        }
        table.close(&tree, &before, &place.names());
    }
    table.end();
}

/// The calls that go through a container engine, for its first process may meet the tree too.
const CONTAINED: [Command; 4] =
    [("snapshot box", DONE), ("diff box", DONE), ("exec -q box -- true", DONE), ("rm -f box", DONE)];

#[test]
fn every_command_with_a_container_ends_in_time_and_within_its_memory() {
    for kind in [Kind::Docker, Kind::Podman] {
        if let Some(world) = Contained::new(kind, Caller::Same) {
            in_containers(&world);
        }
    }
}

fn in_containers(world: &Contained) {
    let Some(image) = world.another("perl", &perl_and_git) else { return };
    let begin = ["run", "-q", "--engine", world.kind.word(), "--image", &image];
    let here = world.env.repository("here");
    let asked = world.sandtable().directory(&here).args(begin).args(["--rm", "--", "perl", "-MPOSIX", "-e"]);
    let asked = asked.arg("exec 'git', 'rev-parse', '--is-inside-work-tree'").ended().expect_code(0);
    assert_eq!(asked.stdout, "true\n");
    let mut table = Table::of(world.kind.word());
    let trees = trees::asked();
    let step = trees.len().div_ceil(usize::try_from(counts::of("hostile-contained")).unwrap());
    for (at, tree) in trees.iter().enumerate().step_by(step) {
        let source = world.env.repository(&format!("source{at}"));
        (tree.before)(&world.env, &source);
        let place = Place { env: &world.env, source: &source };
        let before = place.names();
        let run = world.sandtable().directory(&source).args(begin);
        let run = run.args(["--name", "box", "--", "perl", "-e", &tree.script]);
        let ran = table.note(tree, ("run", DONE), watched(world.env.root(), &run));
        for &(line, codes) in CONTAINED.iter().filter(|_| ran.code == Some(0)) {
            let run = world.sandtable().directory(&source).args(line.split(' '));
            table.note(tree, (line, codes), watched(world.env.root(), &run));
        }
        table.close(tree, &before, &place.names());
    }
    table.end();
    assert_eq!(world.left(), [""; 0]);
}

/// What makes the trees, for an image.
fn perl_and_git(image: &Path) {
    let asked = Run::new("perl", image).variable("PATH", PATH);
    let asked =
        asked.args(["-MPOSIX", "-MCwd", "-e", "print join qq(\\n), values %INC"]).ended().expect_code(0);
    let perl = require::program("perl").unwrap();
    let programs = [perl, require::program("git").unwrap()];
    let loaded: BTreeSet<PathBuf> =
        asked.stdout.lines().filter_map(|file| Some(Path::new(file).parent()?.to_owned())).collect();
    for directory in loaded {
        let place = image.join(directory.strip_prefix("/").unwrap());
        fs_err::create_dir_all(place.parent().unwrap()).unwrap();
        let copy = Run::new("cp", image).variable("PATH", PATH).args(["-a", "-L", "-T"]);
        copy.arg(&directory).arg(&place).ended().expect_code(0).unused();
    }
    for program in programs {
        add(image, libraries(image, &program).into_iter().chain([program]));
    }
    for name in ["head", "mv"] {
        fs_err::os::unix::fs::symlink("busybox", image.join("bin").join(name)).unwrap();
    }
}

/// What is in a directory.
type Names = BTreeSet<OsString>;

/// A source with its world.
struct Place<'a> {
    env: &'a TestEnv,
    source: &'a Path,
}

impl Place<'_> {
    /// What is in the source: in the end, what was there at the beginning.
    fn names(&self) -> Names {
        fs_err::read_dir(self.source).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    fn words(&self, line: &str, state: &str, approval: &str) -> Vec<String> {
        let directory = self.env.home().join("out").display().to_string();
        let filled = line.replace("APPROVED", approval).replace("STATE", state).replace("DIR", &directory);
        filled.split_whitespace().map(str::to_owned).collect()
    }
}

/// The words by which a plan that was shown is approved as a whole.
fn approval(said: &str) -> String {
    let plan = said.rsplit_once("all@").map(|(_, rest)| rest.chars().take_while(char::is_ascii_hexdigit));
    plan.map(|plan| format!("--approve all@{}", plan.collect::<String>())).unwrap_or_default()
}

/// The signals are held back while a merge is made, and what it started hears nothing of them.
#[test]
fn a_merge_that_waits_for_git_ends_at_a_signal() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("source");
    env.sandtable().directory(&source).args(["run", "--name", "box", "--", "touch", "new"]).ended();
    let pipe = env.root().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    env.git(&source, &["config", "include.path", pipe.to_str().unwrap()]);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut child = env.sandtable().directory(&source).args(["merge", "--dry-run", "box"]).started();
        let began = Instant::now();
        // It waits for git, which waits for somebody to write.
        while !below(child.id()).into_iter().any(reads_settings)
            && began.elapsed() < Duration::from_secs(SECONDS)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let began = Instant::now();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(128 + signal.as_raw()), "{signal:?}");
        assert!(began.elapsed() < Duration::from_secs(10).mul_f64(load()), "{signal:?}");
    }
}

/// Whether it is the git that is asked for the configuration.
fn reads_settings(pid: u32) -> bool {
    fs_err::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| String::from_utf8_lossy(&line).contains("\0config\0--list"))
}
