//! How much work rules may cost.
//!
//! One rule costs little, but a foreign tree has as many rules as it likes, for as many paths as it likes. So whoever
//! holds paths against rules has so many steps in all, and decides what holds once they are spent.

use std::sync::atomic::{AtomicU64, Ordering};

/// A rule that is passed over is one step, and so is a place of a pattern for a byte of a name. A repository with a
/// million files and a thousand rules needs about as many.
const STEPS: u64 = 1_000_000_000;

/// The steps that are left.
#[derive(Debug)]
pub(crate) struct Effort(AtomicU64);

impl Default for Effort {
    fn default() -> Self {
        Self::of(STEPS)
    }
}

impl Effort {
    pub(crate) const fn of(steps: u64) -> Self {
        Self(AtomicU64::new(steps))
    }

    pub(crate) fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left() == 0
    }

    pub(crate) fn spend(&self, steps: usize) {
        let steps = steps as u64;
        // Two threads may take the same steps at once; nothing depends on the exact number.
        self.0.store(self.left().saturating_sub(steps), Ordering::Relaxed);
    }
}
