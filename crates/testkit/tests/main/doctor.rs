//! `doctor` tells the truth, and its way out is one: as root, as an ordinary user, inside a container, and
//! where user namespaces are forbidden.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use sandtable_protocol::report::Control;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::{Ended, Run};
use sandtable_testkit::require;
use serde_json::Value;

use crate::cli::Unused;

#[test]
fn root_or_whoever_runs_the_tests_can_make_sandboxes() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    everything_holds(&env);
}

#[test]
fn an_ordinary_user_can_make_sandboxes() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    everything_holds(&env);
}

/// A sandbox was launched, all controls hold, no attack went through, nothing is left of it.
fn everything_holds(env: &TestEnv) {
    let temporary = env.root().join("t");
    env.directory(&temporary);
    let run = env.sandtable().variable("TMPDIR", &temporary).variable("DEPLOY_TOKEN", "canary");
    let answer = answer(&run.args(["doctor", "--attack", "--json"]).ended(), 0);
    assert_eq!(answer["works"], true, "{answer:#}");
    let native = engine(&answer, "native");
    let enforced = native["enforcement"].as_object().unwrap();
    assert_eq!(enforced.len(), Control::ALL.len() - Control::LIMITS.len(), "nobody asked for a limit");
    let holds = |(control, observed): (&String, &Value)| {
        let state = if control == Control::DiskLimit.name() { "watched" } else { "enforced" };
        observed["state"] == state
    };
    assert!(enforced.iter().all(holds), "{native:#}");
    let attacks = answer["attacks"].as_array().unwrap();
    let (bad, tried): (Vec<&Value>, Vec<&Value>) =
        attacks.iter().partition(|attack| attack["got"] != attack["expected"]);
    assert!(bad.iter().all(|attack| attack["got"] == "unsupported"), "{bad:#?}");
    assert!(tried.len() > 100 && bad.len() < 5, "{} tried, {} not", tried.len(), bad.len());
    let place = attack(&answer, "mount-point");
    assert_eq!(place["got"], "blocked", "{place:#}");
    assert!(place["detail"].as_str().unwrap().contains("the next start was refused"), "{place:#}");
    for id in ["lease", "directory-notify", "set-id"] {
        let tried = attack(&answer, id);
        assert_eq!((&tried["expected"], &tried["got"]), (&"blocked".into(), &"blocked".into()), "{tried:#}");
    }
    for id in
        ["kernel.version", "kernel.user-namespaces", "kernel.landlock", "machine.proc", "state.directory"]
    {
        assert_eq!(check(&answer, id)["status"], "ok", "{answer:#}");
    }
    assert_eq!(fs_err::read_dir(&temporary).unwrap().count(), 0, "the trial left something behind");
    let listed = env.sandtable().args(["ls", "--json"]).ended().expect_code(0);
    assert!(listed.stdout.contains("\"sandboxes\": []"), "{}", listed.stdout);
}

#[test]
fn forbidden_user_namespaces_are_named_and_allowing_them_helps() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    // The limit is that of the throw-away namespace and of nobody else. Its maker may change it there.
    let script = "echo \"$1\" > /proc/sys/user/max_user_namespaces && shift && \
                  exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all \"$@\"";
    let with_limit = |limit: &str| {
        let inside = ["--user", "--map-current-user", "--keep-caps", "sh", "-c", script, "sh", limit];
        env.run("unshare").args(inside).arg(env.binary()).args(["doctor", "--json"]).ended()
    };
    let answer = answer(&with_limit("0"), 1);
    assert_eq!(answer["works"], false);
    let launch = check(&answer, "native.launch");
    assert_eq!(launch["status"], "fail");
    assert!(launch["why"].as_str().unwrap().contains("cannot make the namespaces"), "{launch:#}");
    let cause = check(&answer, "kernel.user-namespaces");
    assert!(cause["why"].as_str().unwrap().contains("`user.max_user_namespaces` is 0"), "{cause:#}");
    for mend in [&launch["mend"], &cause["mend"]] {
        assert_eq!(mend, "sudo sysctl -w user.max_user_namespaces=15000");
    }
    // What the mend does, done to the throw-away namespace.
    let mended = self::answer(&with_limit("15000"), 0);
    assert_eq!(mended["works"], true);
}

