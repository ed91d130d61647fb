//! The native sandbox: a list of operations ([`op`]) and the Linux code that executes it.

pub mod op;
pub mod probe;
pub mod report;
pub mod sys;
