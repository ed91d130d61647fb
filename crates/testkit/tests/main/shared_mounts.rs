//! A machine whose mounts are shared, as systemd makes them all: what is mounted for a sandbox is seen inside and
//! nowhere else. The mounts here are those of a namespace of its own.

use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::require;

use crate::lifecycle::assert_nothing_runs;

/// Shares every mount with nobody yet, starts a sandbox, and looks at its mounts from both sides.
const SCRIPT: &str = r#"mount --make-rshared / || exit 9
"$@" run -q -d --name s -- sleep 4321.5 >/dev/null || exit 8
echo "outside: $(grep -c ' overlay sandtable ' /proc/self/mountinfo)"
"$@" exec -q s -- sh -c 'echo "inside: $(cat a), shared: $(grep -c shared: /proc/self/mountinfo)"'
"$@" rm --force s >/dev/null 2>&1"#;

#[test]
fn mounts_of_a_sandbox_stay_in_it_where_the_hosts_are_shared() {
    if !require::is_root() {
        return require::skip("a namespace with shared mounts takes root");
    }
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        // Below the home directory: for root that is a mount which was made before the sandbox's own namespace.
        let source = env.home().join("p");
        env.file(&source.join("a"), "text");
        let shared = ["unshare", "--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"];
        let told = env.sandtable().directory(&source).through(shared).ended().expect_code(0);
        assert_eq!(told.stdout, "outside: 0\ninside: text, shared: 0\n", "{}", told.stderr);
        assert_nothing_runs(&env, "4321.5");
    }
}
