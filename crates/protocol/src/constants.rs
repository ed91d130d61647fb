//! Words on which the parts of a sandbox agree across processes, files and containers.

/// How every control group that is ours starts.
pub const GROUP_PREFIX: &str = "sandtable-";
/// The word for our executable that makes it find out whether a socket accepts a connection.
pub const REACH: &str = "__reach";
/// The word for our executable that makes it the first process of a container beside a sandbox.
pub const OUTPOST: &str = "__outpost";
/// What that process says when its program listens.
pub const READY: u8 = b'r';
