//! Numbers that nobody can guess, for names.

use rustix::rand::{GetRandomFlags, getrandom};

/// A random number.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty()).expect("the kernel has randomness");
    u64::from_ne_bytes(bytes)
}
