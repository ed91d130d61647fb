//! What the first process of a container is told by its supervisor, before anything else.

use serde::{Deserialize, Serialize};

use crate::op::{Beneath, Network, SetIds};

/// What a supervisor tells PID 1 of a container before anything else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Where Landlock lets the workload do what; everything else is refused.
    pub landlock: Vec<Beneath>,
    pub network: Network,
    #[serde(default)]
    pub set_ids: SetIds,
    /// A port of loopback inside whose clients the supervisor takes over.
    #[serde(default)]
    pub port: Option<u16>,
    /// Directories that come before those of the image on PATH.
    #[serde(default)]
    pub search: Vec<String>,
    pub host: HostView,
}

/// What identifies the host, so that the first process of a sandbox can tell whether it really stands somewhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostView {
    /// Inode numbers of the namespaces, in the order in which both ends know them.
    pub namespaces: [u64; 7],
    /// Device and inode of the root directory.
    pub root: (u64, u64),
    pub keyring: Option<i32>,
    /// System call filters that the supervisor is under itself.
    pub filters: u64,
}
