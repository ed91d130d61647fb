//! Docker and Podman for real: the same promises as on the native engine, with any image, for root and for an
//! ordinary user, and nothing left behind.

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use sandtable_testkit::agent::SshAgent;
use sandtable_testkit::container::{Contained, Kind};
use sandtable_testkit::counts;
use sandtable_testkit::env::Caller;

/// Every engine and caller of this machine, each with a repository.
#[test]
fn a_command_runs_on_a_copy_on_write_view() {
    Contained::each(Contained::new, |world, source| {
        let before = world.env.fingerprint(&source);
        let script =
            "pwd; id -u; whoami; echo x > new; rm README; rm -r docs; mkdir docs; echo y > docs/z; exit 7";
        let ended = world.run_script(&source, &["--name", "one"], script).expect_code(7);
        let uid = uid_of(world);
        let name = if uid == 0 { "root" } else { "user" };
        assert_eq!(ended.stdout, format!("{}\n{uid}\n{name}\n", source.display()));
        let moved = before.differences(&world.env.fingerprint(&source));
        assert_eq!(moved, [""; 0]);
        for line in ["D README", "A new", "A docs/z", "D docs/guide.txt"] {
            assert!(ended.stderr.contains(line), "no `{line}`: {}", ended.stderr);
        }
        let again =
            world.sandtable().args(["exec", "one", "--", "sh", "-c", "cat new docs/z; ls -a docs"]).ended();
        assert_eq!(again.expect_code(0).stdout, "x\ny\n.\n..\nz\n");
        drop(world.sandtable().args(["rm", "one"]).ended().expect_code(0));
        assert!(!world.env.sandboxes().join("one").exists());
    });
}

#[test]
fn exit_codes_signals_and_streams_are_the_commands_own() {
    Contained::each(Contained::new, |world, source| {
        let rm: &[&str] = &["--rm", "-q"];
        let code = |script: &str| world.run_script(&source, rm, script).code;
        assert_eq!(
            (code("exit 0"), code("exit 3"), code("kill -TERM $$"), code("kill -9 $$")),
            (0, 3, 143, 137)
        );
        let missing = world.starting(&source).args(rm).args(["--", "no-such-program"]).ended();
        drop(missing.expect_code(127).expect_stderr("command not found"));
        let ended = world.run_script(&source, rm, "echo out; echo err >&2");
        assert_eq!((ended.stdout.as_str(), ended.stderr.lines().next()), ("out\n", Some("err")));
        let pipe = world.starting(&source).args(rm).args(["--", "cat"]);
        let piped = pipe.through(["sh", "-c", "printf 'a\\nb' | \"$@\"", "sh"]).ended();
        assert_eq!(piped.expect_code(0).stdout, "a\nb");
        let late = world.run_script(&source, &["--rm", "-q", "--timeout", "1"], "sleep 60");
        assert_eq!(late.code, 124);
    });
}

#[test]
fn a_terminal_has_its_size() {
    Contained::each(Contained::new, |world, source| {
        let run = world.starting(&source).args([
            "--rm",
            "-q",
            "-t",
            "--",
            "sh",
            "-c",
            "stty size; test -t 0 && echo tty",
        ]);
        let ended = run.ended();
        assert!(ended.stdout.contains("tty"), "{ended:?}");
    });
}

#[test]
fn files_made_in_the_directory_itself_are_the_callers() {
    Contained::each(Contained::new, |world, source| {
        let ended = world.run_script(&source, &["--mode", "live", "--rm", "-q"], "echo x > made; id -u");
        drop(ended.expect_code(0));
        let made = fs_err::metadata(source.join("made")).unwrap();
        assert_eq!((made.uid(), made.gid()), (uid_of(world), uid_of(world).min(made.gid())));
    });
}

#[test]
fn a_value_that_is_passed_on_is_seen_by_the_command_only() {
    Contained::each(Contained::new, |world, source| {
        let run = world
            .starting(&source)
            .variable("API_KEY", "hunter2")
            .args(["--name", "k", "-d", "-e", "API_KEY"]);
        drop(run.args(["--", "sh", "-c", "echo $API_KEY; sleep 60"]).ended().expect_code(0));
        let logs = || world.sandtable().args(["logs", "k"]).ended().stdout;
        assert!((0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            logs() == "hunter2\n"
        }));
        let names = world.engine(&["ps", "--format", "{{.Names}}"]);
        let name = names.lines().find(|name| name.starts_with("sandtable-k-")).expect("it runs");
        assert!(!world.engine(&["inspect", name]).contains("hunter2"));
        drop(world.sandtable().args(["rm", "-f", "k"]).ended().expect_code(0));
    });
}

#[test]
fn a_killed_supervisor_leaves_nothing_to_the_next_start() {
    Contained::each(Contained::new, |world, source| {
        let mut child = world.starting(&source).args(["--name", "dead", "--", "sleep", "1000"]).started();
        let control = world.env.sandboxes().join("dead/container.json");
        let runs =
            || !world.sandtable().args(["exec", "dead", "--", "true"]).ended().stderr.contains("error");
        assert!((0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            control.exists() && runs()
        }));
        child.kill().unwrap();
        child.wait().unwrap();
        // PID 1 holds the lock until it has ended, which may be a moment after the first start that comes.
        assert!((0..20).any(|_| {
            drop(world.run_script(&source, &["--rm", "-q"], "true").expect_code(0));
            !control.exists()
        }));
        assert_eq!(world.left(), [""; 0]);
        drop(world.sandtable().args(["rm", "dead"]).ended().expect_code(0));
    });
}

