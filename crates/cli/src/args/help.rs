//! The headings of options in help.

pub(crate) const WORKSPACE: &str = "Workspace";
pub(crate) const VISIBILITY: &str = "Visibility";
pub(crate) const NETWORK: &str = "Network";
pub(crate) const LIMITS: &str = "Limits";
pub(crate) const CONTAINERS: &str = "Containers";
pub(crate) const POLICY: &str = "Policy";
pub(crate) const OUTPUT: &str = "Output";
