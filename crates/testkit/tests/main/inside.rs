//! What is seen inside besides the workspace, how the workspace is kept apart, and the way out.

use std::path::{Path, PathBuf};

use sandtable_sandbox::model::spec::WorkspaceMode;
use sandtable_sandbox::session::record::{ChangeKind, Outcome};
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::fingerprint::Fingerprint;
use sandtable_testkit::process::{Ended, Run};
use sandtable_testkit::require;

use crate::cli::Unused as _;

const KEY: &str = "sk-test-0123456789";

/// A stand-in for an agent: wants a key and its settings, changes its settings.
const AGENT: &str = "#!/bin/sh
test \"$AGENT_KEY\" = sk-test-0123456789 || { echo no key; exit 1; }
grep -q theme \"$HOME/.claude/settings.json\" || { echo no settings; exit 2; }
grep -q userID \"$HOME/.claude.json\" || { echo no state; exit 3; }
echo \"run $(wc -l < \"$HOME/.claude/history\" 2>/dev/null)\"
echo line >> \"$HOME/.claude/history\"
echo '{\"theme\":\"changed\"}' > \"$HOME/.claude/settings.json\"
echo '{\"userID\":\"changed\"}' > \"$HOME/.claude.json\"
";

/// A home with an agent's settings, and a repository with the agent.
fn with_agent(env: &TestEnv) -> PathBuf {
    let source = env.repository("r");
    env.file(&source.join("agent"), AGENT);
    env.file(&env.home().join(".claude/settings.json"), "{\"theme\":\"dark\"}");
    env.file(&env.home().join(".claude/.credentials.json"), "{}");
    env.file(&env.home().join(".claude.json"), "{\"userID\":\"u\"}");
    source
}

fn sandtable(env: &TestEnv, source: &Path, args: &[&str]) -> Ended {
    env.sandtable().directory(source).variable("AGENT_KEY", KEY).args(args).ended()
}

fn outcome(env: &TestEnv, source: &Path, options: &[&str], script: &str) -> Outcome {
    let report = env.home().join("report.json");
    let report_text = report.to_str().unwrap();
    let mut all = vec!["--report", report_text];
    all.extend(options);
    env.run_script(source, &all, script).expect_code(0).unused();
    serde_json::from_slice(&fs_err::read(&report).unwrap()).unwrap()
}

/// Everything in the sandbox's directory that holds `text`, by name.
fn files_with(directory: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().unwrap().is_file()
            && String::from_utf8_lossy(&fs_err::read(entry.path()).unwrap()).contains(text)
        {
            found.push(name);
        }
    }
    found
}

#[test]
fn a_stand_in_agent_finds_its_key_and_settings_and_the_hosts_stay_untouched() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = with_agent(&env);
        let settings = Fingerprint::of(&env.home().join(".claude"), &[]);
        let args = ["run", "--name", "a", "-e", "AGENT_KEY", "--agent-home", "claude", "--", "sh", "agent"];
        let first = sandtable(&env, &source, &args).expect_code(0);
        assert_eq!(first.stdout, "run \n", "{}", first.stderr);
        assert!(
            first.stderr.contains("[agent-home]") && first.stderr.contains("~/.claude/.credentials.json")
        );
        // The key is not in the environment of `exec`: it is the sandbox's own.
        let exec = env.sandtable().directory(&source).args(["exec", "a", "--"]);
        let again = exec.args(["sh", "-c", "cat ~/.claude/settings.json ~/.claude.json; sh agent"]).ended();
        let again = again.expect_code(0);
        assert_eq!(
            again.stdout, "{\"theme\":\"changed\"}\n{\"userID\":\"changed\"}\nrun 1\n",
            "{}",
            again.stderr
        );
        let args = ["run", "--rm", "-e", "AGENT_KEY", "--agent-home", "claude", "--", "sh", "agent"];
        assert_eq!(sandtable(&env, &source, &args).expect_code(0).stdout, "run \n", "kept or not");
        assert_eq!(settings.differences(&Fingerprint::of(&env.home().join(".claude"), &[])), [""; 0]);
        assert_eq!(fs_err::read_to_string(env.home().join(".claude.json")).unwrap(), "{\"userID\":\"u\"}");
    }
}

