//! A control that is not enforced stops the launch: for each one, an executable that skips its step must
//! refuse to run anything, and say which.

use sandtable_protocol::report::Control;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::require;

#[test]
fn a_skipped_control_stops_the_launch_and_is_named() {
    each_control(Caller::Same);
}

#[test]
fn a_skipped_control_stops_the_launch_of_an_ordinary_user() {
    if !require::is_root() {
        return require::skip("becoming another user needs root");
    }
    each_control(Caller::ordinary());
}

fn each_control(caller: Caller) {
    let Some(binary) = require::sandtable_with_failpoints() else {
        return require::skip("no executable with fail points: set SANDTABLE_FAILPOINT_BIN");
    };
    let env = TestEnv::new(&binary, caller);
    let source = env.repository("r");
    // Root can limit on every machine; nobody else can be counted on to have a control group.
    let limits: &[&str] = if caller == Caller::Same && require::is_root() {
        &["--memory", "1g", "--cpus", "2", "--pids", "512"]
    } else {
        &[]
    };
    let run = |skipped: &str| {
        let run = env.sandtable().directory(&source).variable("SANDTABLE_FAIL_SKIP", skipped);
        run.args(["run", "--rm", "-q"]).args(limits).args(["--", "echo", "it-ran"]).ended()
    };
    assert_eq!(run("").expect_code(0).stdout, "it-ran\n", "with every control it runs");
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for control in Control::ALL {
        // An ordinary user has no other ids to hide behind: its own are private by nature.
        if control == Control::PrivateIds && caller != Caller::Same {
            continue;
        }
        if limits.is_empty() && Control::LIMITS.contains(&control) {
            continue;
        }
        tried += 1;
        let ended = run(control.name());
        if ended.code != 125
            || !ended.stderr.contains(word_for(control, caller))
            || ended.stdout.contains("it-ran")
        {
            wrong.push(format!(
                "{control}: exit {}, stdout {:?}, stderr {:?}",
                ended.code, ended.stdout, ended.stderr
            ));
        }
    }
    require::say(&format!("fail points: {tried} controls, {} not refused", wrong.len()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the message must contain. Without a user namespace an ordinary user can make none of the others, so
/// the launch ends before any control could be looked at.
fn word_for(control: Control, caller: Caller) -> &'static str {
    match (control, caller) {
        (Control::UserNamespace, Caller::Ordinary { .. }) => "namespace",
        _ => control.name(),
    }
}

/// The executable that is shipped does not know the variable.
#[test]
fn the_shipped_executable_has_no_fail_points() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let run = env.sandtable().directory(&source).variable("SANDTABLE_FAIL_SKIP", "seccomp");
    let ended = run.args(["run", "--rm", "-q", "--", "grep", "Seccomp:", "/proc/self/status"]).ended();
    // Ignored or refused as unknown, but never obeyed.
    assert!(
        ended.code == 2 || ended.stdout.contains('2'),
        "{} {} {}",
        ended.code,
        ended.stdout,
        ended.stderr
    );
}
