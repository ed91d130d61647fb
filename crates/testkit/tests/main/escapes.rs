//! Escape sequences: only for a terminal that obeys them, and for nobody who wants none.

use sandtable_testkit::env::TestEnv;
use sandtable_testkit::process::{Ended, Run};
use sandtable_testkit::require;

use crate::cli::Unused;

/// Calls with an answer, a summary, a warning, an error or help, in an order in which each has something to say.
const CALLS: [&str; 8] = [
    "run --name a --network host -- sh -c 'echo x > added; rm README'",
    "exec a -- true",
    "diff a",
    "ls",
    "log",
    "merge --help",
    "inspect nobody",
    "rm a",
];

/// A line of shell that knows our executable as `$S`.
fn line(env: &TestEnv, shell: Run, variables: &[(&str, &str)]) -> Ended {
    let run = shell.directory(env.root().join("r")).variable("S", env.binary());
    variables.iter().fold(run, |run, (name, value)| run.variable(name, value)).ended()
}

fn in_a_pipe(env: &TestEnv, call: &str) -> Ended {
    line(env, env.run("sh").args(["-c", &format!("\"$S\" {call}")]), &[("TERM", "xterm-256color")])
}

/// Both streams at one terminal.
fn at_a_terminal(env: &TestEnv, call: &str, variables: &[(&str, &str)]) -> Ended {
    line(env, env.run("script").args(["-qec", &format!("\"$S\" {call}"), "/dev/null"]), variables)
}

#[test]
fn pipes_no_color_and_a_dumb_terminal_get_no_escape_sequence() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if require::program("script").is_none() {
        return require::skip("a terminal needs the program `script`");
    }
    env.repository("r");
    let escaped = |ended: &Ended| ended.stdout.contains('\u{1b}') || ended.stderr.contains('\u{1b}');
    for call in CALLS {
        let ended = in_a_pipe(&env, call);
        assert!(!escaped(&ended) && ended.stdout.len() + ended.stderr.len() > 0, "{call}: {ended:?}");
    }
    for plain in [&[("TERM", "xterm-256color"), ("NO_COLOR", "1")][..], &[("TERM", "dumb")]] {
        for call in CALLS {
            let ended = at_a_terminal(&env, call, plain);
            assert!(!escaped(&ended), "{call}, {plain:?}: {ended:?}");
        }
    }
    // Without these reasons there are some.
    for call in ["run --rm --network host -- true", "merge --help", "inspect nobody"] {
        let coloured = at_a_terminal(&env, call, &[("TERM", "xterm-256color")]);
        assert!(escaped(&coloured), "{call}: {coloured:?}");
    }
    in_a_pipe(&env, "prune --all").unused();
}