#[test]
fn a_covered_proc_is_named_and_uncovering_it_helps() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if !require::is_root() {
        return require::skip("covering a part of /proc needs root");
    }
    let within = |script: &str| {
        let script = format!("{script} && exec \"$@\"");
        let inside = ["--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", &script, "sh"];
        env.run("unshare").args(inside).arg(env.binary()).args(["doctor", "--json"]).ended()
    };
    let answer = answer(&within("mount --bind /dev/null /proc/version"), 1);
    let launch = check(&answer, "native.launch");
    assert!(launch["why"].as_str().unwrap().contains("cannot mount `/proc`"), "{launch:#}");
    let cause = check(&answer, "machine.proc");
    assert!(cause["why"].as_str().unwrap().contains("`/proc/version`"), "{cause:#}");
    assert_eq!(launch["mend"], cause["mend"]);
    assert!(cause["mend"].as_str().unwrap().contains("systempaths=unconfined"), "{cause:#}");
    let mended = self::answer(&within("mount --bind /dev/null /proc/version && umount /proc/version"), 0);
    assert_eq!(mended["works"], true);
}

#[test]
fn root_of_a_small_user_namespace_is_told_to_be_somebody_else_and_that_helps() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    let doctor = |words: &[&str]| {
        let inside = ["--user", "--map-root-user"];
        env.run("unshare").args(inside).args(words).arg(env.binary()).args(["doctor", "--json"]).ended()
    };
    let answer = answer(&doctor(&[]), 1);
    assert_eq!(check(&answer, "kernel.id-range")["status"], "fail");
    let mend = check(&answer, "native.launch")["mend"].as_str().unwrap().to_owned();
    let words: Vec<&str> = mend.split(' ').take_while(|word| *word != "sandtable").collect();
    assert_eq!(words[0], "unshare", "{mend}");
    let mended = self::answer(&doctor(&words), 0);
    assert_eq!(mended["works"], true);
}

/// Whatever Podman is asked it makes directories: root asks it as if there were no home, others not before it has run.
#[test]
fn asking_podman_leaves_no_trace() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { return };
        if require::program("podman").is_none() {
            return require::skip("no Podman");
        }
        let run = env.sandtable().variable("LLXPRT_SANDBOX_IMAGE", "nobody.invalid/has:this").arg("doctor");
        let said = run.ended().stdout;
        let found = if caller == Caller::Same && require::is_root() { "version " } else { "installed; " };
        assert!(said.contains(&format!("engine `podman`: {found}")), "{said}");
        for place in [".config/containers", ".local/share/containers", ".cache/containers", ".local/state"] {
            assert!(!env.home().join(place).exists(), "{place} {caller:?}");
        }
    }
}

#[test]
fn a_docker_container_is_recognised_and_the_named_options_help() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let Some(docker) = Docker::start(&env) else {
        return require::say("no dockerd can be started here; the covered /proc stands in for a container");
    };
    let answer = answer(&docker.doctor(&[]), 1);
    assert_eq!(check(&answer, "machine.container")["why"], "this runs in a Docker container");
    assert_eq!(check(&answer, "machine.proc")["status"], "fail", "{answer:#}");
    assert_eq!(check(&answer, "native.launch")["status"], "fail");
    let mend = check(&answer, "native.launch")["mend"].as_str().unwrap().to_owned();
    let options = mend.strip_prefix("docker run ").and_then(|rest| rest.strip_suffix(" IMAGE"));
    let options: Vec<&str> = options.unwrap_or_else(|| panic!("{mend}")).split(' ').collect();
    let mended = self::answer(&docker.doctor(&options), 0);
    assert_eq!(mended["works"], true, "{mended:#}");
    // Root with the same options lacks a capability, and is told so.
    let as_root = self::answer(&docker.doctor(&options[2..]), 1);
    assert_eq!(check(&as_root, "kernel.idmapped-mounts")["status"], "fail", "{as_root:#}");
}