#[test]
fn a_key_is_shown_nowhere() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = with_agent(&env);
    env.file(&env.root().join("secrets.env"), format!("# keys\nexport FROM_FILE='{KEY}-file' # x\n"));
    let file = env.root().join("secrets.env");
    let file = file.to_str().unwrap();
    let passed = ["-e", "AGENT_KEY", "--env-file", file];
    let show = |extra: &[&str]| {
        let args = [&["policy", "show"], &passed[..], extra].concat();
        sandtable(&env, &source, &args).expect_code(0).stdout
    };
    for text in [show(&[]), show(&["--json"])] {
        assert!(text.contains("AGENT_KEY") && text.contains("FROM_FILE") && !text.contains(KEY), "{text}");
    }
    assert!(show(&[]).contains("[redacted]"));
    let why = [&["policy", "why", "FROM_FILE"], &passed[..]].concat();
    let why = sandtable(&env, &source, &why).expect_code(0).stdout;
    assert!(why.contains("[redacted]") && !why.contains(KEY), "{why}");
    let dry = [&["run", "--dry-run", "--json"], &passed[..], &["--", "true"]].concat();
    let dry = sandtable(&env, &source, &dry).expect_code(0);
    assert!(dry.stdout.contains("FROM_FILE") && !dry.stdout.contains(KEY));
    let report = env.root().join("report.json");
    let script = "echo \"$AGENT_KEY $FROM_FILE\"; tr -d '\\0 ' < /proc/1/cmdline; cat /proc/1/environ 2>&1 | grep -o sk-; true";
    let run = [
        &["run", "--name", "a", "--report", report.to_str().unwrap()],
        &passed[..],
        &["--", "sh", "-c", script],
    ]
    .concat();
    let ran = sandtable(&env, &source, &run).expect_code(0);
    assert_eq!(ran.stdout.trim(), format!("{KEY} {KEY}-file"));
    let inspected = sandtable(&env, &source, &["inspect", "a", "--json"]).expect_code(0);
    for text in [&fs_err::read_to_string(&report).unwrap(), &inspected.stdout, &ran.stderr] {
        assert!(!text.contains(KEY), "{text}");
    }
    assert!(inspected.stdout.contains("AGENT_KEY"), "the record names what was passed");
    let place = env.sandboxes().join("a");
    assert_eq!(files_with(&place, KEY), ["environment"]);
    let mode = fs_err::metadata(place.join("environment")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let exec =
        env.sandtable().directory(&source).args(["exec", "a", "--", "sh", "-c", "echo $FROM_FILE"]).ended();
    assert_eq!(exec.expect_code(0).stdout.trim(), format!("{KEY}-file"));
}

#[test]
fn variables_are_given_in_every_layer_and_bad_ones_refused() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let config = env.home().join(".config/sandtable/config.toml");
    env.file(&config, "pass_env = [\"FROM_CALLER\", \"NOT_SET\"]\nenv = [\"A=user\", \"B=user\"]\n");
    let run = env
        .sandtable()
        .directory(&source)
        .variable("FROM_CALLER", "caller")
        .variable("SANDBOX_ENV", "B=launcher,C=a\\,b")
        .args(["run", "--rm", "-e", "A=1", "-e", "A=flag", "--", "sh", "-c"]);
    let ended = run.arg("echo $A $B $C $FROM_CALLER ${NOT_SET-unset}").ended().expect_code(0);
    assert_eq!(ended.stdout, "flag launcher a,b caller unset\n");
    for (option, word) in [
        ("NOT_SET", "NOT_SET"),
        ("9A=x", "9A"),
        ("HOME=/x", "HOME"),
        ("SANDTABLE_MODE=live", "SANDTABLE_MODE"),
    ] {
        let args = ["run", "--rm", "-e", option, "--", "true"];
        sandtable(&env, &source, &args).expect_code(2).expect_stderr(word).unused();
    }
    env.file(&source.join(".env"), "A=1\nSANDBOX_FLAGS=--privileged\n");
    let args = ["run", "--rm", "--env-file", ".env", "--", "true"];
    sandtable(&env, &source, &args).expect_code(2).expect_stderr("SANDBOX_FLAGS").unused();
    env.file(&source.join(".sandtable.toml"), "pass_env = [\"AGENT_KEY\"]\n");
    sandtable(&env, &source, &["run", "--rm", "--", "true"])
        .expect_code(2)
        .expect_stderr("pass_env")
        .unused();
}

