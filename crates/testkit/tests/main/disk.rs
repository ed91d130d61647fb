//! The disk budget of a sandbox. Whatever writes here has a budget of a few mebibytes and a loop with an end, so that
//! a budget that does not hold costs the machine a hundred mebibytes and no more.

use std::path::PathBuf;

use sandtable_protocol::report::{Control, Observed};
use sandtable_sandbox::session::record::{ExitOrigin, Outcome};
use sandtable_testkit::container::Contained;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::Ended;
use sandtable_testkit::require;

use crate::cli::Unused as _;

/// Ways to pass 20 MiB, each with an end. Slow enough at the end to be seen.
const HOARDERS: [(&str, &str); 5] = [
    ("one file", "for i in $(seq 100); do head -c 1000000 /dev/zero >> f; sleep 0.02; done"),
    ("the home directory", "cd; for i in $(seq 100); do head -c 1000000 /dev/zero > f$i; sleep 0.02; done"),
    ("small files", "mkdir d; for i in $(seq 20000); do echo x > d/$i; done; sleep 5"),
    (
        "a deep tree",
        "for i in $(seq 100); do mkdir d; cd -P d; head -c 1000000 /dev/zero > f; sleep 0.02; done",
    ),
    (
        "a directory without permissions",
        "mkdir d; for i in $(seq 100); do chmod 700 d; head -c 1000000 /dev/zero > d/f$i; chmod 0 d; sleep 0.02; done",
    ),
];

/// Within 20 MiB, whatever it looks like.
const MODEST: [(&str, &str); 3] = [
    ("a sparse file", "truncate -s 1T f"),
    ("hard links", "head -c 5000000 /dev/zero > f; for i in $(seq 50); do ln f f$i; done"),
    ("what is removed again", "for i in $(seq 30); do head -c 5000000 /dev/zero > f; rm f; sleep 0.02; done"),
];

struct World {
    env: TestEnv,
    source: PathBuf,
}

impl World {
    fn each(test: impl Fn(&Self)) {
        for caller in [Caller::Same, Caller::ordinary()] {
            let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
            let source = env.repository("r");
            test(&Self { env, source });
        }
    }

    fn report(&self) -> PathBuf {
        self.env.home().join("report.json")
    }

    fn run(&self, options: &[&str], script: &str) -> (Ended, Outcome) {
        let run = self.env.sandtable().directory(&self.source).arg("run").args(options);
        let ended = run.arg("--report").arg(self.report()).args(["--", "sh", "-c", script]).ended();
        let text = fs_err::read_to_string(self.report()).unwrap_or_else(|_| panic!("{ended:?}"));
        fs_err::remove_file(self.report()).unwrap();
        (ended, serde_json::from_str(&text).unwrap())
    }

    fn remove(&self, name: &str) {
        self.env.sandtable().args(["rm", name]).ended().expect_code(0).unused();
        assert!(!self.env.sandboxes().join(name).exists());
    }
}

#[test]
fn what_passes_the_budget_is_ended_and_kept() {
    World::each(|world| {
        for (what, script) in HOARDERS {
            let (ended, outcome) =
                world.run(&["--disk", "20m", "--name", "full"], &format!("{script}; echo survived"));
            assert_eq!((ended.code, ended.stdout.as_str()), (123, ""), "{what}: {}", ended.stderr);
            assert_eq!((outcome.exit.code, outcome.exit.origin), (123, ExitOrigin::Sandbox), "{what}");
            let observed = outcome.enforcement.get(&Control::DiskLimit);
            assert!(
                matches!(observed, Some(Observed::Watched { how }) if how.starts_with("20m")),
                "{observed:?}"
            );
            let said = outcome.warnings.iter().find(|warning| warning.code == "disk-budget").unwrap();
            for word in ["may take 20m", "sandboxes/full/", "`--disk`"] {
                assert!(said.text.contains(word), "{what}: no `{word}`: {}", said.text);
            }
            assert!(ended.stderr.contains("[not-recorded]"), "{what}: {}", ended.stderr);
            assert!(ended.stderr.contains("ended by the disk budget"), "{what}: {}", ended.stderr);
            // Its work is there, and can be looked at and removed.
            world.env.sandtable().args(["diff", "full"]).ended().expect_code(0).unused();
            world.remove("full");
        }
    });
}

#[test]
fn what_is_within_the_budget_is_left_alone() {
    World::each(|world| {
        for (what, script) in MODEST {
            let (ended, outcome) =
                world.run(&["--disk", "20m", "--rm", "-q"], &format!("{script}; sleep 0.3; echo fine"));
            assert_eq!((ended.code, ended.stdout.as_str()), (0, "fine\n"), "{what}: {}", ended.stderr);
            assert!(outcome.warnings.iter().all(|warning| warning.code != "disk-budget"), "{what}");
        }
    });
}

#[test]
fn further_commands_are_watched_and_may_make_room() {
    World::each(|world| {
        let exec =
            |script: &str| world.env.sandtable().args(["exec", "two", "--", "sh", "-c", script]).ended();
        let (ended, _) = world.run(&["--disk", "20m", "--name", "two"], "head -c 15000000 /dev/zero > f");
        ended.expect_code(0).unused();
        exec("for i in $(seq 50); do head -c 1000000 /dev/zero >> g; sleep 0.02; done")
            .expect_code(123)
            .unused();
        // It takes more than it may by now, and what does not add to it runs.
        assert_eq!(exec("sleep 0.3; rm f g; sleep 0.3; echo fine").expect_code(0).stdout, "fine\n");
        exec("for i in $(seq 50); do head -c 1000000 /dev/zero >> g; sleep 0.02; done")
            .expect_code(123)
            .unused();
        world.remove("two");
    });
}

