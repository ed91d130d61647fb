//! Carrying out the way that the caller's ssh-agent takes into a sandbox. Each way is a guard: what it started
//! ends, and what it made is removed, once, when the guard is dropped.

pub(super) mod relay;