#[test]
fn exposed_paths_can_be_read_and_not_written() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let (file, bundle) = (env.home().join("data/f"), env.home().join(".config/gh/hosts.yml"));
        env.file(&file, "data\n");
        env.file(&bundle, "token\n");
        let data = file.parent().unwrap().to_str().unwrap().to_owned();
        let script = "cat ~/data/f ~/.config/gh/hosts.yml; echo x > ~/data/f || echo refused";
        let ended =
            env.run_script(&source, &["--rm", "--expose", &data, "--expose", "gh"], script).expect_code(0);
        assert_eq!(ended.stdout, "data\ntoken\nrefused\n", "{}", ended.stderr);
        assert!(ended.stderr.contains("[exposed-credentials]"), "{}", ended.stderr);
        assert_eq!(fs_err::read_to_string(&file).unwrap(), "data\n");
    }
}

#[test]
fn what_is_hidden_is_not_there_in_an_overlay_nor_in_a_copy() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        env.file(&source.join("a/b/server.key"), "secret\n");
        env.file(&source.join("conf/prod/db.yml"), "secret\n");
        env.file(&source.join("conf/test/db.yml"), "open\n");
        for mode in ["overlay", "copy"] {
            let options = ["--mode", mode, "--hide", "*.key", "--hide", "conf/prod/", "--name", mode];
            let script = "find . -path ./.git -prune -o -type f -print | sort; echo mine > a/b/server.key; cat a/b/server.key";
            let ended = env.run_script(&source, &options, script).expect_code(0);
            assert!(ended.stdout.contains("./conf/test/db.yml") && ended.stdout.ends_with("mine\n"));
            assert!(
                !ended.stdout.contains("prod") && !ended.stdout.contains("./a/b/server.key"),
                "{}",
                ended.stdout
            );
            assert!(!ended.stderr.contains("[secret-names]"), "{}", ended.stderr);
            assert!(ended.stderr.contains("1 change"), "{}", ended.stderr);
            let exec = env.sandtable().directory(&source).args(["exec", mode, "--", "ls", "conf"]).ended();
            assert_eq!(exec.expect_code(0).stdout, "test\n", "hidden in `exec` too");
        }
        assert_eq!(fs_err::read_to_string(source.join("a/b/server.key")).unwrap(), "secret\n");
        let live = env.run_script(&source, &["--mode", "live", "--hide", "*.key"], "true");
        live.expect_code(2).expect_stderr("live-hides").unused();
    }
}

#[test]
fn a_copy_is_worked_on_and_the_source_is_not() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let before = env.fingerprint(&source);
        let script = "git status --porcelain; echo x >> README; mkdir d; echo y > d/f; rm -rf src; mv docs texts; chmod 600 build.sh";
        let outcome = outcome(&env, &source, &["--mode", "copy", "--name", "c"], script);
        assert_eq!(outcome.mode.value, WorkspaceMode::Copy);
        let changes = outcome.changes.unwrap();
        let found: Vec<(ChangeKind, &str)> =
            changes.entries.iter().map(|entry| (entry.kind, entry.path.as_str())).collect();
        assert_eq!(
            found,
            [
                (ChangeKind::Modified, "README"),
                (ChangeKind::ModeChanged, "build.sh"),
                (ChangeKind::Added, "d/f"),
                (ChangeKind::Removed, "docs"),
                (ChangeKind::Removed, "src"),
                (ChangeKind::Added, "texts/guide.txt"),
            ]
        );
        assert_eq!(before.differences(&env.fingerprint(&source)), [""; 0]);
        // What the user does to the source later is no change of the sandbox.
        env.file(&source.join("docs/guide.txt"), "edited outside\n");
        env.file(&source.join("new"), "");
        let exec = env.sandtable().directory(&source).args(["exec", "c", "--", "cat", "d/f"]).ended();
        let exec = exec.expect_code(0);
        assert_eq!(exec.stdout, "y\n");
        assert!(exec.stderr.contains("6 changes") && !exec.stderr.contains("A new"), "{}", exec.stderr);
    }
}

