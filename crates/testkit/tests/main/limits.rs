//! Limits on memory, processors, processes and time: what is asked for holds, or nothing runs.
//!
//! Whatever uses up memory or processes here does so only inside a sandbox whose ledger is checked first or
//! afterwards, and in loops with an end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sandtable_protocol::report::{Control, Observed};
use sandtable_sandbox::session::record::{ExitOrigin, Outcome};
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::{Ended, Run};
use sandtable_testkit::require;

use crate::cli::{Unused, assert_nothing_made};
use crate::lifecycle::assert_nothing_runs;

/// One gigabyte, in ways that a limit could overlook.
const HOARDERS: [(&str, &str); 4] = [
    ("heap", "exec perl -e '$x = \"a\" x (1 << 30); print length $x'"),
    ("tmpfs", "head -c 1073741824 /dev/zero > /tmp/x && echo written"),
    ("shared memory", "head -c 1073741824 /dev/zero > /dev/shm/x && echo written"),
    (
        "anonymous file",
        "exec perl -e '$name = \"m\"; $fd = syscall($ENV{MEMFD} + 0, $name, 0); $fd >= 0 or die; \
         open($f, \">&=\", $fd) or die; $b = \"a\" x (1 << 20); \
         for (1..1024) { defined syswrite($f, $b) or die } print \"written\"'",
    ),
];

/// The number of the system call `memfd_create`.
const MEMFD: &str = if cfg!(target_arch = "aarch64") { "279" } else { "319" };

#[test]
fn memory_that_runs_out_is_killed_and_said_so() {
    let Some(world) = World::of_root() else { return };
    for (what, script) in HOARDERS {
        let script = format!("MEMFD={MEMFD}; export MEMFD; {script}");
        let (ended, outcome) = world.run(&["--memory", "100m", "--rm"], &script);
        assert_eq!(ended.code, 137, "{what}: {} {}", ended.stdout, ended.stderr);
        assert_eq!(ended.stdout, "", "{what}: it got what it wanted");
        let outcome = outcome.unwrap();
        assert_eq!(outcome.enforcement.get(&Control::MemoryLimit), Some(&Observed::Enforced), "{what}");
        assert_eq!(outcome.exit.code, 137, "{what}");
        let said = outcome.warnings.iter().find(|warning| warning.code == "out-of-memory");
        assert!(said.is_some_and(|warning| warning.text.contains("100m")), "{what}: {:?}", outcome.warnings);
        assert!(ended.stderr.contains("[out-of-memory]"), "{what}: {}", ended.stderr);
    }
}

#[test]
fn memory_that_suffices_is_not_spoken_of() {
    let Some(world) = World::of_root() else { return };
    let script = "head -c 20000000 /dev/zero > /dev/shm/x && rm /dev/shm/x && echo fine";
    let (ended, outcome) = world.run(&["-m", "100m", "--rm"], script);
    assert_eq!(ended.expect_code(0).stdout, "fine\n");
    assert_eq!(outcome.unwrap().warnings, []);
}

#[test]
fn a_fork_bomb_is_contained() {
    let Some(world) = World::of_root() else { return };
    // Nine doublings would be 512 processes. Process 2 is the command itself.
    let bomb = "exec perl -e 'for (1..9) { fork } if ($$ != 2) { sleep 3; exit } \
        select(undef, undef, undef, 0.7); opendir(D, \"/proc\"); print scalar grep { /^\\d+$/ } readdir D'";
    let (ended, outcome) = world.run(&["--pids", "64", "--rm"], bomb);
    let seen: u32 = ended.expect_code(0).stdout.parse().unwrap();
    assert!((32..=64).contains(&seen), "{seen} processes at once");
    let outcome = outcome.unwrap();
    assert_eq!(outcome.enforcement.get(&Control::PidsLimit), Some(&Observed::Enforced));
    assert_eq!(outcome.enforcement.get(&Control::MemoryLimit), None, "nobody asked");
}

