//! What a sandbox leaves behind may be made to hang or to swell whoever looks at it. Every command that works on the host
//! ends in bounded time and memory on each of these trees, whatever it answers.

mod trees;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use sandtable_testkit::env::TestEnv;
use sandtable_testkit::require;

/// What one command may take, with all programs that it starts.
const SECONDS: u64 = 20;
const KILOBYTES: u64 = 512 << 10;

/// The commands in the order in which they are called; `STATE` is the newest state of the sandbox, `DIR` a new directory.
const COMMANDS: [&str; 16] = [
    "ls",
    "inspect box",
    "snapshot box",
    "diff box",
    "diff --json box",
    "merge --dry-run box",
    "merge box",
    "apply box",
    "export --patch DIR.patch box",
    "checkout STATE DIR",
    "rollback STATE box",
    "undo box",
    "log box",
    "store fsck",
    "store gc",
    "rm -f box",
];

/// What one command took.
struct Taken {
    code: Option<i32>,
    time: Duration,
    kilobytes: u64,
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
        let mut note = |command: &str, taken: &Taken| {
            let code = taken.code.map_or_else(|| "killed".to_owned(), |code| code.to_string());
            let (seconds, mib) = (taken.time.as_secs_f64(), taken.kilobytes >> 10);
            writeln!(table, "{} | {command} | {code} | {seconds:.2} | {mib}", tree.name).unwrap();
            if taken.code.is_none_or(is_internal) || taken.kilobytes > KILOBYTES {
                wrong.push(format!("{}: `{command}`: {code}, {seconds:.2} s, {mib} MiB", tree.name));
            }
        };
        note("run", &measured(&env, &source, &["run", "--name", "box", "--", "perl", "-e", &tree.script]));
        let said = env.sandtable().directory(&source).args(["snapshot", "box"]).ended();
        let state = said.stdout.split_whitespace().next().unwrap_or("none").to_owned();
        for line in tree.more.iter().chain(&COMMANDS) {
            let dir = env.root().join("out");
            let word = |word: &str| word.replace("STATE", &state).replace("DIR", dir.to_str().unwrap());
            let words: Vec<String> = line.split(' ').map(word).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            note(line, &measured(&env, &source, &words));
        }
    }
    require::say(&table);
    assert!(wrong.is_empty(), "\n{}\n\n{table}", wrong.join("\n"));
}

/// Whether a command ended by an error of its own making: a panic, or a signal, which the shell tells by a larger number.
const fn is_internal(code: i32) -> bool {
    code == 101 || code > 125
}

/// Calls the executable in a process group of its own, and watches all of it.
fn measured(env: &TestEnv, source: &Path, args: &[&str]) -> Taken {
    let aside = env.root().join("said");
    let script = format!("exec \"$@\" >{0} 2>&1 </dev/null", aside.display());
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
    let code = status.and_then(|status| status.code());
    if code.is_none_or(is_internal) {
        let said = fs_err::read(&aside).unwrap_or_default();
        require::say(&String::from_utf8_lossy(&said[said.len().saturating_sub(2000)..]));
    }
    Taken { code, time: began.elapsed(), kilobytes }
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
