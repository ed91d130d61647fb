//! What a test needs from the machine. What is missing is said; on a build server it is a failure.

use std::io::Write;
use std::path::{Path, PathBuf};

/// The values of the test environment, read in this one place.
#[expect(clippy::disallowed_methods, reason = "tests are told their size and their executables this way")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Begins the line by which a skipped test names itself.
pub const NOT_RUN: &str = "not run: ";

/// Whether everything that a test may need has to be there.
pub fn is_build_machine() -> bool {
    variable("CI").as_deref() == Some("true")
}

/// Says that a test was skipped, or fails where nothing may be missing.
///
/// # Panics
/// With `CI=true`.
pub fn skip(why: &str) {
    assert!(!is_build_machine(), "missing here, with CI=true: {why}");
    announce(why, NOT_RUN);
}

/// Says that a test was skipped for a reason that no build machine can be blamed for: it belongs to the long run, or what it
/// needs from elsewhere does not answer.
pub fn pass_over(why: &str) {
    announce(why, "passed over: ");
}

fn announce(why: &str, prefix: &str) {
    say(&format!("skipped: {why}"));
    // The harness names the thread of a test after it.
    if let Some(test) = std::thread::current().name() {
        say(&format!("{prefix}{test}"));
    }
}

/// Tells the person who runs the tests, also when they pass: the harness keeps back only what is printed by
/// macro.
pub fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").ok();
}

/// The program of that name, where the system keeps programs.
pub fn program(name: &str) -> Option<PathBuf> {
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .map(|directory| Path::new(directory).join(name))
        .find(|path| path.is_file())
}

/// Whether this process is root for real, able to make namespaces and mounts.
pub fn is_root() -> bool {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1));
    let map = fs_err::read_to_string("/proc/self/uid_map").unwrap_or_default();
    uid == Some("0") && map.split_whitespace().collect::<Vec<_>>() == ["0", "0", "4294967295"]
}

/// The executable under test: named by `SANDTABLE_BIN`, else beside the tests in the target directory.
pub fn sandtable() -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("sandtable"));
    variable("SANDTABLE_BIN").map(PathBuf::from).or_else(beside).filter(|path| path.is_file())
}

/// The executable that was built with fail points.
pub fn sandtable_with_failpoints() -> Option<PathBuf> {
    variable("SANDTABLE_FAILPOINT_BIN").map(PathBuf::from).filter(|path| path.is_file())
}

/// The top of the source tree.
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate lies two directories below the top").to_owned()
}
