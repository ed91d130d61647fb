//! What kind of machine this is: engines lower the same request differently on each.

use serde::{Deserialize, Serialize};

use super::choice::choice;

choice! {
    /// The operating system.
    Os { Linux = "linux", MacOs = "macos" }
}

/// The machine that runs the launcher. The one that runs the sandbox may be a virtual one on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    pub os: Os,
}

impl Default for Platform {
    fn default() -> Self {
        Self { os: Os::Linux }
    }
}
