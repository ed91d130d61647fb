//! HTTP/1 as far as the gate reads it: the head of a request, the length of its body, and paths. Whatever two programs could
//! read differently is refused, so that the server sees the request that was judged (RFC 9112).

mod body;
mod head;
mod path;

pub use body::{Body, BodyError};
pub use head::{HeadError, HeadReader, Header, RequestHead, Scheme, TargetForm};
pub use path::normal_path;
