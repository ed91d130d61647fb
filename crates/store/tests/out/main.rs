//! How a state gets out of the store: compared, written, rolled back, laid over another.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod checkout;
mod deep;
mod diff;
mod foreign;
mod found_again;
mod layer;
mod meanwhile;
mod rollback;
mod states;
#[path = "../support/mod.rs"]
mod support;
