//! The life of sandboxes: many at once, killed at any moment, joined, stopped, removed. Nothing is left.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use sandtable_testkit::counts;
use sandtable_testkit::env::{Caller, PATH, TestEnv};
use sandtable_testkit::process::Run;
use sandtable_testkit::require;

use crate::cli::{Unused, assert_nothing_made};

#[test]
fn a_killed_supervisor_leaves_nothing_behind() {
    kill_rounds(Caller::Same);
}

#[test]
fn a_killed_supervisor_of_an_ordinary_user_leaves_nothing_behind() {
    kill_rounds(Caller::ordinary());
}

fn kill_rounds(caller: Caller) {
    let Some(env) = TestEnv::of_the_executable_as(caller) else { return };
    let source = env.repository("r");
    let before = env.fingerprint(&source);
    let mut random = Random::new();
    let rounds = counts::of("kill-rounds");
    for round in 0..rounds {
        let mark = unique_seconds();
        let script = format!("echo x >> README; rm -rf docs; sleep {mark}");
        let mut child = env.sandtable().directory(&source).args(["run", "--", "sh", "-c", &script]).started();
        std::thread::sleep(Duration::from_micros(random.below(80_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        env.sandtable().args(["ls"]).ended().expect_code(0).unused();
        assert_nothing_runs(&env, &mark);
        assert_nothing_is_mounted_or_locked(&env);
        let moved = before.differences(&env.fingerprint(&source));
        assert_eq!(moved, [""; 0], "round {round}, seed {}", random.seed);
    }
    require::say(&format!(
        "killed {rounds} times (seed {}): nothing left, source byte-identical",
        random.seed
    ));
}

#[test]
fn many_at_once_are_apart() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let before = env.fingerprint(&source);
    let count = counts::of("at-once");
    let start = Instant::now();
    let run = env.sandtable().directory(&source);
    let run = run.args(["run", "-q", "--", "sh", "-c", "echo $SANDBOX > me; sleep 0.2; cat me; ls"]);
    let children: Vec<Child> = (0..count).map(|_| run.started()).collect();
    let mut names = BTreeSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let own = text.lines().next().unwrap_or_default().to_owned();
        assert_eq!(text.lines().filter(|line| *line == "me").count(), 1, "{text}");
        assert!(names.insert(own.clone()), "`{own}` twice");
    }
    let took = start.elapsed();
    assert_eq!(listed(&env), names);
    assert_eq!(before.differences(&env.fingerprint(&source)), [""; 0]);
    require::say(&format!("{count} at once: all apart, {} ms", took.as_millis()));
}

#[test]
fn two_commands_at_once_join_one_running_sandbox() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    for round in 0..counts::of("exec-pairs") {
        let name = format!("running-{round}");
        let (mut first, _) = waiting(&env, &source, &name);
        exec_pair(&env, &name);
        env.sandtable().args(["stop", &name]).ended().expect_code(0).unused();
        first.wait().unwrap();
        exec_pair(&env, &name);
        assert_eq!(exec(&env, &name, "cat log").stdout.lines().count(), 4, "each wrote its line once");
    }
}

#[test]
fn two_commands_at_once_share_one_stopped_sandbox() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    for round in 0..counts::of("exec-pairs") {
        let name = format!("stopped-{round}");
        env.run_script(&source, &["--name", &name], "echo a > first").expect_code(0).unused();
        exec_pair(&env, &name);
        let after = exec(&env, &name, "cat log first");
        assert_eq!(after.stdout.lines().count(), 3, "{}", after.stdout);
        assert_nothing_is_mounted_or_locked(&env);
    }
}

#[test]
fn a_daemon_does_not_outlive_the_command() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let mark = unique_seconds();
        let quiet = "> /dev/null 2>&1 < /dev/null";
        let script = format!("(setsid sleep {mark} {quiet} &); nohup sleep {mark} {quiet} & exit 0");
        env.run_script(&source, &[], &script).expect_code(0).unused();
        assert_nothing_runs(&env, &mark);
    }
}

