//! The caller's ssh-agent inside a native sandbox, with a real agent and a real key.

use std::path::Path;

use sandtable_testkit::agent::SshAgent;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::{Ended, Run};

use crate::cli::Unused as _;

const KNOWN: &str = "example.invalid ssh-ed25519 AAAA\n";

fn callers() -> [Caller; 2] {
    [Caller::Same, Caller::ordinary()]
}

/// The executable, with nothing said about the agent.
fn unsaid(env: &TestEnv, source: &Path) -> Run {
    env.sandtable().directory(source).variable("SANDTABLE_SSH_AGENT", "")
}

/// The same with an agent.
fn with_agent(env: &TestEnv, source: &Path, agent: &SshAgent) -> Run {
    unsaid(env, source).variable("SSH_AUTH_SOCK", agent.socket())
}

fn script(run: Run, options: &[&str], script: &str) -> Ended {
    run.arg("run").args(options).args(["--", "sh", "-c", script]).ended()
}

#[test]
fn the_agent_answers_inside_and_its_key_stays_outside() {
    for caller in callers() {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let Some(agent) = SshAgent::start(&env) else { continue };
        let source = env.repository("r");
        env.file(&env.home().join(".ssh/known_hosts"), KNOWN);
        let inside = "echo $SSH_AUTH_SOCK; ssh-add -l; cat ~/.ssh/known_hosts; ls -A ~ ~/.ssh";
        let ended = script(with_agent(&env, &source, &agent), &["--rm"], inside).expect_code(0);
        let (home, print) = (env.home(), agent.fingerprint());
        let expected = format!(
            "/ssh-agent\n256 {print} a-test-key (ED25519)\n{KNOWN}{0}:\n.ssh\n\n{0}/.ssh:\nknown_hosts\n",
            home.display()
        );
        assert_eq!(ended.stdout, expected, "{}", ended.stderr);
        assert!(!ended.stderr.contains("ssh-agent"), "{}", ended.stderr);
    }
}

#[test]
fn a_signature_made_inside_is_good_and_the_agents_files_are_read_only() {
    for caller in callers() {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let Some(agent) = SshAgent::start(&env) else { continue };
        let source = env.repository("r");
        env.file(&env.home().join(".ssh/known_hosts"), KNOWN);
        let inside = "ssh-add -L > key.pub; ssh-keygen -q -Y sign -f key.pub -n test README || exit 1
            rm -f /ssh-agent; echo x 2>/dev/null >> ~/.ssh/known_hosts; ssh-add -l > /dev/null || exit 2
            sed 's/^/me /' key.pub > allowed
            ssh-keygen -Y verify -f allowed -I me -n test -s README.sig < README";
        script(with_agent(&env, &source, &agent), &["--rm"], inside).expect_code(0).unused();
        assert_eq!(fs_err::read_to_string(env.home().join(".ssh/known_hosts")).unwrap(), KNOWN);
        assert!(agent.socket().exists());
    }
}

#[test]
fn off_in_the_flag_or_any_variable_leaves_no_socket_and_no_variable() {
    for caller in callers() {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let Some(agent) = SshAgent::start(&env) else { continue };
        let source = env.repository("r");
        let inside =
            "test -z \"${SSH_AUTH_SOCK+x}\" && ! ls /ssh-agent 2>/dev/null && ! ssh-add -l 2>/dev/null";
        let run = || with_agent(&env, &source, &agent);
        let ended = script(run(), &["--rm", "--ssh-agent", "off"], inside).expect_code(0);
        assert!(!ended.stderr.contains("ssh-agent"), "{}", ended.stderr);
        for name in ["SANDTABLE_SSH_AGENT", "LLXPRT_SANDBOX_SSH_AGENT", "SANDBOX_SSH_AGENT"] {
            script(run().variable(name, "off"), &["--rm"], inside).expect_code(0).unused();
            let refused = script(run().variable(name, "off"), &["--ssh-agent", "on"], inside);
            refused.expect_code(2).expect_stderr(name).expect_stderr("--ssh-agent").unused();
        }
        for profile in ["safe", "tight", "offline"] {
            script(run(), &["--rm", "--profile", profile], inside).expect_code(0).unused();
        }
    }
}

