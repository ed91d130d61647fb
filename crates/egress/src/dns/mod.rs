//! DNS as a sandbox sees it. Every question is answered here: a name gets an address of its own out of a pool, whether or
//! not a rule allows it, so that the connection can be answered; nothing else is known. No question leaves because it was asked.

mod answer;
mod message;
mod pool;
mod question;
pub mod stub;

pub use answer::{Answer, answer};
pub use message::kind;
pub use pool::Pool;
pub use question::{Question, Refusal};
