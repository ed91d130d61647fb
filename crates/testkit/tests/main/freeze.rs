//! A running sandbox is held still: nothing moves in it, whoever held it, and everything goes on afterwards.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use sandtable_protocol::invocation::Held;
use sandtable_protocol::wire::FrozenBy;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::session::{Frozen, Sandboxes, freeze};
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::require;

use crate::cli::Unused;
use crate::lifecycle::assert_nothing_runs;

/// Writes without end, in processes that come and go.
const WRITERS: &str = "for who in 1 2 3; do (i=0; while :; do i=$((i+1)); echo $i > a$who; \
    sh -c \"echo $i > b$who\"; done) & done; wait";
/// Speaks the protocol of PID 1 by hand, so that it can be killed: freezes, says so, and waits.
const HOLDER: &str = r#"use Socket; my $home = shift; chdir $home or die; socket(my $s, PF_UNIX, SOCK_STREAM, 0) or die;
    connect($s, sockaddr_un("control")) or die; my $ask = '{"ask":"freeze"}';
    syswrite $s, pack("V", length $ask) . $ask; sysread $s, my $told, 4; $| = 1; print "frozen\n"; sleep 60;"#;

/// A sandbox that runs in the background.
struct Detached {
    env: TestEnv,
    layer: PathBuf,
}

impl Detached {
    fn new(caller: Caller, options: &[&str], script: &str) -> Option<Self> {
        let env = TestEnv::of_the_executable_as(caller)?;
        let source = env.repository("r");
        let options: Vec<&str> = ["-d", "-q", "--name", "still"].iter().chain(options).copied().collect();
        env.run_script(&source, &options, script).expect_code(0).unused();
        let layer = env.sandboxes().join("still/workspace.upper");
        Some(Self { env, layer })
    }

    fn freeze(&self) -> Frozen {
        let data = self.env.sandboxes().parent().unwrap().to_owned();
        let sandboxes = Sandboxes::new(&HostPath::new(data).unwrap());
        freeze(&sandboxes, &"still".parse().unwrap()).unwrap()
    }

    /// What the writers have written.
    fn written(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for entry in fs_err::read_dir(&self.layer).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let text = fs_err::read_to_string(entry.path()).unwrap_or_default();
            found.push((name, text));
        }
        found.sort();
        found
    }

    fn wait_until(&self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !done(self) {
            assert!(Instant::now() < end, "{what}: {:?}", self.written());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The control groups that were made for it.
    fn groups(&self) -> Vec<PathBuf> {
        let journal = fs_err::read_to_string(self.env.sandboxes().join("still/cgroups")).unwrap_or_default();
        journal.lines().map(PathBuf::from).collect()
    }

    fn stop(&self) {
        let groups = self.groups();
        self.env.sandtable().args(["rm", "-f", "still"]).ended().expect_code(0).unused();
        assert!(groups.iter().all(|group| !group.exists()), "left: {groups:?}");
    }
}

#[test]
fn nothing_is_written_while_frozen_and_everything_goes_on_afterwards() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(sandbox) = Detached::new(caller, &[], WRITERS) else { continue };
        sandbox.wait_until("six writers", |sandbox| sandbox.written().len() == 6);
        for _ in 0..10 {
            let frozen = sandbox.freeze();
            assert!(frozen.is_complete());
            let before = sandbox.written();
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(2));
                assert_eq!(sandbox.written(), before, "{caller:?}");
            }
            assert_eq!(frozen.thaw(), Held::Throughout);
            sandbox.wait_until("goes on", |sandbox| sandbox.written() != before);
        }
        sandbox.stop();
    }
}

#[test]
fn a_control_group_freezes_where_there_is_one() {
    for options in [&[][..], &["--pids", "64"], &["--rm"]] {
        let Some(sandbox) = Detached::new(Caller::Same, options, WRITERS) else { return };
        sandbox.wait_until("six writers", |sandbox| sandbox.written().len() == 6);
        let frozen = sandbox.freeze();
        if frozen.by() != FrozenBy::ControlGroup {
            sandbox.stop();
            return require::skip("no control groups of version 2 that may be written");
        }
        assert!(frozen.is_complete() && sandbox.groups().iter().any(|group| group.exists()));
        let before = sandbox.written();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(sandbox.written(), before);
        // Without a word, as when its process dies.
        drop(frozen);
        sandbox.wait_until("goes on", |sandbox| sandbox.written() != before);
        assert_eq!(sandbox.freeze().thaw(), Held::Throughout, "once more");
        let groups = sandbox.groups();
        sandbox.env.sandtable().args(["stop", "still"]).ended().expect_code(0).unused();
        assert!(groups.iter().all(|group| !group.exists()), "left: {groups:?}");
    }
}

