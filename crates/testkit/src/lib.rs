//! What the tests stand on: a hermetic environment for the real executable ([`mod@env`]), a fingerprint that
//! shows any change of a tree ([`fingerprint`]), a real ssh-agent ([`agent`]) and a machine to log in to
//! ([`machine`]), archives made by hand ([`archive`]), the attacks as a table ([`conformance`]), an evaluator of
//! macOS profiles ([`sbpl`]) with a Mac on paper ([`mac`]), the counts that may not shrink ([`counts`]), and what was
//! asked for with the tests that show it ([`traceability`]).
#![forbid(unsafe_code)]

pub mod agent;
pub mod archive;
pub mod conformance;
pub mod container;
pub mod counts;
pub mod env;
pub mod fingerprint;
pub mod fixtures;
pub mod fuzz;
pub mod mac;
pub mod machine;
pub mod outside;
pub mod process;
pub mod require;
pub mod sbpl;
pub mod schema;
pub mod tmux;
pub mod traceability;