#[test]
fn half_a_processor_is_half_a_processor() {
    let Some(world) = World::of_root() else { return };
    let spin = "timeout 3 sh -c 'while :; do :; done'";
    let began = Instant::now();
    let (ended, outcome) = world.run(&["--cpus", "0.5", "--rm"], &format!("{spin} & {spin}; wait; times"));
    let wall = began.elapsed().as_secs_f64();
    let used: f64 = seconds_of_children(&ended.expect_code(0).stdout);
    // Two that spin would use nearly two processors. A little more than the share is the start of a period.
    assert!(used < 0.5 * wall * 1.25, "{used} s of processor in {wall} s");
    require::say(&format!("--cpus 0.5: {used:.2} s of processor in {wall:.2} s"));
    assert_eq!(outcome.unwrap().enforcement.get(&Control::CpuLimit), Some(&Observed::Enforced));
}

#[test]
fn when_the_time_is_up_everything_ends() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(world) = World::of(caller) else { continue };
        let script = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 71241 & sleep 71241' &); \
            while :; do sleep 0.1; done";
        let began = Instant::now();
        let (ended, outcome) = world.run(&["--timeout", "2"], script);
        let took = began.elapsed();
        assert_eq!(ended.code, 124, "{}", ended.stderr);
        assert!(took > Duration::from_secs(2) && took < Duration::from_secs(4), "{took:?}");
        assert_nothing_runs(&world.env, "71241");
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        let exit = outcome.unwrap().exit;
        assert_eq!((exit.code, exit.origin), (124, ExitOrigin::Sandbox));
        assert!(ended.stderr.contains("the time was up"), "{}", ended.stderr);
    }
}