#[test]
fn a_freeze_ends_with_its_process() {
    if require::program("perl").is_none() {
        return require::skip("speaking the protocol by hand needs perl");
    }
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(sandbox) = Detached::new(caller, &[], WRITERS) else { continue };
        sandbox.wait_until("six writers", |sandbox| sandbox.written().len() == 6);
        let home = sandbox.env.sandboxes().join("still");
        let mut holder = sandbox.env.run("perl").args(["-e", HOLDER]).arg(home).started();
        let mut said = [0; 7];
        std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut said).unwrap();
        let before = sandbox.written();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(sandbox.written(), before, "it is frozen");
        holder.kill().unwrap();
        holder.wait().unwrap();
        sandbox.wait_until("goes on", |sandbox| sandbox.written() != before);
        sandbox.stop();
    }
}

#[test]
fn who_was_stopped_before_stays_stopped() {
    let script = "(while :; do echo x >> stopped; sleep 0.01; done) & \
        sleep 0.2; kill -STOP $!; i=0; while :; do i=$((i+1)); echo $i > running; sleep 0.01; done";
    let Some(sandbox) = Detached::new(Caller::ordinary(), &[], script) else { return };
    let read = |sandbox: &Detached, name: &str| {
        let written = sandbox.written();
        written.into_iter().find(|(found, _)| found == name).map(|(_, text)| text)
    };
    sandbox.wait_until("one is stopped", |sandbox| read(sandbox, "running").is_some());
    let stopped = read(&sandbox, "stopped");
    assert_eq!(sandbox.freeze().thaw(), Held::Throughout);
    let before = read(&sandbox, "running");
    sandbox.wait_until("the other goes on", |sandbox| read(sandbox, "running") != before);
    assert_eq!(read(&sandbox, "stopped"), stopped);
    sandbox.stop();
}

#[test]
fn commands_and_signals_wait_and_two_may_hold() {
    let Some(sandbox) = Detached::new(Caller::ordinary(), &[], WRITERS) else { return };
    sandbox.wait_until("six writers", |sandbox| sandbox.written().len() == 6);
    let (first, second) = (sandbox.freeze(), sandbox.freeze());
    let exec = ["exec", "still", "--", "sh", "-c", "echo made > made"];
    let mut command = sandbox.env.sandtable().args(exec).started();
    drop(first);
    let before = sandbox.written();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(sandbox.written(), before, "the second still holds, and no command starts");
    assert_eq!(second.thaw(), Held::Throughout);
    assert!(command.wait().unwrap().success());
    assert!(sandbox.layer.join("made").exists());
    sandbox.stop();
}

#[test]
fn the_end_of_the_time_and_a_stop_break_a_freeze() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let script = format!("sleep 81241 & {WRITERS}");
        let Some(sandbox) = Detached::new(caller, &["--timeout", "1"], &script) else { continue };
        let frozen = sandbox.freeze();
        sandbox
            .wait_until("an outcome", |sandbox| sandbox.env.sandboxes().join("still/outcome.json").exists());
        assert_nothing_runs(&sandbox.env, "81241");
        assert_eq!(frozen.thaw(), Held::Broken);
        let exec = ["exec", "still", "--", "true"];
        sandbox.env.sandtable().args(exec).ended().expect_code(0).unused();
        sandbox.stop();
        let Some(sandbox) = Detached::new(caller, &[], &script) else { continue };
        let frozen = sandbox.freeze();
        sandbox.env.sandtable().args(["stop", "still"]).ended().expect_code(0).unused();
        assert_nothing_runs(&sandbox.env, "81241");
        assert_eq!(frozen.thaw(), Held::Broken);
    }
}
