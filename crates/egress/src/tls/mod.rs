//! As much of TLS as is sent in the clear before a connection is encrypted: the first message of a client, which names the
//! host it means, and whether the server asks for a second one. Everything else passes unread.

mod hello;
mod records;
mod server;

pub use hello::{ClientHello, HelloError, HelloReader, ServerName};
pub use records::{Alert, alert};
pub use server::{FirstAnswer, ServerReader};
