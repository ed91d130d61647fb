//! Named pipes in the source's git directory. Opening one waits for ever; so whatever opens a file there must look first, and
//! a merge must know before its point of no return that it can be carried to its end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::os::unix::fs::FileExt as _;
use rustix::fs::{CWD, Mode, mkfifoat};
use sandtable_testkit::env::TestEnv;
use sandtable_testkit::require;

use super::watch::{Taken, load, measured};
use super::{Command, DONE, DONE_OR_HELD, KILOBYTES};
use crate::cli::Unused as _;

/// What of the clock a command may take that has nothing to wait for, on a machine that is not busy.
const SECONDS: u64 = 10;
/// What git says that was ended because it waited.
const WAITED: &str = "did not end within";

/// Below the git directory. Each of them alone keeps a merge from being made.
const REFUSED: [&str; 18] = [
    "HEAD",
    "HEAD.lock",
    "commondir",
    "config",
    "config.worktree",
    "index",
    "index.lock",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "logs/HEAD",
    "logs/refs/heads/main",
    "objects/info/alternates",
    "objects/info/commit-graph",
    "packed-refs",
    "refs/heads/main",
    "refs/heads/main.lock",
    "shallow",
];

/// Neither git nor we open these, whatever is merged.
const HARMLESS: [&str; 2] = ["fsmonitor--daemon.ipc", "gitk.cache"];

const COMMANDS: [Command; 6] = [
    ("snapshot", DONE),
    ("diff NAME", DONE),
    ("apply NAME", DONE_OR_HELD),
    ("export --branch NAME NAME", DONE_OR_HELD),
    ("undo NAME", DONE),
    ("rm -f NAME", DONE),
];

/// A pipe instead of whatever was there; gone again with [`Pipe::away`].
struct Pipe {
    path: PathBuf,
    before: Option<Vec<u8>>,
}

impl Pipe {
    fn new(source: &Path, name: &str) -> Self {
        let path = source.join(".git").join(name);
        let before = fs_err::read(&path).ok();
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        let _none = fs_err::remove_file(&path);
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        Self { path, before }
    }

    /// Something may have been put into its place.
    fn away(self) {
        let _none = fs_err::remove_file(&self.path);
        if let Some(before) = self.before {
            fs_err::write(self.path, before).unwrap();
        }
    }
}

/// Ended without waiting for the pipe, with one of these codes.
#[track_caller]
fn at_once(what: &str, taken: &Taken, codes: &[i32]) {
    let said = &taken.said;
    assert!(taken.code.is_some_and(|code| codes.contains(&code)), "{what}: {:?}: {said}", taken.code);
    assert!(!said.contains(WAITED), "{what}: {said}");
    let limit = Duration::from_secs(SECONDS).mul_f64(load());
    assert!(taken.time < limit && taken.kilobytes < KILOBYTES, "{what}: {:?}: {said}", taken.time);
}

#[test]
fn a_pipe_in_the_git_directory_keeps_nobody_waiting() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    for (at, name) in REFUSED.into_iter().chain(HARMLESS).enumerate() {
        let (source, sandbox) = (env.repository(&format!("source{at}")), format!("box{at}"));
        let tip = env.git(&source, &["rev-parse", "HEAD"]);
        let pipe = Pipe::new(&source, name);
        let call = |line: &str| {
            let words: Vec<String> = line.split(' ').map(|word| word.replace("NAME", &sandbox)).collect();
            measured(&env, &source, &words.iter().map(String::as_str).collect::<Vec<_>>())
        };
        at_once(name, &call("run --name NAME -- touch new"), DONE);
        let merged = call("merge NAME");
        if HARMLESS.contains(&name) {
            at_once(name, &merged, DONE);
            continue;
        }
        at_once(name, &merged, &[1]);
        let why = if is_lock(name) { "exists" } else { "is no regular file" };
        assert!(merged.said.contains(&format!("`{}` {why}", pipe.path.display())), "{name}: {}", merged.said);
        for (line, codes) in COMMANDS {
            at_once(&format!("{name}: {line}"), &call(line), codes);
        }
        pipe.away();
        assert_eq!(env.git(&source, &["rev-parse", "HEAD"]), tip, "{name}");
        assert_eq!(left_in(&source), [""; 0], "{name}");
    }
}

