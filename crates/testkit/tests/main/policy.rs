//! The policy for people: consent to a project's file, why something is as it is, and the card inside.

use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::Ended;
use serde_json::Value;

use crate::cli::{Unused, assert_nothing_made};

const WIDE: &str = "network = \"host\"\n";

#[test]
fn a_project_file_that_widens_needs_consent_and_again_after_each_change() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { return };
        let source = env.repository("r");
        let file = source.join(".sandtable.toml");
        let path = fs_err::canonicalize(&source).unwrap().join(".sandtable.toml");
        let run = || env.run_script(&source, &["--rm", "-q"], "echo it-ran");
        let trust = |args: &[&str]| env.sandtable().directory(&source).arg("trust").args(args).ended();
        env.file(&file, WIDE);
        let ended = run();
        assert_refused(&ended, "key `network`");
        assert!(ended.stderr.contains(&format!("sandtable trust {}", path.display())), "{}", ended.stderr);
        assert_nothing_made(&env);

        let said = trust(&[]).expect_code(0).expect_stderr(path.to_str().unwrap());
        said.expect_stderr("network = host").unused();
        assert_eq!(run().expect_code(0).stdout, "it-ran\n");
        let shown =
            env.sandtable().directory(&source).args(["policy", "show", "--json"]).ended().expect_code(0);
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        assert_eq!(shown["spec"]["network"]["value"], "host");
        assert_eq!(shown["spec"]["network"]["origin"]["from"], "project_file");

        // Any change, even one that means nothing.
        env.file(&file, format!("{WIDE}\n"));
        let ended = run();
        assert_refused(&ended, "key `network`");
        assert!(ended.stderr.contains("changed after you trusted it"), "{}", ended.stderr);
        env.file(&file, WIDE);
        run().expect_code(0).unused();

        assert!(trust(&["--list"]).expect_code(0).stdout.contains(path.to_str().unwrap()));
        trust(&["--revoke"]).expect_code(0).unused();
        assert_refused(&run(), "key `network`");
        assert_eq!(trust(&["--list"]).expect_code(0).stdout, "");
        trust(&["--revoke"]).expect_code(2).expect_stderr("was not trusted").unused();
    }
}

#[test]
fn every_kind_of_widening_is_refused_by_name_and_accepted_after_consent() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.file(&env.home().join("data/x"), "");
    let mount = format!("mounts = [\"{}\"]", env.home().join("data").display());
    let lines =
        ["best_effort = true", "dangerously_allow_source = true", "rm = true", "name = \"mine\"", &mount];
    for line in lines {
        env.file(&source.join(".sandtable.toml"), line);
        let show = || env.sandtable().directory(&source).args(["policy", "show"]).ended();
        let key = line.split(' ').next().unwrap();
        show().expect_code(2).expect_stderr(&format!("key `{key}`")).unused();
        env.sandtable().arg("trust").arg(&source).ended().expect_code(0).unused();
        show().expect_code(0).unused();
    }
}

#[test]
fn what_is_no_project_file_cannot_be_trusted() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let trust = || env.sandtable().directory(&source).arg("trust").ended();
    trust().expect_code(2).expect_stderr(".sandtable.toml").unused();
    env.file(&env.root().join("elsewhere"), WIDE);
    env.symlink(env.root().join("elsewhere"), &source.join(".sandtable.toml"));
    trust().expect_code(2).expect_stderr("symbolic link").unused();
    assert_nothing_made(&env);
}

#[test]
fn a_sandbox_cannot_consent_for_the_user() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    fs_err::copy(env.binary(), source.join("tool")).unwrap();
    let script = format!(
        "printf '%s' '{WIDE}' > .sandtable.toml; ./tool trust; ls -A $HOME/.local/share/sandtable/trust"
    );
    env.run_script(&source, &["--name", "sly"], &script).unused();
    env.file(&source.join(".sandtable.toml"), WIDE);
    assert_refused(&env.run_script(&source, &[], "echo it-ran"), "key `network`");
}

