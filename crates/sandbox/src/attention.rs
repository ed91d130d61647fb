//! Signals that would end this process while it changes files of the user's: held back, and looked for where it can stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use sandtable_launch::outside::interrupt::Interrupt;

use crate::model::observe::{Event, Observer};

/// Holds signals back until it and all copies of it are dropped, where the system can. One at a time: the end of a second
/// one would let the signals through that the first still holds. The default holds nothing back and hears of nothing.
#[derive(Clone, Debug, Default)]
pub struct Attention(Option<Arc<Interrupt>>);

impl Attention {
    pub fn hold() -> Self {
        Self(Interrupt::hold().ok().map(Arc::new))
    }

    /// The signal that came, if one did.
    pub fn signal(&self) -> Option<i32> {
        self.0.as_ref()?.signal()
    }

    /// Whether a signal asks us to stop. Asked wherever work depends on what a sandbox wrote.
    pub fn heed(&self) -> Result<(), Interrupted> {
        self.signal().map_or(Ok(()), |signal| Err(Interrupted(signal)))
    }
}

/// A signal came, and nothing was done yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("signal {0} came before anything was done")]
pub struct Interrupted(pub i32);

/// The shortest time between two queries for signals: [`Observer::cancelled`] is called for each of a million files.
const PAUSE_MS: u64 = 5;

/// Adds signals to an observer: it is cancelled once a signal came that would end this process. The signals are held back while
/// it exists. Create it before the threads that do the work, because they inherit that. Do not run a command in a
/// sandbox meanwhile: that takes the signals for itself.
#[derive(Debug)]
pub struct Interruptible<'a> {
    observer: &'a dyn Observer,
    attention: Attention,
    began: Instant,
    /// The time of the next query, in milliseconds since `began`. `u64::MAX` after a signal.
    next: AtomicU64,
}

impl<'a> Interruptible<'a> {
    pub fn new(observer: &'a dyn Observer) -> Self {
        let (attention, began) = (Attention::hold(), Instant::now());
        Self { observer, attention, began, next: AtomicU64::new(0) }
    }
}

impl Interruptible<'_> {
    /// Whether the operation is cancelled, without the limit on queries.
    pub fn is_cancelled_now(&self) -> bool {
        self.attention.signal().is_some() || self.observer.cancelled()
    }
}

impl Observer for Interruptible<'_> {
    fn event(&self, event: &Event<'_>) {
        self.observer.event(event);
    }

    fn cancelled(&self) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        if next == u64::MAX {
            return true;
        }
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        if now < next {
            return false;
        }
        let cancelled = self.is_cancelled_now();
        // The maximum, because another thread may have seen the signal.
        self.next.fetch_max(if cancelled { u64::MAX } else { now + PAUSE_MS }, Ordering::Relaxed);
        cancelled
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;

    #[derive(Debug, Default)]
    struct Switch(AtomicBool);

    impl Observer for Switch {
        fn cancelled(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_cancelled_observer_stays_cancelled() {
        let switch = Switch::default();
        let observer = Interruptible::new(&switch);
        assert!(!observer.cancelled());
        switch.0.store(true, Ordering::Relaxed);
        let began = Instant::now();
        while !observer.cancelled() {
            assert!(began.elapsed() < Duration::from_secs(10), "the observer is asked again");
        }
        switch.0.store(false, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(2 * PAUSE_MS));
        assert!(observer.cancelled());
    }
}