fn is_lock(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "lock")
}

/// Locks and names of ours.
fn left_in(source: &Path) -> Vec<String> {
    let folders = ["", ".git", ".git/refs/heads"].map(|folder| source.join(folder));
    let entries = folders.iter().flat_map(|folder| fs_err::read_dir(folder).unwrap().flatten());
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains("sandtable-") || name.contains(".lock")).collect()
}

#[test]
fn of_a_reflog_only_the_end_is_read() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("source");
    let log = source.join(".git/logs/HEAD");
    fs_err::OpenOptions::new().write(true).open(&log).unwrap().set_len(3 << 30).unwrap();
    at_once("run", &measured(&env, &source, &["run", "--name", "box", "--", "touch", "new"]), DONE);
    at_once("merge", &measured(&env, &source, &["merge", "box"]), DONE);
    let mut end = [0; 512];
    let length = log.metadata().unwrap().len();
    fs_err::File::open(&log).unwrap().read_exact_at(&mut end, length - 512).unwrap();
    assert!(length > 3 << 30 && String::from_utf8_lossy(&end).contains("\tsandtable: merge of"));
}

/// Killed before its branch moves and after: a pipe may keep a merge from being put back or completed, and nobody who works
/// elsewhere from anything.
#[test]
fn after_a_killed_merge_a_pipe_holds_up_no_other_source() {
    if require::program("strace").is_none() {
        return require::skip("strace is not there");
    }
    let Some(env) = TestEnv::of_the_executable() else { return };
    let elsewhere = env.repository("elsewhere");
    let names = ["logs/HEAD", "HEAD.lock", "index.lock", "index", "refs/heads/main"];
    let moments = [("linkat", "HEAD.lock"), ("openat", "logs/refs/heads/main")];
    for (at, (name, (call, place))) in
        names.iter().flat_map(|name| moments.iter().map(move |moment| (name, moment))).enumerate()
    {
        let (source, sandbox) = (env.repository(&format!("source{at}")), format!("box{at}"));
        let what = format!("{name} after a kill at {place}");
        env.run_script(&source, &["-q", "--name", &sandbox], "touch new").expect_code(0).unused();
        let (kill, place) = (format!("inject={call}:signal=SIGKILL"), source.join(".git").join(place));
        let words = ["strace", "-qq", "-o", "/dev/null", "-e", &kill, "-P", place.to_str().unwrap()];
        let killed = env.sandtable().directory(&source).args(["merge", &sandbox]).through(words).ended();
        assert_eq!(killed.code, 137, "{what}: {}", killed.stderr);
        let pipe = Pipe::new(&source, name);
        for words in [&["ls"][..], &["run", "-q", "--rm", "--", "true"]] {
            let taken = measured(&env, &elsewhere, words);
            at_once(&format!("{what}: {words:?}"), &taken, DONE);
        }
        if is_lock(name) {
            // Whoever puts something in the place of a lock takes it away again.
            fs_err::remove_file(&pipe.path).unwrap();
        } else {
            pipe.away();
        }
        env.sandtable().directory(&elsewhere).args(["ls"]).ended().expect_code(0).unused();
        assert_eq!(left_in(&source), [""; 0], "{what}");
        let merged = env.git(&source, &["log", "-1", "--format=%B"]).contains("Sandtable-Snapshot");
        assert_eq!(source.join("new").exists(), merged, "{what}");
        assert_eq!(env.git(&source, &["status", "--porcelain"]), "", "{what}");
        if merged && !is_lock(name) {
            assert!(env.git(&source, &["reflog", "-1"]).contains("sandtable: merge of"), "{what}");
        }
    }
}
