//! What a sandbox leaves behind may be made so that reading it hangs or needs all memory. Every command that works on the
//! host ends in bounded time and memory on each of these trees, with a code that is expected of it.
//!
//! The limit of time is one of processor time, of the command and all that it starts; the wall clock is looked at too, with
//! the limit multiplied by the load of the machine. The limit of memory is one of a single process, not of all together.

mod pipes;
mod trees;
mod watch;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};
use sandtable_testkit::env::TestEnv;
use sandtable_testkit::require;

use watch::{Taken, below, load, measured};

/// What one command may take, with all programs that it starts: of the processor, however busy the machine is, and of
/// the clock on a machine that is not.
const SECONDS: u64 = 20;
const KILOBYTES: u64 = 512 << 10;

/// A call, and the codes that it may end with.
type Command = (&'static str, &'static [i32]);

const DONE: &[i32] = &[0];
/// Work may be held for a review, or refused.
const DONE_OR_HELD: &[i32] = &[0, 1];

/// The commands in the order in which they are called; `STATE` is the newest state of the sandbox, `DIR` a new directory.
const COMMANDS: [Command; 21] = [
    ("ls", DONE),
    ("inspect box", DONE),
    ("snapshot box", DONE),
    ("diff box", DONE),
    ("diff --json box", DONE),
    ("merge --dry-run box", DONE_OR_HELD),
    ("merge box", DONE_OR_HELD),
    ("apply box", DONE_OR_HELD),
    ("export --patch DIR.patch box", DONE_OR_HELD),
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
];

#[test]
fn every_command_ends_in_time_and_within_its_memory() {
    if require::program("perl").is_none() {
        return require::skip("the trees are made by perl");
    }
    let mut table = String::from("tree | command | code | seconds | MiB\n");
    let mut wrong = Vec::new();
    for tree in trees::all() {
        let Some(env) = TestEnv::of_the_executable() else { return };
        let source = env.repository("source");
        (tree.before)(&env, &source);
        let mut note = |(command, codes): Command, taken: &Taken| {
            let code = taken.code.map_or_else(|| "killed".to_owned(), |code| code.to_string());
            let (seconds, mib) = (taken.time.as_secs_f64(), taken.kilobytes >> 10);
            writeln!(table, "{} | {command} | {code} | {seconds:.2} | {mib}", tree.name).unwrap();
            let in_time = taken.work < Duration::from_secs(SECONDS);
            let expected = taken.code.is_some_and(|code| codes.contains(&code));
            if !expected || !in_time || taken.kilobytes > KILOBYTES {
                let work = taken.work.as_secs_f64();
                let took = format!("{seconds:.2} s, {work:.2} s of work, {mib} MiB");
                wrong.push(format!("{}: `{command}`: {code}, {took}\n{}", tree.name, taken.said));
            }
        };
        let words = ["run", "--name", "box", "--", "perl", "-e", &tree.script];
        note(("run", DONE), &measured(&env, &source, &words));
        let said = env.sandtable().directory(&source).args(["snapshot", "box"]).ended();
        let state = said.stdout.split_whitespace().next().unwrap_or("none").to_owned();
        for &(line, codes) in tree.more.iter().chain(&COMMANDS) {
            let dir = env.root().join("out");
            let word = |word: &str| word.replace("STATE", &state).replace("DIR", dir.to_str().unwrap());
            let words: Vec<String> = line.split(' ').map(word).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            note((line, codes), &measured(&env, &source, &words));
        }
    }
    require::say(&table);
    assert!(wrong.is_empty(), "\n{}\n\n{table}", wrong.join("\n"));
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