#[test]
fn limits_hold() {
    Contained::each(Contained::new, |world, source| {
        let options: &[&str] = &["--rm", "--memory", "64m", "--pids", "30", "--cpus", "0.5"];
        let ended = world.run_script(&source, options, "x=a; while :; do x=$x$x; done");
        match ended.code {
            137 => drop(ended.expect_stderr("memory")),
            // An ordinary user's engine has no control groups of the first version to put a limit on.
            125 if world.kind == Kind::Podman && uid_of(world) != 0 => {
                drop(ended.expect_stderr("`memory-limit` is required but not enforced"));
            }
            _ => panic!("{ended:?}"),
        }
    });
}

#[test]
fn what_cannot_be_had_says_whose_move_it_is() {
    Contained::each(Contained::new, |world, source| {
        let run = |options: &[&str]| world.run_script(&source, options, "true");
        let asked = world.sandtable().directory(&source).args(["run", "--engine", world.kind.word()]);
        drop(asked.args(["--", "true"]).ended().expect_code(2).expect_stderr("image = "));
        let never = world
            .sandtable()
            .directory(&source)
            .args([
                "run",
                "--engine",
                world.kind.word(),
                "--image",
                "localhost/nobody/has:this",
                "--pull",
                "never",
            ])
            .args(["--", "true"])
            .ended();
        drop(never.expect_code(2).expect_stderr("https://github.com/vybestack/llxprt-code/discussions"));
        drop(
            run(&["--engine-flags", "--privileged"])
                .expect_code(2)
                .expect_stderr("--dangerously-engine-flags"),
        );
        drop(run(&["--publish", "80"]).expect_code(2).expect_stderr("--network nat"));
        drop(run(&["--publish", "eighty"]).expect_code(2).expect_stderr("is not a port"));
    });
}

#[test]
fn what_is_hidden_is_not_there() {
    Contained::each(Contained::new, |world, source| {
        world.env.file(&source.join("src/.env"), "TOKEN=x\n");
        let script = "ls -a src; cat src/.env; echo y > src/.env; cat src/.env";
        let ended = world.run_script(&source, &["--rm", "-q", "--secrets", "mask"], script);
        assert_eq!(ended.stdout, ".\n..\ndeep\nmain.c\ny\n", "{}", ended.stderr);
        assert_eq!(fs_err::read_to_string(source.join("src/.env")).unwrap(), "TOKEN=x\n");
    });
}

#[test]
fn an_entry_point_of_the_image_is_not_run_and_its_variables_are_kept() {
    Contained::each(Contained::new, |world, source| {
        let recipe = format!(
            "FROM {}\nENV FROM_IMAGE=yes\nENTRYPOINT [\"/bin/false\"]\nHEALTHCHECK CMD [\"/bin/false\"]\n",
            world.image
        );
        world.env.file(&source.join(".llxprt/sandbox.Dockerfile"), recipe);
        let name = world.image.replace(":1", ":built");
        let words = ["run", "--rm", "-q", "--engine", world.kind.word(), "--image", &name];
        let run = world.sandtable().directory(&source).variable("BUILD_SANDBOX", "1").args(words);
        let ended = run.args(["--", "sh", "-c", "echo $FROM_IMAGE $HOME; ls -a ~"]).ended().expect_code(0);
        let home = world.env.home();
        assert_eq!(ended.stdout, format!("yes {}\n.\n..\n", home.display()));
        world.engine(&["rmi", "--force", &name]);
    });
}

#[test]
fn the_agent_is_inside_where_it_is_wanted() {
    Contained::each(Contained::new, |world, source| {
        let Some(agent) = SshAgent::start(&world.env) else { return };
        let run = |setting: &str| {
            let run = world.starting(&source).variable("SSH_AUTH_SOCK", agent.socket());
            let run = run.variable("SANDTABLE_SSH_AGENT", setting).args(["--rm", "-q", "--", "sh", "-c"]);
            run.arg("echo ${SSH_AUTH_SOCK:-none}; ls /ssh-agent; ssh-add -l").ended()
        };
        let inside = run("required").expect_code(0).stdout;
        assert!(inside.starts_with("/ssh-agent\n/ssh-agent\n"), "{inside}");
        assert!(inside.contains(agent.fingerprint()), "{inside}");
        assert_eq!(run("off").stdout, "none\n");
    });
}

#[test]
fn many_at_once_do_not_collide() {
    Contained::each(Contained::new, |world, source| {
        let count = counts::of("containers-at-once");
        let children: Vec<_> = (0..count)
            .map(|number| {
                let script = format!("echo {number} > own; cat own");
                world.starting(&source).args(["-q", "--", "sh", "-c", &script]).started()
            })
            .collect();
        for (number, child) in children.into_iter().enumerate() {
            let output = child.wait_with_output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{number}\n"), "{stderr}");
        }
    });
}

fn uid_of(world: &Contained) -> u32 {
    match world.env.caller() {
        Caller::Same => fs_err::metadata(world.env.home()).unwrap().uid(),
        Caller::Ordinary { uid, .. } => uid,
    }
}
