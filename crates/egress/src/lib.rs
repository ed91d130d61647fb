//! The governed network of a sandbox: which connections may leave it, and what carries them.
//!
//! The rules are pure: [`plan::compile`] makes a [`plan::GatePlan`] from what the user wrote, and the plan gives a verdict
//! on each connection, address and request ([`verdict`]). What a sandbox sends is foreign, so every parser here is strict:
//! it accepts one reading or none. The design is in `docs/egress.md`.

#![forbid(unsafe_code)]

pub mod address;
pub mod agent;
pub mod dns;
pub mod event;
pub mod gate;
pub mod http;
pub mod name;
pub mod plan;
pub mod preset;
pub mod rule;
pub mod socks;
pub mod tls;
pub mod verdict;