#[test]
fn a_state_directory_out_of_reach_is_named() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    let run = env.sandtable().variable("XDG_DATA_HOME", "/usr").args(["doctor", "--json"]);
    let answer = answer(&run.ended(), 1);
    let state = check(&answer, "state.directory");
    assert_eq!(state["why"], "`/usr` cannot be written");
    assert_eq!(check(&answer, "native.launch")["mend"], state["mend"]);
}

/// An executable that skips a control is found out, by the ledger and by the attack that it lets through.
#[test]
fn a_control_that_does_not_hold_is_found() {
    let Some(binary) = require::sandtable_with_failpoints() else {
        return require::skip("no executable with fail points: set SANDTABLE_FAILPOINT_BIN");
    };
    let env = TestEnv::new(&binary, Caller::Same);
    let run =
        env.sandtable().variable("SANDTABLE_FAIL_SKIP", "seccomp").args(["doctor", "--attack", "--json"]);
    let answer = answer(&run.ended(), 1);
    assert_eq!(answer["works"], false);
    assert_eq!(check(&answer, "native.seccomp")["status"], "fail");
    let attacks = answer["attacks"].as_array().unwrap();
    assert!(attacks.iter().any(|attack| attack["got"] == "leak"), "{attacks:#?}");
}

/// An executable that follows links to the place of a mount is found out by the attack that takes two starts, and only by that.
#[test]
fn a_mount_that_a_sandbox_can_lead_elsewhere_is_found() {
    let Some(binary) = require::sandtable_with_failpoints() else {
        return require::skip("no executable with fail points: set SANDTABLE_FAILPOINT_BIN");
    };
    for caller in [Caller::Same, Caller::ordinary()] {
        let env = TestEnv::new(&binary, caller);
        let doctor = |words: &[&str]| {
            let run = env.sandtable().variable("SANDTABLE_FAIL_SKIP", "mount-points");
            run.args(["doctor", "--attack"]).args(words).ended()
        };
        let answer = answer(&doctor(&["--json"]), 1);
        assert_eq!(answer["works"], true, "every control holds");
        let leaks: Vec<&Value> =
            answer["attacks"].as_array().unwrap().iter().filter(|attack| attack["got"] == "leak").collect();
        assert_eq!(leaks, [attack(&answer, "mount-point")]);
        let said = doctor(&[]).expect_code(1).stdout;
        let line =
            said.lines().find(|line| line.contains(" mount-point ")).unwrap_or_else(|| panic!("{said}"));
        assert!(line.contains("WENT THROUGH") && line.contains("box/F25"), "{line}");
    }
}

#[test]
fn on_a_terminal_no_attack_reaches_it() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if require::program("script").is_none() {
        return require::skip("a terminal needs the program script");
    }
    let command = format!("{} doctor --attack --json", env.binary().display());
    let mut ended = env.run("script").args(["-qec", &command, "/dev/null"]).ended();
    // The terminal echoes that there is nothing to type.
    ended.stdout = ended.stdout.split_off(ended.stdout.find('{').unwrap_or(0));
    let answer = answer(&ended, 0);
    let terminal = check(&answer, "machine.terminal");
    assert!(terminal["why"].as_str().unwrap().contains("a terminal of its own"), "{terminal:#}");
    let host = attack(&answer, "host-terminal");
    assert_eq!(host["detail"], "only a terminal of its own", "{host:#}");
}

#[test]
fn people_can_read_it_and_the_profile_is_one() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let ended = env.sandtable().arg("doctor").ended().expect_code(0);
    for words in ["native: works", "engine.docker", "kernel.version", "sandboxes can be made here"] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    let profile = env.sandtable().args(["doctor", "--apparmor-profile"]).ended().expect_code(0).stdout;
    let path = fs_err::canonicalize(env.binary()).unwrap();
    assert!(
        profile.contains(&format!("profile sandtable \"{}\" flags=(unconfined)", path.display())),
        "{profile}"
    );
    if require::program("apparmor_parser").is_none() || !Path::new("/etc/apparmor.d/abi/4.0").exists() {
        return require::say("no AppArmor 4 here; the profile was not parsed");
    }
    let file = env.root().join("profile");
    env.file(&file, profile);
    // Neither the kernel nor a cache is touched.
    env.run("apparmor_parser").args(["-Q", "-K", "-T"]).arg(&file).ended().expect_code(0).unused();
}