#[test]
fn why_agrees_with_what_happens_inside() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.file(&env.home().join(".ssh/id"), "canary");
    env.file(&source.join(".env"), "canary");
    let why = |args: &[&str]| -> Value {
        let ended = env.sandtable().directory(&source).args(["policy", "why", "--json"]).args(args).ended();
        serde_json::from_str(&ended.expect_code(0).stdout).unwrap()
    };
    let inside = |options: &[&str], script: &str| {
        env.run_script(&source, &[&["--rm", "-q"], options].concat(), script).code == 0
    };
    let key = env.home().join(".ssh/id");
    let key = key.to_str().unwrap();
    for (options, path, verdict) in [
        (&[][..], "README", "write"),
        (&[], key, "write"),
        (&[], "/etc/hostname", "read"),
        (&[], "/bin/sh", "read"),
        (&[], "/var/log", "read"),
        (&[], "/root/none", "nothing"),
        (&[], ".env", "write"),
        (&["--secrets", "mask"], ".env", "nothing"),
        (&["-v", "/srv:/mnt/srv"], "/mnt/srv", "read"),
    ] {
        let answer = why(&[options, &[path]].concat());
        if path == key {
            // The home directory is the sandbox's own: it can be written, and what the host has there is not seen.
            assert!(answer["notes"][0].as_str().unwrap().contains("nothing of this machine"), "{answer:#}");
            assert!(!inside(options, &format!("grep -q canary {path}")));
            continue;
        }
        assert_eq!(answer["verdict"], verdict, "{answer:#}");
        let (read, write) = (format!("test -r {path}"), format!("test -w {path}"));
        if path != "/var/log" {
            assert_eq!(inside(options, &read), verdict != "nothing", "{path}");
        }
        assert_eq!(inside(options, &write), verdict == "write", "{path}");
    }
    assert_eq!(why(&["example.org"])["verdict"], "unreachable");
    let open = why(&["example.org", "--network", "host"]);
    assert_eq!((&open["verdict"], &open["origin"]["name"]), (&"allowed".into(), &"--network".into()));
    assert_eq!(why(&["TERM"])["verdict"], "passed");
    assert_eq!(why(&["HOME"])["verdict"], "made");
    assert_eq!(why(&["DEPLOY_TOKEN"])["verdict"], "dropped");
    let unclear = env.sandtable().directory(&source).args(["policy", "why", "whatever"]).ended();
    unclear.expect_code(2).expect_stderr("`./whatever`").unused();
    let text =
        env.sandtable().directory(&source).args(["policy", "why", "README"]).ended().expect_code(0).stdout;
    assert!(text.contains("because") && text.contains("the workspace"), "{text}");
}

#[test]
fn the_card_tells_the_command_what_it_may_do() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { return };
        let source = env.repository("r");
        let script = "cat \"$SANDTABLE_POLICY\" && ! (echo x > \"$SANDTABLE_POLICY\") 2>/dev/null && ! rm -f \"$SANDTABLE_POLICY\" 2>/dev/null";
        let card = env.run_script(&source, &["--name", "carded"], script).expect_code(0).stdout;
        let workspace = fs_err::canonicalize(&source).unwrap();
        for words in [workspace.to_str().unwrap(), "None but your own loopback", "`SANDBOX`"] {
            assert!(card.contains(words), "{words}: {card}");
        }
        let again =
            env.sandtable().args(["exec", "carded", "--", "sh", "-c", "cat $SANDTABLE_POLICY"]).ended();
        assert_eq!(again.expect_code(0).stdout, card);
        let open = env
            .run_script(&source, &["--rm", "-q", "--network", "host"], "cat $SANDTABLE_POLICY")
            .expect_code(0);
        assert!(open.stdout.contains("The machine's own network") && open.stdout.contains("Nothing is kept"));
        // A program of ours inside does not stumble over the variable.
        let run = env.sandtable().directory(&source).variable("SANDTABLE_POLICY", "/x");
        run.args(["policy", "show"]).ended().expect_code(0).unused();
    }
}

#[track_caller]
fn assert_refused(ended: &Ended, words: &str) {
    assert_eq!(ended.code, 2, "{}{}", ended.stdout, ended.stderr);
    assert!(
        ended.stderr.contains(words) && !ended.stdout.contains("it-ran"),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
}
