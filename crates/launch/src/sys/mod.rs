//! The only unsafe code: thin wrappers around system calls that have no safe one.
#![expect(unsafe_code, reason = "system calls without a safe wrapper; nothing else belongs in this folder")]

pub mod probe;
