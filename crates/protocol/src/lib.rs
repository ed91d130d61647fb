//! The words of Sandtable: what the processes outside a sandbox and the first process inside it tell each other.
//!
//! A plan ([`op`]) says what is to be done, a [`report`] what was found to hold. Between the two there are requests and
//! replies ([`wire`], [`terms`]) in [`frame`]s. An [`invocation`] is a command as its caller knows it, and [`log`] the
//! form in which the output of a command without a caller is kept. [`probe`] has the words of attacks that are tried on purpose.
//!
//! All of it is data, the same on every system. Nothing in this crate mounts, starts or connects to anything, and it
//! depends on no other crate of ours. The one exception to "no input or output" is the log: its form is a pair of files
//! that take turns, so writer and reader of it are here, side by side, and use nothing but ordinary files.

#![forbid(unsafe_code)]

pub mod constants;
pub mod follow;
pub mod frame;
pub mod invocation;
pub mod log;
pub mod op;
pub mod probe;
pub mod report;
pub mod step;
pub mod terms;
pub mod wire;
