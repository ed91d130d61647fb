//! What every surface of Sandtable needs, whether it is a command line or something else.
//!
//! A [`Caller`] is a user on this machine. [`config`] puts flags, variables ([`mod@env`]) and files together to one
//! request, whose every value knows where it came from; the caller resolves it, with the tools it asks for ([`workshop`]).
//! [`why`] says which line of the result decides about one thing. No answer shows what [`redaction`] takes out.
//!
//! `sandbox` knows no merge and `merge` no sandbox. What needs both is here: the work of a sandbox on its way to where it
//! belongs ([`work`], named by the words of [`target`]), one step back or forth over whatever was
//! done last ([`back`]), which states that still needs ([`collect`]), and what an interrupted command left, whichever it
//! was ([`recovery`]).
//!
//! This crate prints nothing, and the environment comes in as a value.

#![forbid(unsafe_code)]

pub mod back;
pub mod caller;
pub mod collect;
pub mod config;
pub mod env;
pub mod recovery;
pub mod redaction;
pub mod sandbox;
pub mod target;
pub mod why;
pub mod work;
pub mod workshop;

pub use caller::{Caller, CallerError};
pub use config::key::Key;
pub use sandbox::{Finished, Output, SandboxBuilder, SandboxError};
pub use sandtable_merge::Approvals;
pub use sandtable_merge::outcome::{MergeOutcome, Outcome};
pub use sandtable_sandbox::model::spec::Network;
pub use work::Bring;
