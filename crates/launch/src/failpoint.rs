//! Skipping a step on purpose, to show that the launch is then refused, or that an attack which the step stops goes through.
//!
//! Without the feature `failpoints` nothing can be skipped. With it the variable names one control, whose
//! step is left out; the read-back must then find the control absent. Steps that no control stands for have names of their own.

use sandtable_protocol::report::Control;

/// Whether the step behind `control` is left out.
pub(crate) fn skips(control: Control) -> bool {
    is_left_out(control.name())
}

/// Whether links are followed on the way to the place of a mount.
pub(crate) fn follows_links() -> bool {
    is_left_out("mount-points")
}

#[cfg(not(feature = "failpoints"))]
fn is_left_out(_step: &str) -> bool {
    false
}

#[cfg(feature = "failpoints")]
#[expect(clippy::disallowed_methods, reason = "a test build may read its own switch")]
fn is_left_out(step: &str) -> bool {
    static LEFT_OUT: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    LEFT_OUT.get_or_init(|| std::env::var("SANDTABLE_FAIL_SKIP").ok()).as_deref() == Some(step)
}
