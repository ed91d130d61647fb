//! Faults: every operation is killed, at every system call that writes and at random moments beside others, and what
//! is left is the old state or the new one. `./test --long faults` runs the full counts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod ground;
mod mixed;
mod operations;
mod points;
mod remains;
mod seen;
mod trace;
mod units;
mod victim;
mod yard;