#[test]
fn stop_ends_a_sandbox_and_rm_removes_it() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let (mut child, mark) = waiting(&env, &source, "box");
    assert_eq!(listed(&env), BTreeSet::from(["box".to_owned()]));
    let refused = env.sandtable().args(["rm", "box"]).ended();
    assert!(refused.code == 2 && refused.stderr.contains("box"), "{} {}", refused.code, refused.stderr);
    env.sandtable().args(["stop", "box"]).ended().expect_code(0).unused();
    child.wait().unwrap();
    assert_nothing_runs(&env, &mark);
    let inspect = env.sandtable().args(["inspect", "box", "--json"]).ended().expect_code(0);
    let record: serde_json::Value = serde_json::from_str(&inspect.stdout).unwrap();
    assert!(record.to_string().contains("\"box\""), "{record}");
    env.sandtable().args(["rm", "box"]).ended().expect_code(0).unused();
    assert_nothing_made(&env);
}

#[test]
fn rm_by_force_ends_a_running_sandbox() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let (mut child, mark) = waiting(&env, &source, "box");
    env.sandtable().args(["rm", "-f", "box"]).ended().expect_code(0).unused();
    child.wait().unwrap();
    assert_nothing_runs(&env, &mark);
    assert_nothing_made(&env);
}

#[test]
fn a_sandbox_that_is_not_kept_leaves_nothing() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        env.run_script(&source, &["--rm"], "echo x >> README; mkdir -m 0 closed").expect_code(0).unused();
        assert_nothing_made(&env);
    }
}

#[test]
fn sandboxes_do_not_share_a_network() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let network = |options: &[&str]| {
        env.run_script(&source, options, "readlink /proc/self/ns/net").expect_code(0).stdout.trim().to_owned()
    };
    let host = fs_err::read_link("/proc/self/ns/net").unwrap().display().to_string();
    let (mut first, _) = waiting(&env, &source, "one");
    let one = exec(&env, "one", "readlink /proc/self/ns/net").stdout.trim().to_owned();
    let two = network(&["--rm", "-q"]);
    env.sandtable().args(["rm", "-f", "one"]).ended().expect_code(0).unused();
    first.wait().unwrap();
    assert!(one != two && one != host && two != host, "{one} {two} {host}");
    assert_eq!(network(&["--rm", "-q", "--network", "host"]), host, "asked for by name");
}

/// A sandbox whose first command waits, started and ready, and the mark of that command.
fn waiting(env: &TestEnv, source: &Path, name: &str) -> (Child, String) {
    let mark = unique_seconds();
    let script = format!("echo ready; exec sleep {mark}");
    let run = env.sandtable().directory(source).args(["run", "--name", name, "--", "sh", "-c", &script]);
    let mut child = run.started();
    let mut first = [0_u8; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    (child, mark)
}

/// A time to sleep that nobody else on this machine sleeps for: other tests may run beside this one.
fn unique_seconds() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(70_000);
    format!("{}.{}", NEXT.fetch_add(1, Ordering::Relaxed), std::process::id())
}

/// Two at the same time, both right.
fn exec_pair(env: &TestEnv, name: &str) {
    let script = "echo $$ >> log; sleep 0.2; echo done";
    let run = env.sandtable().args(["exec", name, "--", "sh", "-c", script]);
    let (a, b) = (run.started(), run.started());
    for child in [a, b] {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "{said}");
    }
}

fn exec(env: &TestEnv, name: &str, script: &str) -> sandtable_testkit::process::Ended {
    env.sandtable().args(["exec", name, "--", "sh", "-c", script]).ended().expect_code(0)
}

