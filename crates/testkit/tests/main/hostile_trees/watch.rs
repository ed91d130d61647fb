//! What a command takes: of the clock, of the processor, and of memory.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use sandtable_testkit::env::TestEnv;
use sandtable_testkit::process::Run;

use super::SECONDS;

/// The program that asks the kernel what another one took; a shell has a word of the same name.
pub(super) const TIME: &str = "/usr/bin/time";

/// What one command took.
pub(super) struct Taken {
    pub(super) code: Option<i32>,
    pub(super) time: Duration,
    /// Of the processor, by the command and all programs that it started.
    pub(super) work: Duration,
    pub(super) kilobytes: u64,
    /// The end of what it said.
    pub(super) said: String,
}

/// Calls the executable, and watches all of it.
pub(super) fn measured<T: AsRef<OsStr>>(env: &TestEnv, source: &Path, args: &[T]) -> Taken {
    watched(env.root(), &env.sandtable().directory(source).args(args))
}

/// Runs a program in a process group of its own, and watches all of it. What is waited for is counted by the kernel, however
/// short it lives; what is not, by looking at it again and again.
pub(super) fn watched(place: &Path, run: &Run) -> Taken {
    let (aside, sums) = (place.join("said"), place.join("sums"));
    let _none = fs_err::remove_file(&sums);
    let script = format!("exec \"$@\" >{} 2>&1 </dev/null", aside.display());
    let sums_text = sums.display().to_string();
    let time = [TIME, "--quiet", "--format=%U %S %M", "--output", &sums_text];
    let words = ["setsid", "--wait"].into_iter().chain(time).chain(["sh", "-c", &script, "sh"]);
    let mut child = run.clone().through(words).started();
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
    // There are none of a program that was killed here.
    let (work, most) = fs_err::read_to_string(&sums).ok().and_then(|text| summed(&text)).unwrap_or((time, 0));
    Taken { code: status.and_then(|status| status.code()), time, work, kilobytes: kilobytes.max(most), said }
}

/// User and system time of everything that was waited for, and the most memory of any of it, as in `1.25 0.50 20480`.
fn summed(text: &str) -> Option<(Duration, u64)> {
    let mut words = text.split_whitespace();
    let seconds: f64 = words.next()?.parse::<f64>().ok()? + words.next()?.parse::<f64>().ok()?;
    Some((Duration::from_secs_f64(seconds), words.next()?.parse().ok()?))
}

/// How much slower than alone a process is on this machine now: others may be at work on it.
pub(super) fn load() -> f64 {
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
pub(super) fn below(pid: u32) -> Vec<u32> {
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
