//! Words on which the parts of a sandbox agree across processes, files and containers.

use std::time::Duration;

/// How long the processes inside have between `SIGTERM` and `SIGKILL`: everything is to be gone within two
/// seconds of the bell, and the end itself takes a moment.
pub const GRACE: Duration = Duration::from_millis(1500);
/// How every control group that is ours starts.
pub const GROUP_PREFIX: &str = "sandtable-";
/// The word for our executable that makes it find out whether a socket accepts a connection.
pub const REACH: &str = "__reach";
/// The word for our executable that makes it the first process of a container beside a sandbox.
pub const OUTPOST: &str = "__outpost";
/// What that process says when its program listens.
pub const READY: u8 = b'r';
