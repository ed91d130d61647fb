//! The sandbox as a library: what is asked becomes what it means here, then a plan, then an outcome.
#![forbid(unsafe_code)]

pub mod attention;
pub mod board;
pub mod doctor;
pub mod engine;
pub mod facts;
pub mod host;
pub mod model;
pub mod os;
pub mod pending;
pub mod process;
pub mod random;
pub mod repository;
pub mod resolve;
pub mod session;

// The verbs of the first plan in one place; the others are methods of `Board`.
pub use board::{Board, format_diff_for_display, is_path_safe, open_safe};
/// Digits for bytes, and what a reader does not see, for whoever prints.
pub use sandtable_store::{hex, hidden};
pub use session::proof::{Proof, verify};
