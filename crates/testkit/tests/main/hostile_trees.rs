//! What a sandbox leaves behind may be made so that reading it hangs or needs all memory. Every command that works on the
//! host ends in bounded time and memory on each of these trees, with a code that is expected of it.
//!
//! The limit of time is one of processor time, of the command and all that it starts; the wall clock is looked at too, with
//! the limit multiplied by the load of the machine. The limit of memory is one of a single process, not of all together.

mod pipes;
mod trees;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use sandtable_testkit::env::TestEnv;
use sandtable_testkit::require;

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

/// What one command took.
struct Taken {
    code: Option<i32>,
    time: Duration,
    /// Of the processor, by the command and all programs that it started.
    work: Duration,
    kilobytes: u64,
    /// The end of what it said.
    said: String,
}

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

/// Calls the executable in a process group of its own, and watches all of it.
fn measured(env: &TestEnv, source: &Path, args: &[&str]) -> Taken {
    let (aside, clock) = (env.root().join("said"), env.root().join("times"));
    let _none = fs_err::remove_file(&clock);
    let script = format!(
        "\"$@\" >{} 2>&1 </dev/null; code=$?; times >{}; exit $code",
        aside.display(),
        clock.display()
    );
    let run = env.sandtable().directory(source).args(args);
    let mut child = run.through(["setsid", "--wait", "sh", "-c", &script, "sh"]).started();
    let (began, limit) = (Instant::now(), Duration::from_secs(SECONDS).mul_f64(load()));
    let mut kilobytes = 0;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        kilobytes = kilobytes.max(memory(child.id()));
        if began.elapsed() > limit {
            for pid in below(child.id()) {
                let _gone = Pid::from_raw(pid.cast_signed()).map(|pid| kill_process_group(pid, Signal::KILL));
            }
            child.kill().ok();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let time = began.elapsed();
    let said = fs_err::read(&aside).unwrap_or_default();
    let said = String::from_utf8_lossy(&said[said.len().saturating_sub(2000)..]).into_owned();
    let work = fs_err::read_to_string(&clock).map_or(time, |text| children(&text));
    Taken { code: status.and_then(|status| status.code()), time, work, kilobytes, said }
}

/// The second line of what `times` of a shell prints: user and system time of everything that it waited for, as in
/// `0m1.250s 0m0.500s`.
fn children(times: &str) -> Duration {
    let words = times.lines().nth(1).unwrap().split_whitespace();
    let seconds = words.map(|word| {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m').unwrap();
        60.0 * minutes.parse::<f64>().unwrap() + seconds.parse::<f64>().unwrap()
    });
    Duration::from_secs_f64(seconds.sum())
}

/// How much slower than alone a process is on this machine now: others may be at work on it.
fn load() -> f64 {
    let text = fs_err::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (load / f64::from(u32::try_from(cores).unwrap_or(1))).max(1.0)
}

/// The most memory that any process below this one had so far.
fn memory(pid: u32) -> u64 {
    let peak = |pid: u32| {
        let status = fs_err::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    };
    below(pid).into_iter().filter_map(peak).max().unwrap_or(0)
}

/// A process and all that it started.
fn below(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        at += 1;
        let tasks = fs_err::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let children: Vec<u32> = tasks
            .filter_map(|task| fs_err::read_to_string(task.path().join("children")).ok())
            .flat_map(|text| text.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>())
            .collect();
        found.extend(children);
    }
    found
}
