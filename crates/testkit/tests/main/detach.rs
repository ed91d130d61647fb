//! Commands that run without their caller: started, watched, joined, ended, cleared away.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use sandtable_testkit::counts;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::Ended;
use sandtable_testkit::require;

use crate::cli::{Unused, assert_nothing_made};
use crate::lifecycle::{assert_nothing_is_mounted_or_locked, assert_nothing_runs};

/// A world with a repository, and a way to call the executable in it.
struct World {
    env: TestEnv,
    source: std::path::PathBuf,
}

impl World {
    fn of_everyone() -> impl Iterator<Item = Self> {
        [Caller::Same, Caller::ordinary()].into_iter().filter_map(Self::of)
    }

    fn of(caller: Caller) -> Option<Self> {
        let env = TestEnv::of_the_executable_as(caller)?;
        let source = env.repository("r");
        Some(Self { env, source })
    }

    fn call(&self, args: &[&str]) -> Ended {
        self.env.sandtable().directory(&self.source).args(args).ended()
    }

    /// Starts a script in the background; its name.
    fn detached(&self, options: &[&str], script: &str) -> String {
        let args = [&["run", "-d"], options, &["--", "sh", "-c", script]].concat();
        self.call(&args).expect_code(0).stdout.trim().to_owned()
    }

    fn state(&self, name: &str) -> String {
        let listed = self.call(&["ls", "--json"]).expect_code(0).stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let rows = listed["sandboxes"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name);
        row.map_or_else(String::new, |row| row["state"].as_str().unwrap().to_owned())
    }

