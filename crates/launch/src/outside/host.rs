//! How the host looks from the supervisor, read before the clone, so that the child can tell whether it
//! really stands somewhere else.

use rustix::fs::stat;
use rustix::io::Result;
use sandtable_protocol::terms::HostView;

use crate::inside::verify::filters;
use crate::namespaces::namespaces;
use crate::sys::privilege::session_keyring;

/// Looks at the process that calls, which is the supervisor.
pub fn look() -> Result<HostView> {
    let root = stat("/")?;
    Ok(HostView {
        namespaces: namespaces()?,
        root: (root.st_dev, root.st_ino),
        keyring: session_keyring().ok(),
        filters: filters(&fs_err::read_to_string("/proc/self/status").unwrap_or_default()).unwrap_or(0),
    })
}
