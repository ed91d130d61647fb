//! The gate against an internet that is not one: every address of a network namespace is local, servers and a resolver log
//! everything that reaches them, and a second namespace is the sandbox. Each case looks at both ends: at what the client
//! gets, and at what left.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod clients;
mod dns;
mod hello;
mod http;
mod limits;
mod probe;
mod proxy;
mod servers;
mod tls;
mod verdicts;
mod world;
