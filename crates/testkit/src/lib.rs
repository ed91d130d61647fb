//! What the tests stand on: a hermetic environment for the real executable ([`mod@env`]), a fingerprint that
//! shows any change of a tree ([`fingerprint`]), the attacks as a table ([`conformance`]),
//! archives made by hand ([`archive`]), an evaluator of macOS profiles ([`sbpl`]), and the counts
//! that may not shrink ([`counts`]).
#![forbid(unsafe_code)]

pub mod archive;
pub mod bench;
pub mod conformance;
pub mod counts;
pub mod env;
pub mod fingerprint;
pub mod mac;
pub mod process;
pub mod require;
pub mod sbpl;
pub mod tmux;