#[test]
fn without_an_agent_one_warning_or_with_required_none_at_all() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.file(&env.home().join("plain"), "");
    let places = [String::new(), "/none".to_owned(), env.home().join("plain").display().to_string()];
    for socket in &places {
        let run = || unsaid(&env, &source).variable("SSH_AUTH_SOCK", socket);
        for options in [&["--rm"][..], &["--rm", "--ssh-agent", "on"]] {
            let ended = script(run(), options, "test -z \"${SSH_AUTH_SOCK+x}\"").expect_code(0);
            assert_eq!(ended.stderr.matches("[ssh-agent-unavailable]").count(), 1, "{}", ended.stderr);
        }
        let refused = script(run(), &["--rm", "--ssh-agent", "required"], "echo ran").expect_code(125);
        assert!(refused.stdout.is_empty(), "{}", refused.stdout);
        refused.expect_stderr("[ssh-agent-unavailable]").expect_stderr("try: start one").unused();
    }
    script(unsaid(&env, &source), &["--ssh-agent", "maybe"], "true").expect_code(2).unused();
    let misspelt = unsaid(&env, &source).variable("SANDBOX_SSH_AGENT", "false");
    script(misspelt, &[], "true").expect_code(2).expect_stderr("SANDBOX_SSH_AGENT").unused();
}

#[test]
fn a_sandbox_that_goes_on_later_has_the_agent_of_that_time() {
    for caller in callers() {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let Some(agent) = SshAgent::start(&env) else { continue };
        let source = env.repository("r");
        let files = [".gitconfig", ".ssh/known_hosts"].map(|name| env.home().join(name));
        for path in &files {
            env.file(path, "[user]\n\tname = Ann\n");
        }
        script(with_agent(&env, &source, &agent), &["--name", "s"], "ssh-add -l").expect_code(0).unused();
        drop(agent);
        // Programs replace such files instead of changing them.
        for path in &files {
            env.file(&path.with_extension("new"), "[user]\n\tname = Bob\n");
            fs_err::rename(path.with_extension("new"), path).unwrap();
        }
        let exec = |run: Run, words: &str| run.args(["exec", "s", "--", "sh", "-c", words]).ended();
        let without = exec(unsaid(&env, &source), "test -z \"$SSH_AUTH_SOCK\" && git config user.name");
        let without = without.expect_code(0).expect_stderr("[ssh-agent-unavailable]");
        assert_eq!(without.stdout, "Bob\n");
        fs_err::remove_file(env.home().join("agent.socket")).ok();
        fs_err::remove_dir_all(env.home().join("keys")).unwrap();
        for path in &files {
            fs_err::remove_file(path).unwrap();
        }
        let Some(agent) = SshAgent::start(&env) else { continue };
        let with = exec(with_agent(&env, &source, &agent), "ssh-add -l").expect_code(0);
        assert!(with.stdout.contains(agent.fingerprint()), "{}", with.stdout);
        assert!(!with.stderr.contains("ssh-agent"), "{}", with.stderr);
    }
}

#[test]
fn many_clients_at_once_are_all_answered() {
    for caller in callers() {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let Some(agent) = SshAgent::start(&env) else { continue };
        let source = env.repository("r");
        let inside = "i=0; while [ $i -lt 150 ]; do (ssh-add -l > /tmp/$i 2>&1) & i=$((i+1)); done; wait
            grep -l ED25519 /tmp/* | wc -l";
        let ended = script(with_agent(&env, &source, &agent), &["--rm"], inside).expect_code(0);
        assert_eq!(ended.stdout.trim(), "150", "{}", ended.stderr);
    }
}
