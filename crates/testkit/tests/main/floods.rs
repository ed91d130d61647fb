//! A process that goes on writing after the command has ended: the run ends all the same, and what the command
//! itself wrote is there.

use sandtable_testkit::env::{Caller, TestEnv};

/// More than may come after the end of the command: what a pipe holds, twice over, and what was on its way.
const MOST: usize = 16 << 20;

#[test]
fn a_flood_from_the_background_does_not_keep_a_run() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let ended = env.run_script(&source, &["--rm", "-q"], "echo first; yes & yes >&2 & exit 3");
        assert_eq!(ended.code, 3, "{}", ended.stderr.len());
        assert!(ended.stdout.starts_with("first\n") || ended.stdout.contains("\nfirst\n"));
        assert!(ended.stdout.len() < MOST && ended.stderr.len() < MOST, "{}", ended.stdout.len());
    }
}
