//! Tools from outside: made in sandboxes, kept, checked, and harmless whatever their steps do.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod builds;
mod elf;
mod families;
mod hostile;
mod life;
mod world;
