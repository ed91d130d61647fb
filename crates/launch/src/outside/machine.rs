//! What only the kernel can say, for callers that have no unsafe code of their own.

pub use crate::sys::network::{Peer, peer};
pub use crate::sys::privilege::landlock_version;