#[test]
fn a_copy_keeps_gits_index_valid() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let ended = env.run_script(
        &source,
        &["--mode", "copy", "--rm"],
        "git status --porcelain; git log --oneline | wc -l",
    );
    assert_eq!(ended.expect_code(0).stdout.trim(), "2");
}

#[test]
fn auto_copies_where_an_overlay_cannot_be_and_says_why() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if !require::is_root() {
        return require::skip("a mount needs root");
    }
    let source = env.repository("r");
    let report = env.root().join("report.json");
    let mounted = |mode: &str| {
        let args = ["run", "--mode", mode, "--report", report.to_str().unwrap(), "--", "sh", "-c"];
        let run = env.sandtable().directory(&source).args(args).arg("cat src/deep/f; echo y > src/deep/g");
        with_mounts(run, "mount -t tmpfs none src/deep && echo mounted > src/deep/f").ended()
    };
    let ended = mounted("auto").expect_code(0);
    assert_eq!(ended.stdout, "mounted\n", "what is mounted below is copied too: {}", ended.stderr);
    assert!(ended.stderr.contains("[workspace-copied]"), "{}", ended.stderr);
    let outcome: Outcome = serde_json::from_slice(&fs_err::read(&report).unwrap()).unwrap();
    assert_eq!(outcome.mode.value, WorkspaceMode::Copy);
    assert!(outcome.mode.reason.contains("src/deep"), "{}", outcome.mode.reason);
    mounted("overlay").expect_code(125).expect_stderr("[submounts]").unused();
}

#[test]
fn ctrl_c_while_copying_leaves_nothing() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.root().join("large");
    for number in 0..40 {
        env.file(&source.join(format!("f{number}")), vec![1_u8; 4 << 20]);
    }
    let args = ["--signal=INT", "--preserve-status", "0.05"];
    let run = env.sandtable().directory(&source).args(["run", "--mode", "copy", "--", "true"]);
    let ended = run.through([&["timeout"], &args[..]].concat()).ended();
    // A fast machine may be done in time.
    if ended.code != 0 {
        assert_eq!(ended.code, 130, "{}", ended.stderr);
        assert!(ended.stderr.contains("[interrupted]"), "{}", ended.stderr);
        assert_eq!(fs_err::read_dir(env.sandboxes()).unwrap().count(), 0);
    }
}

#[test]
fn live_changes_the_source_and_says_so() {
    use std::os::unix::fs::MetadataExt as _;
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let outcome =
            outcome(&env, &source, &["--mode", "live"], "echo live > made; rm docs/guide.txt; sleep 0.3");
        assert_eq!(fs_err::read_to_string(source.join("made")).unwrap(), "live\n");
        assert!(!source.join("docs/guide.txt").exists());
        assert!(outcome.warnings.iter().any(|warning| warning.code == "source-writable"));
        let changes = outcome.changes.unwrap();
        assert!(changes.entries.iter().any(|entry| entry.path == "made"), "{:?}", changes.entries);
        assert_eq!(outcome.drift, []);
        let data = fs_err::metadata(source.join("made")).unwrap();
        let owner = fs_err::metadata(source.join("README")).unwrap();
        assert_eq!(
            (data.uid(), data.gid()),
            (owner.uid(), owner.gid()),
            "files made inside are the caller's"
        );
    }
}

/// A network of its own with one address besides loopback, a server on each, and a device that everyone may
/// open; then the program.
const LAB: &str = r#"
ip link set lo up && ip addr add 192.0.2.1/32 dev lo || exit 99
mknod "$LAB_TUN" c 10 200 && chmod 666 "$LAB_TUN" && mount --bind "$LAB_TUN" /dev/net/tun || exit 99
serve() { perl -MIO::Socket::INET -e '
    my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => $ARGV[0], LocalPort => $ARGV[1], ReuseAddr => 1) or die;
    while (my $c = $s->accept) { print $c "$ARGV[2]\n"; close $c }' "$@" & }