#[test]
fn a_command_beside_another_counts_as_well() {
    World::each(|world| {
        let run = world
            .env
            .sandtable()
            .directory(&world.source)
            .args(["run", "-d", "--disk", "20m", "--name", "bg"]);
        run.args(["--", "sleep", "60"]).ended().expect_code(0).unused();
        let write = "for i in $(seq 100); do head -c 1000000 /dev/zero >> g; sleep 0.02; done";
        let beside = world.env.sandtable().args(["exec", "bg", "--", "sh", "-c", write]).ended();
        assert_ne!(beside.code, 0, "{beside:?}");
        let inspected =
            || world.env.sandtable().args(["inspect", "bg", "--json"]).ended().expect_code(0).stdout;
        let ended = (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let known: serde_json::Value = serde_json::from_str(&inspected()).unwrap();
            known["outcome"]["exit"]["code"] == 123
        });
        assert!(ended, "{}", inspected());
        world.remove("bg");
    });
}

#[test]
fn a_budget_is_a_setting_like_any_other() {
    World::each(|world| {
        let policy = |options: &[&str]| {
            let shown = world.env.sandtable().directory(&world.source).args(["policy", "show"]).args(options);
            let shown = shown.ended().expect_code(0).stdout;
            let line = shown.lines().find(|line| line.trim_start().starts_with("disk ")).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(policy(&[]), "disk half of what is free default");
        assert_eq!(policy(&["--disk", "1.5g"]), "disk 1536m flag --disk");
        let run = world.env.sandtable().directory(&world.source).variable("SANDTABLE_DISK", "20m");
        run.args(["run", "--rm", "--", "sh", "-c", HOARDERS[0].1]).ended().expect_code(123).unused();
        let (ended, outcome) = world.run(&["--disk", "none", "--rm"], "echo fine");
        assert_eq!(ended.expect_code(0).stdout, "fine\n");
        let observed = outcome.enforcement.get(&Control::DiskLimit);
        assert!(matches!(observed, Some(Observed::Absent { why }) if why.contains("--disk")), "{observed:?}");
        world.env.file(&world.source.join(".sandtable.toml"), "disk = \"none\"\n");
        let widened =
            world.env.sandtable().directory(&world.source).args(["run", "--rm", "--", "true"]).ended();
        widened.expect_code(2).expect_stderr("would widen the policy").unused();
    });
}

#[test]
fn containers_have_a_budget_too() {
    Contained::each(Contained::new, |world, source| {
        for (what, script) in [HOARDERS[0], HOARDERS[1]] {
            let script = script.replace("sleep 0.02", "sleep 0.05");
            let ended = world.run_script(&source, &["--disk", "20m", "--name", "full"], &script);
            assert_eq!(ended.code, 123, "{what}: {ended:?}");
            drop(ended.expect_stderr("may take 20m"));
            drop(world.sandtable().args(["rm", "full"]).ended().expect_code(0));
        }
        assert_eq!(world.left(), [""; 0]);
    });
}

/// A file system of 128 MiB for the state, in a mount namespace that is gone with the command.
#[test]
fn the_default_budget_and_the_reserve_hold_on_a_small_file_system() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::Same) else { return };
    if !require::is_root() {
        return require::skip("mounting a file system needs root");
    }
    let (Some(_), Some(_)) = (require::program("mkfs.ext4"), require::program("unshare")) else {
        return require::skip("no `mkfs.ext4` or no `unshare`");
    };
    let source = env.repository("r");
    let (image, place) = (env.root().join("image"), env.root().join("small"));
    env.directory(&place);
    let ended = |options: &[&str], script: &str| {
        fs_err::File::create(&image).unwrap().set_len(128 << 20).unwrap();
        env.run("mkfs.ext4").args(["-q", "-F"]).arg(&image).ended().expect_code(0).unused();
        let mounted = "mount -o loop \"$1\" \"$2\" 2>/dev/null || exit 77; shift 2; \"$@\"";
        let run = env.sandtable().directory(&source).variable("XDG_DATA_HOME", place.join("data"));
        let run = run.args(["run", "--name", "small"]).args(options).args(["--", "sh", "-c", script]);
        let apart = ["unshare", "-m", "--propagation", "private", "sh", "-c", mounted, "sh"];
        let words = apart.into_iter().map(PathBuf::from).chain([image.clone(), place.clone()]);
        run.through(words).ended()
    };
    let one = |seconds: &str| {
        format!("for i in $(seq 200); do head -c 1000000 /dev/zero >> f || exit 9; sleep {seconds}; done")
    };
    let half = ended(&[], &one("0.02"));
    if half.code == 77 {
        return require::skip("no loop device can be mounted here");
    }
    half.expect_code(123).expect_stderr("half of what was free").unused();
    let inodes = "mkdir d; for i in $(seq 40000); do : > d/$i || exit 9; done; sleep 5";
    ended(&[], inodes).expect_code(123).expect_stderr("files and directories").unused();
    // More than there is: the reserve is what is left, and no write fails before.
    ended(&["--disk", "1g"], &one("0.05"))
        .expect_code(123)
        .expect_stderr("are left on the file system")
        .unused();
    // In no tree: deleted, and still open.
    let unseen =
        "exec 3> f; rm f; for i in $(seq 200); do head -c 1000000 /dev/zero >&3 || exit 9; sleep 0.05; done";
    ended(&[], unseen).expect_code(123).expect_stderr("are left on the file system").unused();
}