#[test]
fn the_time_is_up_for_a_supervisor_that_is_stopped_too() {
    // Ctrl-Z reaches the command as well; a bare stop leaves it running.
    for signal in ["TSTP", "STOP"] {
        let Some(world) = World::of(Caller::ordinary()) else { return };
        let script = "trap '' TERM; n=7134; (setsid sleep ${n}1 &); echo ready; sleep ${n}1";
        let run = ["run", "-q", "--timeout", "1", "--", "sh", "-c", script];
        let mut supervisor = world.env.sandtable().directory(&world.source).args(run).started();
        let mut ready = [0; 6];
        std::io::Read::read_exact(supervisor.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let tell = |signal: &str| {
            let kill = world.env.run("kill").arg(format!("-{signal}")).arg(supervisor.id().to_string());
            kill.ended().expect_code(0).unused();
        };
        tell(signal);
        let end = Instant::now() + Duration::from_secs(20);
        while sleeps("71341") {
            assert!(Instant::now() < end, "{signal}: it goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
        tell("CONT");
        assert_eq!(supervisor.wait().unwrap().code(), Some(124), "{signal}");
    }
}

#[test]
fn who_ends_in_time_or_when_asked_to_is_not_killed() {
    let Some(world) = World::of(Caller::ordinary()) else { return };
    let (ended, outcome) = world.run(&["--timeout", "20s"], "exit 7");
    assert_eq!((ended.code, outcome.unwrap().exit.origin), (7, ExitOrigin::Command));
    let began = Instant::now();
    let polite = "trap 'echo asked; exit 0' TERM; echo x > made; while :; do sleep 0.05; done";
    let (ended, outcome) = world.run(&["--timeout", "300ms"], polite);
    assert_eq!((ended.code, ended.stdout.as_str()), (124, "asked\n"), "{}", ended.stderr);
    assert!(
        began.elapsed() < Duration::from_millis(1700),
        "the grace was not used up: {:?}",
        began.elapsed()
    );
    let changes = outcome.unwrap().changes.unwrap();
    assert_eq!(changes.entries.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(), ["made"]);
}

#[test]
fn a_limit_that_cannot_hold_stops_the_launch() {
    let Some(world) = World::of(Caller::ordinary()) else { return };
    for (option, value, control) in [
        ("--memory", "1g", Control::MemoryLimit),
        ("--cpus", "1", Control::CpuLimit),
        ("--pids", "64", Control::PidsLimit),
    ] {
        let (ended, outcome) = world.run(&[option, value], "echo it-ran");
        assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{option}: {}", ended.stderr);
        let said = &ended.stderr;
        assert!(said.contains(control.name()) && said.contains("cannot make a control group"), "{said}");
        assert!(said.contains("sandtable doctor"), "the way out: {said}");
        assert!(outcome.is_none(), "{option}");
        assert_nothing_made(&world.env);
        let (ended, outcome) = world.run(&[option, value, "--best-effort", "--rm"], "echo it-ran");
        assert_eq!(ended.expect_code(0).stdout, "it-ran\n");
        let outcome = outcome.unwrap();
        let observed = outcome.enforcement.get(&control);
        assert!(matches!(observed, Some(Observed::Absent { .. })), "{option}: {observed:?}");
    }
    let by_variable = world.env.sandtable().directory(&world.source).variable("SANDBOX_MEMORY", "1g");
    by_variable.args(["run", "--", "true"]).ended().expect_code(125).expect_stderr("memory-limit").unused();
}

#[test]
fn the_limits_of_a_profile_are_wishes() {
    let Some(world) = World::of(Caller::ordinary()) else { return };
    let (ended, outcome) = world.run(&["--profile", "safe", "--rm"], "echo it-ran");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let outcome = outcome.unwrap();
    for control in Control::LIMITS {
        let observed = outcome.enforcement.get(&control);
        assert!(matches!(observed, Some(Observed::Absent { .. })), "{control}: {observed:?}");
        assert!(ended.stderr.contains(&format!("not enforced: {control}")), "{}", ended.stderr);
    }
    let Some(world) = World::of_root() else { return };
    let (_, outcome) = world.run(&["--profile", "tight", "--rm"], "true");
    let outcome = outcome.unwrap();
    for control in Control::LIMITS {
        assert_eq!(outcome.enforcement.get(&control), Some(&Observed::Enforced), "{control}");
    }
}

#[test]
fn an_ordinary_user_limits_in_a_group_that_was_delegated() {
    let Some(world) = World::of(Caller::ordinary()) else { return };
    let Some(delegated) = Delegated::new(&world.env) else {
        return require::skip("no control groups of version 1 to delegate");
    };
    let options = ["--memory", "100m", "--cpus", "0.5", "--pids", "64", "--rm"];
    let run = world.command(&options, HOARDERS[1].1).through(delegated.entering());
    let ended = run.ended();
    assert_eq!(ended.code, 137, "{}", ended.stderr);
    let outcome = world.outcome().unwrap();
    for control in Control::LIMITS {
        assert_eq!(outcome.enforcement.get(&control), Some(&Observed::Enforced), "{control}");
    }
    assert!(outcome.warnings.iter().any(|warning| warning.code == "out-of-memory"));
    assert_eq!(delegated.left(), [""; 0]);
}

#[test]
fn further_commands_are_under_the_same_limits() {
    let Some(world) = World::of_root() else { return };
    let name = world.name("again");
    let (ended, _) = world.run(&["--name", &name, "--pids", "16", "--memory", "100m"], "true");
    ended.expect_code(0).unused();
    assert_eq!(groups(&name), [""; 0], "gone with the command");
    let exec = |script: &str| world.env.sandtable().args(["exec", &name, "--", "sh", "-c", script]);
    exec(HOARDERS[0].1).ended().expect_code(137).unused();
    let mut first = exec("echo up; sleep 71242").started();
    std::io::Read::read_exact(first.stdout.as_mut().unwrap(), &mut [0; 3]).unwrap();
    assert!(!groups(&name).is_empty());
    let count = "exec perl -e 'for (1..6) { fork } if ($$ > 20) { sleep 2; exit } sleep 1; \
        opendir(D, \"/proc\"); $n = grep { /^\\d+$/ } readdir D; print $n <= 16 ? \"few\" : \"many\"'";
    let report = world.report();
    let joined = world.env.sandtable().args(["exec", &name, "--report"]).arg(&report);
    let joined = joined.args(["--", "sh", "-c", count]).ended();
    let known = world.outcome().unwrap().enforcement;
    assert_eq!(known.get(&Control::PidsLimit), Some(&Observed::Enforced), "who joins knows as well");
    assert!(joined.stdout.contains("few") && !joined.stdout.contains("many"), "{joined:?}");
    env_stop(&world.env, &name);
    first.wait().unwrap();
    assert_eq!(groups(&name), [""; 0]);
}

#[test]
fn a_killed_supervisor_leaves_groups_that_the_next_call_removes() {
    let Some(world) = World::of_root() else { return };
    let options = ["--memory", "1g", "--cpus", "1", "--pids", "64"];
    for kept in [&[][..], &["--rm"]] {
        let name = world.name(if kept.is_empty() { "kept" } else { "not-kept" });
        let all: Vec<&str> = options.iter().chain(kept).copied().chain(["--name", &name]).collect();
        let mut child = world.command(&all, "echo up; sleep 71243").started();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 3]).unwrap();
        assert!(!groups(&name).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_reaped(&world, &name);
        assert_nothing_runs(&world.env, "71243");
    }
}

#[test]
fn groups_are_found_again_whenever_the_supervisor_was_killed() {
    let Some(world) = World::of_root() else { return };
    for delay in (0..60).step_by(4) {
        let name = world.name(&format!("at-{delay}"));
        let options = ["--memory", "1g", "--cpus", "1", "--pids", "64", "--name", &name];
        let mut child = world.command(&options, "sleep 71245").started();
        std::thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_reaped(&world, &name);
    }
}

#[test]
fn the_time_of_a_sandbox_is_also_that_of_who_joined_it() {
    let Some(world) = World::of(Caller::Same) else { return };
    let name = world.name("joined");
    let began = Instant::now();
    let mut first = world.command(&["--name", &name, "--timeout", "1500ms"], "echo up; sleep 1").started();
    std::io::Read::read_exact(first.stdout.as_mut().unwrap(), &mut [0; 3]).unwrap();
    let joined = world.env.sandtable().args(["exec", &name, "--", "sleep", "71246"]).started();
    assert_eq!(first.wait().unwrap().code(), Some(0), "its own command ended in time");
    assert!(!joined.wait_with_output().unwrap().status.success());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_nothing_runs(&world.env, "71246");
}

#[test]
fn a_limit_that_means_nothing_is_refused() {
    let Some(world) = World::of(Caller::Same) else { return };
    for options in [["--memory", "512"], ["--cpus", "0"], ["--pids", "1"], ["--timeout", "soon"]] {
        let (ended, _) = world.run(&options, "true");
        assert_eq!(ended.code, 2, "{options:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(options[1]), "{}", ended.stderr);
    }
    assert_nothing_made(&world.env);
    let (ended, _) = world.run(&["--cpus", "0.5", "-m", "1.5g", "--timeout", "90", "--dry-run"], "true");
    let shown = ended.expect_code(0).stdout;
    for line in ["0.5", "1536m", "90s", "1610612736 bytes of memory, 0.500 processors in control group"] {
        assert!(shown.contains(line), "no `{line}` in {shown}");
    }
}

/// A repository and somebody who runs commands on it.
/// Whether `sleep TIME` runs somewhere.
fn sleeps(time: &str) -> bool {
    let wanted = format!("sleep\0{time}\0");
    let processes = fs_err::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
    processes.filter_map(|path| fs_err::read(path).ok()).any(|line| line == wanted.as_bytes())
}

struct World {
    env: TestEnv,
    source: PathBuf,
}

impl World {
    fn of(caller: Caller) -> Option<Self> {
        let env = TestEnv::of_the_executable_as(caller)?;
        let source = env.repository("r");
        Some(Self { env, source })
    }

    /// Where limits can be enforced: root has a control group on every machine.
    fn of_root() -> Option<Self> {
        if !require::is_root() {
            require::skip("limits can be counted on for root only");
            return None;
        }
        if require::program("perl").is_none() {
            require::skip("no perl to use up memory with");
            return None;
        }
        Self::of(Caller::Same)
    }

    fn command(&self, options: &[&str], script: &str) -> Run {
        let run = self.env.sandtable().directory(&self.source).arg("run").args(options);
        run.arg("--report").arg(self.report()).args(["--", "sh", "-c", script])
    }

    /// Runs a script, and reads the report if the command ran.
    fn run(&self, options: &[&str], script: &str) -> (Ended, Option<Outcome>) {
        let ended = self.command(options, script).ended();
        (ended, self.outcome())
    }

    fn outcome(&self) -> Option<Outcome> {
        let text = fs_err::read_to_string(self.report()).ok()?;
        fs_err::remove_file(self.report()).unwrap();
        serde_json::from_str(&text).ok()
    }

    fn report(&self) -> PathBuf {
        self.env.home().join("report.json")
    }

    /// A name that no other test on this machine uses.
    fn name(&self, word: &str) -> String {
        let own = self.env.root().file_name().unwrap().to_string_lossy().to_lowercase();
        let own: String = own.chars().filter(char::is_ascii_alphanumeric).collect();
        format!("{own}-{word}")
    }
}

/// The first call that finds the sandbox ended removes its groups. The kernel takes a moment to end it, and
/// until then it counts as running.
fn assert_reaped(world: &World, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(3);
    loop {
        let listed = world.env.sandtable().args(["ls"]).ended().expect_code(0).stdout;
        let runs = listed.lines().any(|line| line.starts_with(name) && line.contains("running"));
        if !runs {
            assert_eq!(groups(name), [""; 0]);
            return;
        }
        assert!(Instant::now() < deadline, "still running: {listed}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn env_stop(env: &TestEnv, name: &str) {
    env.sandtable().args(["stop", name]).ended().expect_code(0).unused();
}

/// What the shell's `times` says of its children: the second line, user and system.
fn seconds_of_children(times: &str) -> f64 {
    let line = times.lines().last().unwrap();
    let seconds = |text: &str| {
        let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    line.split_whitespace().map(seconds).sum()
}

/// Control groups of the sandbox `name` that are there.
fn groups(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    directories(Path::new("/sys/fs/cgroup"), &format!("sandtable-{name}-"), &mut found);
    found
}

fn directories(at: &Path, start: &str, found: &mut Vec<String>) {
    // A group may go while we look.
    for entry in fs_err::read_dir(at).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if entry.file_name().to_string_lossy().starts_with(start) {
                found.push(entry.path().display().to_string());
            }
            directories(&entry.path(), start, found);
        }
    }
}

/// Groups of version 1 that belong to an ordinary user, as an administrator would hand them over.
struct Delegated(Vec<PathBuf>);

impl Delegated {
    fn new(env: &TestEnv) -> Option<Self> {
        let Caller::Ordinary { uid, gid } = env.caller() else { return None };
        let membership = fs_err::read_to_string("/proc/self/cgroup").unwrap();
        let own = |controller: &str| {
            let named = |line: &str| {
                let (names, path) = line.split_once(':')?.1.split_once(':')?;
                names.split(',').any(|name| name == controller).then(|| path.to_owned())
            };
            let path = membership.lines().find_map(named)?;
            let directory = Path::new("/sys/fs/cgroup").join(controller).join(path.trim_start_matches('/'));
            directory.join("cgroup.procs").exists().then_some(directory)
        };
        let name = format!("delegated-{}", env.root().file_name().unwrap().to_string_lossy());
        let parents: Option<Vec<PathBuf>> = ["memory", "cpu", "pids"].into_iter().map(own).collect();
        let groups: Vec<PathBuf> = parents?.into_iter().map(|parent| parent.join(&name)).collect();
        for group in &groups {
            fs_err::create_dir(group).unwrap();
            for file in [group.clone(), group.join("cgroup.procs"), group.join("tasks")] {
                std::os::unix::fs::chown(file, Some(uid), Some(gid)).unwrap();
            }
        }
        Some(Self(groups))
    }

    /// Words that put what follows into the groups.
    fn entering(&self) -> Vec<String> {
        let enter = |group: &PathBuf| format!("echo $$ > {}/cgroup.procs; ", group.display());
        let enter: String = self.0.iter().map(enter).collect();
        ["sh", "-c", &format!("{enter}exec \"$@\""), "sh"].map(str::to_owned).to_vec()
    }

    /// Groups of sandboxes that were not removed.
    fn left(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.0.iter().for_each(|group| directories(group, "sandtable-", &mut found));
        found
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for group in &self.0 {
            let _still_used = fs_err::remove_dir(group);
        }
    }
}
