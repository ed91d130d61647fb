//! Threads that help with work that one alone could do.
//!
//! A system may refuse another thread: limits on processes, too little memory. Then there are fewer, and the work takes
//! longer.

use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Starts a thread that helps, if there can be one. Whoever asks must be able to do the work alone.
pub fn help<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).ok()
}
