//! Ctrl-C during a copy or a recording: the command exits soon, with 130, and leaves nothing incomplete.
//!
//! `strace` delays every open in the source, so that the operation would take a minute. The signal is sent after some files
//! were opened and while the process holds signals back.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sandtable_testkit::env::TestEnv;

use crate::broken_off::{call, each};
use crate::cli::Unused as _;

/// The number of files, and the delay of each open in microseconds.
const FILES: usize = 4000;
const SLOWNESS: u32 = 50_000;
/// How long to wait for an expected condition.
const PATIENCE: Duration = Duration::from_mins(2);

fn source(env: &TestEnv, name: &str) -> PathBuf {
    let source = env.root().join(name);
    for number in 0..FILES {
        env.file(&source.join(format!("f{number:04}")), format!("{number}\n"));
    }
    source
}

/// A running command with slow opens.
struct Slow {
    child: Child,
    trace: PathBuf,
}

impl Slow {
    fn start(env: &TestEnv, source: &Path, args: &[&str]) -> Self {
        let trace = env.home().join("trace");
        env.file(&trace, "");
        let inject = format!("inject=openat,openat2:delay_enter={SLOWNESS}");
        let words = ["strace", "-f", "-qq", "-o", trace.to_str().unwrap(), "-P", source.to_str().unwrap()];
        let words = words.into_iter().chain(["-e", "trace=openat,openat2", "-e", &inject]);
        let child = env.sandtable().directory(source).args(args).through(words).started();
        Self { child, trace }
    }

    /// The process, once it has opened some files.
    fn pid(&self) -> Pid {
        let thread = in_time("files are opened", || {
            let text = fs_err::read_to_string(&self.trace).unwrap();
            let opened: Vec<&str> = text.lines().filter(|line| line.contains("\"f0")).collect();
            opened.get(4)?.split_whitespace().next()?.parse::<i32>().ok()
        });
        Pid::from_raw(status(thread, "Tgid:").unwrap().parse().unwrap()).unwrap()
    }

    fn interrupt(self) -> (i32, String) {
        let pid = self.pid();
        in_time("signals are held back", || holds_back(pid).then_some(()));
        kill_process(pid, Signal::INT).unwrap();
        let began = Instant::now();
        let output = self.child.wait_with_output().unwrap();
        let took = began.elapsed();
        assert!(took < Duration::from_secs(20), "it went on for {took:?}");
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn in_time<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "never so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn status(pid: i32, field: &str) -> Option<String> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(text.lines().find_map(|line| line.strip_prefix(field))?.trim().to_owned())
}

/// Whether the first thread of a process has this signal blocked.
fn holds_back(pid: Pid) -> bool {
    let mask = status(pid.as_raw_nonzero().get(), "SigBlk:").unwrap();
    u64::from_str_radix(&mask, 16).unwrap() & (1 << (Signal::INT.as_raw() - 1)) != 0
}

/// Checks that nothing incomplete is kept: no sandbox, no snapshot, no temporary file, no mark.
fn nothing_left(env: &TestEnv, source: &Path) {
    let data = env.home().join(".local/share/sandtable");
    let names = |path: &Path| {
        let entries = fs_err::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    assert_eq!(names(&data.join("sandboxes")), Vec::<PathBuf>::new());
    assert_eq!(names(&data.join("pending")), Vec::<PathBuf>::new());
    for store in names(&data.join("stores")) {
        for empty in ["tmp", "journal", "git/objects/pack"] {
            assert_eq!(names(&store.join(empty)), Vec::<PathBuf>::new(), "{empty}");
        }
        call(env, source, &["store", "fsck"]).expect_code(0).unused();
    }
}

#[test]
fn a_first_recording_and_a_copy_that_are_interrupted_leave_nothing() {
    each(|env| {
        let source = source(env, "d");
        for args in [
            &["onboard"][..],
            &["snapshot"],
            &["run", "-q", "--mode", "copy", "--", "true"],
            &["run", "-q", "--base", "store", "--", "true"],
            &["run", "-q", "--mode", "live", "--", "true"],
        ] {
            let (code, said) = Slow::start(env, &source, args).interrupt();
            assert_eq!(code, 130, "{args:?}: {said}");
            assert!(said.contains("interrupted") && said.contains("nothing is kept"), "{args:?}: {said}");
            nothing_left(env, &source);
        }
        call(env, &source, &["onboard"]).expect_code(0).unused();
    });
}

#[test]
fn a_recording_after_a_command_that_is_interrupted_is_made_up_for_later() {
    each(|env| {
        let source = source(env, "d");
        let script = "echo new > f0000";
        let args = ["run", "-q", "--mode", "overlay", "--name", "box", "--", "sh", "-c", script];
        let slow = Slow::start(env, &source, &args);
        let (control, directory) = (env.sandboxes().join("box/control"), env.sandboxes().join("box"));
        // The socket is there while the command runs.
        in_time("the sandbox runs", || control.exists().then_some(()));
        in_time("the sandbox has ended", || (!control.exists()).then_some(()));
        let (code, said) = slow.interrupt();
        assert_eq!(code, 130, "{said}");
        assert!(said.contains("the recording of the state was interrupted"), "{said}");
        assert!(directory.join("unrecorded").exists() && directory.join("outcome.json").exists());
        let diff = call(env, &source, &["diff", "box"]).expect_code(0);
        assert!(diff.stdout.contains("+new"), "{}", diff.stdout);
        assert!(!directory.join("unrecorded").exists());
    });
}