    fn wait_for_end(&self, name: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.state(name) == "running" {
            assert!(Instant::now() < deadline, "{name} still runs");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_detached_command_goes_on_and_can_be_looked_at() {
    for world in World::of_everyone() {
        let began = Instant::now();
        let name = world.detached(&[], "echo out; echo err >&2; echo x > made; sleep 71250");
        assert!(began.elapsed() < Duration::from_secs(10), "the caller was kept waiting");
        assert_eq!(world.state(&name), "running");
        let deadline = Instant::now() + Duration::from_secs(20);
        while world.call(&["logs", &name]).stderr != "err\n" {
            assert!(Instant::now() < deadline, "nothing in the log");
        }
        assert_eq!(world.call(&["logs", &name]).expect_code(0).stdout, "out\n");
        assert_eq!(world.call(&["exec", "-q", &name, "--", "cat", "made"]).expect_code(0).stdout, "x\n");
        world.call(&["stop", "--grace", "1", &name]).expect_code(0).unused();
        assert_eq!(world.state(&name), "stopped");
        assert_nothing_runs(&world.env, "71250");
        let record = world.call(&["inspect", &name]).expect_code(0).stdout;
        assert!(record.contains("exit 143") && record.contains("A made"), "{record}");
    }
}

#[test]
fn what_keeps_a_detached_command_from_running_is_told_to_its_caller() {
    for world in World::of_everyone() {
        for (args, code, words) in [
            (&["--", "/nonexistent"][..], 127, "command not found"),
            (&["--", "/etc"][..], 126, "cannot execute"),
            (&["--name", "No such name", "--", "true"][..], 2, "name"),
            (&["--report", "/nonexistent/file", "--", "true"][..], 2, "report"),
        ] {
            let args = [&["run", "-d"], args].concat();
            let ended = world.call(&args).expect_code(code).expect_stderr(words);
            assert_eq!(ended.stdout, "", "no name of something that does not run");
        }
        assert_nothing_made(&world.env);
        let both = world.call(&["run", "-d", "-t", "--", "true"]);
        assert_eq!(both.code, 2, "{}", both.stderr);
    }
}

#[test]
fn a_detached_sandbox_that_is_not_kept_goes_with_its_command() {
    let Some(world) = World::of(Caller::Same) else { return };
    let name = world.detached(&["--rm"], "echo x > made");
    let deadline = Instant::now() + Duration::from_secs(20);
    while world.env.sandboxes().join(&name).exists() {
        assert!(Instant::now() < deadline, "{name} is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_report_is_written_when_the_detached_command_ends() {
    let Some(world) = World::of(Caller::Same) else { return };
    let report = world.env.root().join("report.json");
    let name = world.detached(&["--report", report.to_str().unwrap()], "exit 7");
    world.wait_for_end(&name);
    let deadline = Instant::now() + Duration::from_secs(10);
    while fs_err::metadata(&report).unwrap().len() == 0 {
        assert!(Instant::now() < deadline, "no report");
    }
    assert!(fs_err::read_to_string(&report).unwrap().contains("\"code\": 7"));
}

#[test]
fn many_detached_at_once_and_nothing_left_after_stop() {
    let Some(world) = World::of(Caller::Same) else { return };
    let count = counts::of("detached");
    let run = world.env.sandtable().directory(&world.source);
    let run = run.args(["run", "-d", "-q", "--", "sh", "-c", "echo here $SANDBOX; exec sleep 71251"]);
    let callers: Vec<_> = (0..count).map(|_| run.started()).collect();
    let mut names = BTreeSet::new();
    for caller in callers {
        let output = caller.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(names.insert(name.clone()), "`{name}` twice");
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(names.iter().all(|name| world.state(name) == "running") || names.len() > 40);
    let few = &names[..names.len().min(5)];
    let following = world.env.sandtable().args(["logs", "-f"]).args(few).started();
    world.call(&[&["stop", "--grace", "2"], &names[..]].concat()).expect_code(0).unused();
    let followed = following.wait_with_output().unwrap();
    let followed = String::from_utf8_lossy(&followed.stdout).into_owned();
    for name in few {
        assert!(followed.contains(&format!("{name} | here {name}\n")), "{name} in {followed}");
    }
    assert_nothing_runs(&world.env, "71251");
    assert_nothing_is_mounted_or_locked(&world.env);
    world.call(&["prune", "--all"]).expect_code(0).unused();
    assert_nothing_made(&world.env);
    require::say(&format!("{count} detached at once, stopped: nothing left"));
}

#[test]
fn a_killed_detached_supervisor_leaves_nothing_running() {
    let Some(world) = World::of(Caller::Same) else { return };
    let name = world.detached(&[], "sleep 71252");
    let script = "kill -9 $(pgrep -x sandtable | while read p; do \
        [ \"$(readlink /proc/$p/exe)\" = \"$0\" ] && echo $p; done)";
    world.env.run("sh").args(["-c", script]).arg(world.env.binary()).ended().unused();
    assert_nothing_runs(&world.env, "71252");
    // A process that is not listed any more may still be letting go of its files, the lock among them.
    world.wait_for_end(&name);
    assert_eq!(world.state(&name), "interrupted");
}

#[test]
fn logs_are_exact_and_can_be_cut_and_dated() {
    let Some(world) = World::of(Caller::Same) else { return };
    let name = world.detached(&["--name", "one"], "seq 1000; printf '\\033[1m\\377end'");
    world.wait_for_end(&name);
    let run =
        world.env.run("sh").args(["-c", "\"$0\" logs one | tail -c 8 | od -An -tx1"]).arg(world.env.binary());
    assert_eq!(run.ended().stdout.trim(), "1b 5b 31 6d ff 65 6e 64");
    let last = world.call(&["logs", "--tail", "3", "one"]).expect_code(0).stdout;
    assert!(last.starts_with("999\n1000\n"), "{last:?}");
    let dated = world.call(&["logs", "--timestamps", "one"]).expect_code(0).stdout;
    assert!(
        dated.lines().next().is_some_and(|line| line.ends_with("Z 1") && line.starts_with("20")),
        "{dated}"
    );
    world.call(&["run", "-q", "--name", "two", "--", "true"]).expect_code(0).unused();
    world.call(&["logs", "two"]).expect_code(2).expect_stderr("[no-log]").unused();
    world.call(&["logs", "three"]).expect_code(2).expect_stderr("three").unused();
}

#[test]
fn a_command_that_writes_for_ever_does_not_fill_the_disk() {
    let Some(world) = World::of(Caller::Same) else { return };
    let name = world.detached(&[], "head -c 60000000 /dev/zero; echo; echo last");
    world.wait_for_end(&name);
    let directory = world.env.sandboxes().join(&name);
    let size = |file: &str| fs_err::metadata(directory.join(file)).map_or(0, |found| found.len());
    assert!(size("log") + size("log.1") < 20_000_000, "{} {}", size("log"), size("log.1"));
    let log = world.call(&["logs", "--tail", "1", &name]).expect_code(0);
    assert_eq!(log.stdout, "last\n");
    log.expect_stderr("bytes of the log are gone").unused();
}

#[test]
fn events_tell_the_life_of_a_sandbox() {
    let Some(world) = World::of(Caller::Same) else { return };
    world.call(&["run", "-q", "--name", "told", "--", "sh", "-c", "exit 7"]).expect_code(7).unused();
    world.call(&["exec", "-q", "told", "--", "true"]).expect_code(0).unused();
    world.call(&["rm", "told"]).expect_code(0).unused();
    let lines = world.call(&["events", "--json"]).expect_code(0).stdout;
    let events: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Operations on states are among them: each follows the one before it.
    let (events, operations): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|event| event.get("event").is_some());
    let types: Vec<&str> = operations.iter().map(|operation| operation["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["onboard", "create", "rm"]);
    assert!(operations.windows(2).all(|two| two[1]["causality"] == two[0]["op_id"]), "{operations:?}");
    assert!(operations[0]["causality"].is_null() && operations[2]["snap_sha"].is_null());
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["created", "started", "ended", "started", "ended", "removed"]);
    assert!(events.iter().all(|event| event["name"] == "told" && event["sandbox"] == events[0]["sandbox"]));
    assert_eq!(events[2]["exit"]["code"], 7);
    let mut following = world.env.sandtable().args(["events", "-f"]).started();
    world.call(&["run", "-q", "--rm", "--name", "next", "--", "true"]).expect_code(0).unused();
    std::thread::sleep(Duration::from_millis(500));
    following.kill().unwrap();
    let seen = following.wait_with_output().unwrap();
    let seen = String::from_utf8_lossy(&seen.stdout).into_owned();
    assert!(seen.contains("removed   next"), "{seen}");
}

#[test]
fn prune_removes_what_nobody_needs() {
    for world in World::of_everyone() {
        world.call(&["run", "-q", "--name", "same", "--", "true"]).expect_code(0).unused();
        world.call(&["run", "-q", "--name", "changed", "--", "touch", "new"]).expect_code(0).unused();
        world.detached(&["--name", "runs"], "sleep 71253");
        let dry = world.call(&["prune", "--dry-run", "--json"]).expect_code(0).stdout;
        let dry: serde_json::Value = serde_json::from_str(&dry).unwrap();
        assert_eq!(dry["removed"][0]["name"], "same");
        assert_eq!(dry["removed"].as_array().map(Vec::len), Some(1));
        assert_eq!(world.state("same"), "stopped", "nothing was removed");
        assert_eq!(world.call(&["prune", "--older-than", "1h"]).expect_code(0).stdout, "");
        assert_eq!(world.call(&["prune"]).expect_code(0).stdout, "same\n");
        assert_eq!(world.call(&["prune", "--all"]).expect_code(0).stdout, "changed\n");
        assert_eq!(world.state("runs"), "running");
        world.call(&["prune", "--older-than", "soon"]).expect_code(2).unused();
        world.call(&["rm", "-f", "runs"]).expect_code(0).unused();
        assert_nothing_made(&world.env);
    }
}

#[test]
fn the_listing_shows_the_size_of_the_layer() {
    let Some(world) = World::of(Caller::Same) else { return };
    world
        .call(&["run", "-q", "--name", "big", "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x > f"])
        .expect_code(0)
        .unused();
    let listed = world.call(&["ls"]).expect_code(0).stdout;
    let row = listed.lines().find(|line| line.starts_with("big")).unwrap();
    assert!(row.contains("KiB") && row.contains("stopped") && row.contains("tr"), "{listed}");
    let json = world.call(&["ls", "--json"]).expect_code(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["sandboxes"][0]["size"]["bytes"].as_u64().unwrap() >= 3_000_000, "{json}");
}
