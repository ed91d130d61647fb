//! The platform a plan is for.

use std::fmt;

use sandtable_sandbox::model::choice::choice;
use sandtable_sandbox::model::platform::Os;
use serde::{Deserialize, Serialize};

choice! {
    /// The processor.
    Arch { X86_64 = "x86_64", Aarch64 = "aarch64" }
}

choice! {
    /// The C library of the root file system.
    Libc { Glibc = "glibc", Musl = "musl" }
}

choice! {
    /// A family of distributions: what they share is the package manager and where files are.
    LinuxFamily { Debian = "debian", Rhel = "rhel", Arch = "arch", Alpine = "alpine", Suse = "suse" }
}

/// Where a plan is good. The family is there only if a step of the recipe asked for it, so most plans fit every family
/// with the same C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanPlatform {
    pub os: Os,
    pub arch: Arch,
    pub libc: Libc,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linux_family: Option<LinuxFamily>,
}

impl PlanPlatform {
    /// Whether something made for `self` may run on `machine`, whose family is known or not.
    pub fn fits(&self, machine: &Self) -> bool {
        let family = self.linux_family.is_none() || self.linux_family == machine.linux_family;
        self.os == machine.os && self.arch == machine.arch && self.libc == machine.libc && family
    }
}

impl fmt::Display for PlanPlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.os, self.arch, self.libc)?;
        self.linux_family.map_or(Ok(()), |family| write!(f, " {family}"))
    }
}
