//! Skipping a step on purpose, to show that the launch is then refused.
//!
//! Without the feature `failpoints` nothing can be skipped. With it the variable names one control, whose
//! step is left out; the read-back must then find the control absent.

use crate::report::Control;

/// Whether the step behind `control` is left out.
#[cfg(not(feature = "failpoints"))]
pub(crate) fn skips(_control: Control) -> bool {
    false
}

/// Whether the step behind `control` is left out.
#[cfg(feature = "failpoints")]
#[expect(clippy::disallowed_methods, reason = "a test build may read its own switch")]
pub(crate) fn skips(control: Control) -> bool {
    static SKIPPED: std::sync::OnceLock<Option<Control>> = std::sync::OnceLock::new();
    let skipped = SKIPPED.get_or_init(|| {
        let name = std::env::var("SANDTABLE_FAIL_SKIP").ok()?;
        Control::from_name(&name)
    });
    *skipped == Some(control)
}
