//! What a sandbox asks of an ssh-agent, and whether it may have it: which keys it sees, and for whom they sign. Messages
//! are read strictly (RFC 9987 and `PROTOCOL.agent` of OpenSSH); whatever is not listed here is refused.
//!
//! A signature is given for two purposes only. To log in at a host: the client has proved on the same connection which
//! host it talks to, and that host, user and key are allowed. To sign a file or commit: the namespace is allowed.

mod judge;
mod message;
mod signed;

pub use judge::{AgentPolicy, AgentSession, AllowedHost, Purpose, SignDenial};
pub use message::{
    AgentKey, AgentRequest, Bind, FAILURE, FrameError, SUCCESS, frame, identities, identities_answer, request,
};
pub use signed::{Login, Signed};