/// The answer in JSON, after this exit code.
#[track_caller]
fn answer(ended: &Ended, code: i32) -> Value {
    assert_eq!(ended.code, code, "{}{}", ended.stdout, ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

/// The attack of that name.
#[track_caller]
fn attack<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let attacks = answer["attacks"].as_array().unwrap();
    attacks.iter().find(|attack| attack["probe"] == name).unwrap_or_else(|| panic!("no {name}: {attacks:#?}"))
}

fn engine<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let engines = answer["engines"].as_array().unwrap();
    engines.iter().find(|engine| engine["engine"] == name).unwrap_or_else(|| panic!("no {name}: {answer:#}"))
}

/// The check of that id, wherever it stands.
#[track_caller]
fn check<'a>(answer: &'a Value, id: &str) -> &'a Value {
    let engines =
        answer["engines"].as_array().unwrap().iter().flat_map(|engine| engine["checks"].as_array().unwrap());
    let mut all = engines.chain(answer["machine"].as_array().unwrap());
    all.find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id}: {answer:#}"))
}

/// A daemon of the test's own: own directories, own mount and network namespace, gone when dropped.
struct Docker<'a> {
    env: &'a TestEnv,
    child: Child,
}

impl<'a> Docker<'a> {
    fn start(env: &'a TestEnv) -> Option<Self> {
        if !require::is_root()
            || ["dockerd", "docker", "tar"].iter().any(|name| require::program(name).is_none())
        {
            return None;
        }
        let place = env.root().join("d");
        let script = "exec dockerd --data-root \"$1/data\" --exec-root \"$1/exec\" --pidfile \"$1/pid\" \
                      -H \"unix://$1/sock\" --bridge=none --iptables=false --ip-forward=false \
                      --storage-driver=vfs > \"$1/log\" 2>&1";
        env.directory(&place);
        let run = env.run("unshare").args(["--mount", "--net", "sh", "-c", script, "sh"]).arg(&place);
        let docker = Self { env, child: run.waiting() };
        let end = Instant::now() + Duration::from_secs(20);
        while docker.client(&["version"]).ended().code != 0 {
            if Instant::now() > end {
                return None;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        docker.make_image(&place).then_some(docker)
    }

    /// An image with nothing but the executable and a place for temporary files.
    fn make_image(&self, place: &Path) -> bool {
        let root = place.join("root");
        self.env.directory(&root.join("tmp"));
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
        fs_err::set_permissions(root.join("tmp"), open).unwrap();
        fs_err::copy(self.env.binary(), root.join("sandtable")).unwrap();
        let archive = place.join("image.tar");
        let tar = self.env.run("tar").arg("-cf").arg(&archive).arg("-C").arg(&root).arg(".").ended();
        let archive = archive.to_str().unwrap();
        tar.code == 0 && self.client(&["import", archive, "trial:1"]).ended().code == 0
    }

    fn doctor(&self, options: &[&str]) -> Ended {
        let start = ["run", "--rm", "--network", "none", "--env", "HOME=/tmp/home"];
        let end = ["trial:1", "/sandtable", "doctor", "--json"];
        self.client(&[&start, options, &end].concat()).ended()
    }

    fn client(&self, args: &[&str]) -> Run {
        let socket = format!("unix://{}", self.env.root().join("d/sock").display());
        self.env.run("docker").args(["-H", &socket]).args(args)
    }
}

impl Drop for Docker<'_> {
    fn drop(&mut self) {
        // Asked to end, it takes its own helpers with it.
        self.env.run("kill").arg(self.child.id().to_string()).ended();
        self.child.wait().ok();
    }
}