/// The names that `ls --json` shows.
fn listed(env: &TestEnv) -> BTreeSet<String> {
    let ended = env.sandtable().args(["ls", "--json"]).ended().expect_code(0);
    let answer: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let rows = answer.as_array().or_else(|| answer.get("sandboxes")?.as_array()).unwrap();
    rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

/// No process with that word in its command line, and none of the executable itself. The end of a pid
/// namespace takes the kernel a moment.
pub(crate) fn assert_nothing_runs(env: &TestEnv, word: &str) {
    let deadline = Instant::now() + Duration::from_secs(3);
    loop {
        let left = processes(env, word);
        if left.is_empty() {
            return;
        }
        if Instant::now() >= deadline {
            end(&left);
            panic!("still there: {left:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A test that fails leaves nothing behind either. Each process is named by its id and was found by a mark
/// or a directory that is this test's own.
fn end(left: &[Left]) {
    for process in left {
        Run::new("kill", Path::new("/")).variable("PATH", PATH).args(["-KILL", &process.pid]).ended();
    }
}

/// A process that should be gone.
#[derive(Debug)]
struct Left {
    pid: String,
    #[expect(dead_code, reason = "shown in the message of a failed test")]
    line: String,
}

fn processes(env: &TestEnv, word: &str) -> Vec<Left> {
    let here = env.root().display().to_string();
    let entries = fs_err::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let describe = |path: std::path::PathBuf| {
        let pid = path.file_name()?.to_str().filter(|name| name.parse::<u32>().is_ok())?.to_owned();
        let line = String::from_utf8_lossy(&fs_err::read(path.join("cmdline")).ok()?).replace('\0', " ");
        let program =
            fs_err::read_link(path.join("exe")).map(|exe| exe.display().to_string()).unwrap_or_default();
        let ours = line.contains(word) && line.contains("sleep") || program.starts_with(&here);
        ours.then_some(Left { pid, line })
    };
    entries.filter_map(describe).collect()
}

pub(crate) fn assert_nothing_is_mounted_or_locked(env: &TestEnv) {
    let here = env.root().display().to_string();
    let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&here), "a mount is left");
    for entry in fs_err::read_dir(env.sandboxes()).into_iter().flatten() {
        let lock = entry.unwrap().path().join("lock");
        if let Ok(file) = fs_err::File::open(&lock) {
            let deadline = Instant::now() + Duration::from_secs(3);
            while file.try_lock().is_err() {
                assert!(Instant::now() < deadline, "{} is still locked", lock.display());
                std::thread::sleep(Duration::from_millis(10));
            }
            file.unlock().unwrap();
        }
    }
}

/// Moments that differ from run to run, with a seed to tell.
struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    fn new() -> Self {
        let given = require::variable("SANDTABLE_SEED").and_then(|seed| seed.parse().ok());
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos();
        let seed = given.unwrap_or_else(|| u64::from(now())) | 1;
        Self { seed, state: seed }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % end
    }
}

/// A name is taken by making its directory. Once that is gone another call may have made its own.
#[test]
fn a_sandbox_that_is_thrown_away_touches_nothing_at_its_name_afterwards() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if require::program("strace").is_none() {
        return require::skip("looking at system calls needs strace");
    }
    let source = env.repository("r");
    let log = env.root().join("trace");
    let words = ["run", "-q", "--rm", "--name", "box", "--", "true"];
    let trace = ["strace", "-qq", "-e", "trace=%file", "-o", log.to_str().unwrap()];
    env.sandtable().directory(&source).args(words).through(trace).ended().expect_code(0).unused();
    let place = env.sandboxes().join("box").display().to_string();
    let text = fs_err::read_to_string(&log).unwrap();
    let calls: Vec<&str> = text.lines().filter(|line| line.contains(&place)).collect();
    let is_removal = |line: &&str| line.contains(&format!("\"{place}\", AT_REMOVEDIR) = 0"));
    let removed = calls.iter().position(is_removal).expect("it is removed");
    assert_eq!(calls[removed + 1..], [""; 0]);
}
