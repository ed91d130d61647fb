//! Ctrl-C and its kin as a question, for work that has to clean up after itself.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;

use crate::sys::signal::{next_signal, release_signals, signal_descriptor};

const SIGNALS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Holds back the signals that would end this process, until it is dropped. Must be made before the threads
/// that shall be protected.
#[derive(Debug)]
pub struct Interrupt {
    descriptor: OwnedFd,
    seen: AtomicI32,
}

impl Interrupt {
    pub fn hold() -> Result<Self, Errno> {
        Ok(Self { descriptor: signal_descriptor(&SIGNALS)?, seen: AtomicI32::new(0) })
    }

    /// The signal that came, if one did.
    pub fn signal(&self) -> Option<i32> {
        if let Some(number) = next_signal(self.descriptor.as_fd()) {
            self.seen.store(number, Ordering::Relaxed);
        }
        Some(self.seen.load(Ordering::Relaxed)).filter(|number| *number != 0)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        release_signals(&SIGNALS);
    }
}
