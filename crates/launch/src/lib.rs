//! The native sandbox: the Linux code that executes a plan ([`sandtable_protocol::op`]).
//!
//! [`outside`] launches the first process of a sandbox, gives it what only the host can give, and sends it commands.
//! [`inside`] is what that process does. The two share how frames travel ([`transport`]) and nothing else of weight; all
//! unsafe code is in `sys`.
//!
//! On other systems `elsewhere` stands in the place of `outside`: the same names, and types of which there are no values.

pub mod error;
pub mod handles;

#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
pub mod outside;

#[cfg(target_os = "linux")]
mod failpoint;
#[cfg(target_os = "linux")]
pub mod inside;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
pub mod outside;
#[cfg(target_os = "linux")]
mod step;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
pub mod transport;
