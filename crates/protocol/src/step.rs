//! The steps of a launch, by name: what failed when there is no sandbox.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::report::Control;

/// What was tried; its text reads well after "cannot".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    // Outside, before PID 1 goes on.
    #[error("look at the host")]
    LookAtHost,
    #[error("make a socket")]
    MakeSocket,
    #[error("map the private id range")]
    MapIds,
    #[error("open the user namespace")]
    OpenUserNamespace,
    #[error("shift the owners of `{}` into the private id range", .0.display())]
    ShiftOwners(PathBuf),
    #[error("make a cgroup namespace")]
    MakeCgroupNamespace,
    #[error("understand PID 1, which said {0}")]
    UnderstandInit(String),
    // Between PID 1 and its supervisor, and what PID 1 becomes.
    #[error("talk to the supervisor: {0}")]
    Talk(String),
    #[error("hear the terms: {0}")]
    HearTerms(String),
    #[error("understand the terms")]
    UnderstandTerms,
    #[error("listen at port {0} inside")]
    Listen(u16),
    #[error("tie the sandbox to its supervisor")]
    TieToSupervisor,
    #[error("become the sandbox's user")]
    BecomeUser,
    #[error("open `{}`", .0.display())]
    Open(PathBuf),
    #[error("look at `{}`", .0.display())]
    LookAt(PathBuf),
    #[error("write `{}`", .0.display())]
    Write(PathBuf),
    #[error("enforce {0}")]
    Enforce(Control),
    #[error("enforce {0}: the namespace is the host's")]
    LeaveNamespace(Control),
    // Mounts.
    #[error("make mounts private")]
    PrivateMounts,
    #[error("make the stage")]
    MakeStage,
    #[error("attach the stage")]
    AttachStage,
    #[error("make the root")]
    MakeRoot,
    #[error("attach the root")]
    AttachRoot,
    #[error("make the root read-only")]
    ReadOnlyRoot,
    #[error("make a place on the stage")]
    MakeStagePlace,
    #[error("attach a layer to the stage")]
    AttachLayer,
    #[error("mount `{}`: it was replaced after it was checked", .0.display())]
    MountReplaced(PathBuf),
    #[error("mount `{}`: its idmapped mount did not arrive", .0.display())]
    MountMissing(PathBuf),
    #[error("restrict the mount at `{}`", .0.display())]
    RestrictMount(PathBuf),
    #[error("look at the mount for `{}`", .0.display())]
    LookAtMount(PathBuf),
    #[error("mount the copy-on-write view of `{}`", .0.display())]
    MountView(PathBuf),
    #[error("mount a private `{}`", .0.display())]
    MountPrivate(PathBuf),
    #[error("mount `{}`", .0.display())]
    Mount(PathBuf),
    #[error("make the memory of the sandbox")]
    MakeMemory,
    #[error("mask `{}`", .0.display())]
    Mask(PathBuf),
    #[error("make the way to `{}`", .0.display())]
    MakeWay(PathBuf),
    #[error("make the mount point `{}`", .0.display())]
    MakeMountPoint(PathBuf),
    #[error("make the link `{}`", .0.display())]
    MakeLink(PathBuf),
    #[error("attach the mount at `{}`", .0.display())]
    AttachMount(PathBuf),
    #[error("leave the host's root")]
    LeaveRoot,
    // The confinement of PID 1.
    #[error("set the host name")]
    SetHostName,
    #[error("switch the loopback device on")]
    Loopback,
    #[error("join a new session keyring")]
    SessionKeyring,
    #[error("start a session")]
    StartSession,
    #[error("switch core dumps off")]
    NoCoreDumps,
    #[error("close descriptors")]
    CloseDescriptors,
    #[error("drop capabilities")]
    DropCapabilities,
    #[error("give up new privileges")]
    NoNewPrivileges,
    #[error("make PID 1 unreadable")]
    SealInit,
    #[error("look at PID 1")]
    LookAtInit,
    #[error("install the system call filter")]
    FilterSystemCalls,
    #[error("limit pending signals")]
    LimitSignals,
    #[error("restrict with Landlock: {0}")]
    Landlock(String),
    #[error("open `{}` for Landlock", .0.display())]
    OpenForLandlock(PathBuf),
}

impl Step {
    /// The path that it was about.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::ShiftOwners(path)
            | Self::Open(path)
            | Self::LookAt(path)
            | Self::Write(path)
            | Self::MountReplaced(path)
            | Self::MountMissing(path)
            | Self::RestrictMount(path)
            | Self::LookAtMount(path)
            | Self::MountView(path)
            | Self::MountPrivate(path)
            | Self::Mount(path)
            | Self::Mask(path)
            | Self::MakeWay(path)
            | Self::MakeMountPoint(path)
            | Self::MakeLink(path)
            | Self::AttachMount(path)
            | Self::OpenForLandlock(path) => Some(path),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_about_a_path_names_it() {
        let path = PathBuf::from("/some/place");
        let about: [fn(PathBuf) -> Step; 17] = [
            Step::ShiftOwners,
            Step::Open,
            Step::LookAt,
            Step::Write,
            Step::MountReplaced,
            Step::MountMissing,
            Step::RestrictMount,
            Step::LookAtMount,
            Step::MountView,
            Step::MountPrivate,
            Step::Mount,
            Step::Mask,
            Step::MakeWay,
            Step::MakeMountPoint,
            Step::MakeLink,
            Step::AttachMount,
            Step::OpenForLandlock,
        ];
        for step in about.map(|about| about(path.clone())) {
            assert_eq!(step.path(), Some(path.as_path()), "{step:?}");
            assert!(step.to_string().contains("`/some/place`"), "{step}");
            let text = serde_json::to_string(&step).unwrap();
            assert_eq!(serde_json::from_str::<Step>(&text).unwrap(), step);
        }
        assert_eq!(Step::MapIds.path(), None);
        assert_eq!(Step::MapIds.to_string(), "map the private id range");
    }
}
