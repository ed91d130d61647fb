//! Steps that install packages of the system, and the writable view of the root file system that they need.
//!
//! The view is made for the steps of one plan: what is installed is seen by the later steps and by the verification,
//! and is gone with the place of the build. The root file system itself is never written, and this machine's own system
//! is never offered for it: there is no way from a recipe to a package on the host.

use std::path::PathBuf;

use sandtable_sandbox::model::mount::{Content, Mount};
use sandtable_sandbox::model::resolved::Identity;
use sandtable_sandbox::session::one_shot::OneShot;

use super::root::{Seen, System};
use crate::elf::Root;
use crate::family::{self, Packages};
use crate::plan::{Plan, Step};

/// Why no package can be installed.
#[derive(Debug, thiserror::Error)]
pub enum PackagesError {
    #[error(
        "packages are installed only into a root file system that was brought along, not into this machine's"
    )]
    Machine,
    #[error("packages are not installed into an image of a container engine")]
    Image,
    #[error("the root file system has no `{0}`")]
    NoManager(String),
    #[error("a package manager has to be root of its sandbox, and only a sandbox of root has one")]
    Ordinary,
}

impl PackagesError {
    /// What can be done about it.
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Self::Machine => "try it on one: `sandtable tool test --rootfs FAMILY=DIR`",
            Self::Image => {
                "name an image that has them and leave out the step, or bring it as a root file system: \
                 `sandtable tool test --rootfs FAMILY=OCI`"
            }
            Self::NoManager(_) => "bring a root file system of the family that has its package manager",
            Self::Ordinary => "try it as root; its sandbox has no more rights for that",
        }
    }
}

/// The package manager that steps of `plan` need.
pub(super) fn manager(plan: &Plan) -> Option<&'static Packages> {
    plan.steps.iter().find_map(|step| match step {
        Step::SystemPackages { manager, .. } => Some(family::packages(*manager)),
        _ => None,
    })
}

/// Whether what `plan` wants to install can be installed there.
pub(super) fn check(plan: &Plan, root: &Seen, identity: Identity) -> Result<(), PackagesError> {
    let Some(packages) = manager(plan) else { return Ok(()) };
    let files = match &root.system {
        System::Machine(_) => return Err(PackagesError::Machine),
        System::Image(_) => return Err(PackagesError::Image),
        System::Tree(files) => files,
    };
    let has = |place: &str| files.find(&format!("{place}/{}", packages.program)).is_some();
    if !["/usr/bin", "/bin", "/usr/sbin", "/sbin"].into_iter().any(has) {
        return Err(PackagesError::NoManager(packages.program.clone()));
    }
    if identity.uid == 0 { Ok(()) } else { Err(PackagesError::Ordinary) }
}

/// The system's part of the file system for the steps of `plan`.
pub(super) fn mounts(plan: &Plan, root: &Seen, identity: Identity) -> Vec<Mount> {
    if manager(plan).is_some() { root.writable_mounts(identity) } else { root.mounts(identity) }
}

/// The root file system with what was installed into the view of it.
pub(super) fn files(files: &Root, mounts: &[Mount], inside: &OneShot) -> Root {
    let layers = mounts.iter().filter_map(|mount| match &mount.content {
        Content::Cow { layer, .. } => {
            let top = mount.target.as_path().strip_prefix("/").ok()?;
            Some((top.to_owned(), PathBuf::from(inside.changes(layer))))
        }
        _ => None,
    });
    files.with_layers(layers.collect())
}
