//! Signals that would end this process while it changes files of the user's: held back, and looked for where it can stop.

use std::sync::Arc;

use sandtable_launch::outside::interrupt::Interrupt;

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
