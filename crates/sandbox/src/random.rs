//! Numbers that nobody can guess, for names.

/// A random number.
pub fn random() -> u64 {
    u64::from_ne_bytes(crate::os::random_bytes())
}