serve 192.0.2.1 8080 outside; serve 127.0.0.1 8081 loopback
sleep 0.5
"$@"; code=$?
kill %1 %2
pgrep -x slirp4netns -r S,R,D --ns $$ --nslist net >/dev/null && code=98
exit $code
"#;

#[test]
fn a_way_out_leads_out_and_not_to_the_hosts_loopback() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let missing = ["slirp4netns", "perl", "ip", "unshare", "bash"]
            .into_iter()
            .find(|name| require::program(name).is_none());
        if missing.is_some() || !require::is_root() || !Path::new("/dev/net/tun").exists() {
            require::skip("a network to test in needs root, /dev/net/tun, slirp4netns, perl and ip");
            continue;
        }
        let source = env.repository("r");
        let script = "ask() { exec 3<>/dev/tcp/$1/$2 && cat <&3; } 2>/dev/null
            (ask 192.0.2.1 8080); (ask 10.0.2.2 8081) || echo no; (ask 127.0.0.1 8081) || echo no; cat /etc/resolv.conf";
        let run = env.sandtable().directory(&source);
        let run = run.args(["run", "--rm", "--network", "nat", "--", "bash", "-c", script]);
        let ended = in_lab(&env, run).ended().expect_code(0);
        assert_eq!(ended.stdout, "outside\nno\nno\nnameserver 10.0.2.3\n", "{}", ended.stderr);
        let none = env.sandtable().directory(&source).args(["run", "--rm", "--", "bash", "-c", script]);
        let none = in_lab(&env, none).ended();
        assert!(!none.stdout.contains("outside"), "{}", none.stdout);
    }
}

#[test]
fn the_program_that_carries_packets_ends_with_a_killed_supervisor() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if ["slirp4netns", "perl", "ip", "pgrep"].iter().any(|name| require::program(name).is_none())
        || !require::is_root()
        || !Path::new("/dev/net/tun").exists()
    {
        return require::skip(
            "a network to test in needs root, /dev/net/tun, slirp4netns, perl, ip and pgrep",
        );
    }
    let source = env.repository("r");
    // Everything of the sandbox in the lab's network is the supervisor and the program.
    let script = "\"$0\" run --network nat -- sleep 60 & supervisor=$!
        carries() { pgrep -x slirp4netns --ns $$ --nslist net > /dev/null; }
        for i in $(seq 50); do carries && break; sleep 0.1; done; carries || exit 97
        sleep 0.5; kill -9 $supervisor
        for i in $(seq 50); do carries || exit 0; sleep 0.1; done; exit 96";
    let run = env.run("bash").directory(&source).args(["-c", script]).arg(env.binary());
    in_lab(&env, run).ended().expect_code(0).unused();
}

#[test]
fn without_its_program_a_way_out_is_refused_with_the_package() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let run = env.sandtable().directory(&source).variable("PATH", "/nonexistent");
    let ended = run.args(["run", "--profile", "dev", "--", "/bin/echo", "ran"]).ended().expect_code(125);
    assert!(ended.stderr.contains("apt-get install slirp4netns"), "{}", ended.stderr);
    assert!(!ended.stdout.contains("ran"));
}

/// Runs a program where only it sees some more mounts.
fn with_mounts(run: Run, mounts: &str) -> Run {
    run.through(["unshare", "--mount", "sh", "-c", &format!("{mounts} && exec \"$@\""), "sh"])
}

/// Runs a program in a network that exists only for it.
fn in_lab(env: &TestEnv, run: Run) -> Run {
    let tunnel = env.root().join("tun");
    fs_err::remove_file(&tunnel).ok();
    let script = LAB.replace("$LAB_TUN", tunnel.to_str().unwrap());
    run.through(["unshare", "--mount", "--net", "bash", "-c", &script, "bash"])
}
