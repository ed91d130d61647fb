//! The only place that reads the environment of the process.

use std::ffi::OsString;

use sandtable_app::env::Environment;

/// Reads the environment. Called once, in `main`.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub(crate) fn of_process() -> Environment {
    std::env::vars_os().collect()
}

/// The variables of this process as they are, for PID 1 of a container.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub(crate) fn pairs() -> Vec<OsString> {
    let joined = |(name, value): (OsString, OsString)| {
        let mut pair = name;
        pair.push("=");
        pair.push(value);
        pair
    };
    std::env::vars_os().map(joined).collect()
}
