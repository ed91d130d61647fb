//! What to do about a request that cannot be met.

use std::path::PathBuf;

use super::error::ResolveError;
use super::{agents, expose};

impl ResolveError {
    /// What to do about it.
    pub(super) fn way_on(&self) -> Option<String> {
        self.about_engine().or_else(|| self.about_access()).or_else(|| self.about_directories())
    }

    /// Engines and images.
    fn about_engine(&self) -> Option<String> {
        Some(match self {
            Self::EngineMissing { package, .. } => {
                format!("`apt-get install {package}`, or leave out `--engine` to run natively")
            }
            Self::EngineElsewhere { .. } => "use `--engine native`, or leave out `--engine`".to_owned(),
            Self::ImageUnnamed { .. } => {
                "name one: `--image NAME`, the variable `LLXPRT_SANDBOX_IMAGE`, or `image = \"NAME\"` in the \
                 configuration"
                    .to_owned()
            }
            Self::Unsupported(unsupported) => unsupported.remedy().to_owned(),
            Self::ImageElsewhere { image, .. } if image.is_path() => {
                format!("make an image of it: `tar -C DIR -c . | docker import - NAME`, or name one instead of `{image}`")
            }
            Self::ImageElsewhere { .. } => "use `--engine docker` or `--engine podman`".to_owned(),
            Self::EngineRemote { variable, .. } => {
                format!("unset `{variable}`, or let it name a socket: `unix:///…`")
            }
            Self::EngineDown { .. } => {
                "start it: `systemctl start docker`, or `dockerd` as root; `docker info` says more".to_owned()
            }
            Self::EngineDenied { .. } => {
                "`sudo usermod -aG docker $USER` and log in again, or use `--engine podman`, which needs no group"
                    .to_owned()
            }
            Self::FlagDangerous { .. } | Self::FlagUnknown { .. } => {
                "leave it out, or say `--dangerously-engine-flags` if that is what you want".to_owned()
            }
            Self::FlagWithoutValue { flag } => format!("write `{flag}=VALUE`"),
            Self::NoRecipe { .. } => "write one, or leave out `--build` and `BUILD_SANDBOX`".to_owned(),
            Self::ContainersOnly { .. } => "leave it out, or name an image and an engine: `--engine podman --image NAME`".to_owned(),
            Self::Proxy(error) => error.remedy().to_owned(),
            Self::PortWithoutNetwork { .. } => "use `--network nat`".to_owned(),
            Self::OverlayEngine { .. } => "copy the workspace: `--mode copy`".to_owned(),
            Self::ImageNamed { image } => {
                format!("use `--engine docker` or `--engine podman`, or a path with a slash in front: `./{image}`")
            }
            Self::ImageNotUnpacked { .. } => "`sandtable run` unpacks it".to_owned(),
            _ => return None,
        })
    }

    /// Network, agent, environment and what is shown.
    fn about_access(&self) -> Option<String> {
        Some(match self {
            Self::NetworkHelperMissing => {
                "`apt-get install slirp4netns`, or use `--network none` or `--network host`".to_owned()
            }
            Self::NetworkDevice { path } => format!(
                "`modprobe tun` and `chmod 666 {}` as root, or use `--network none` or `--network host`",
                path.display()
            ),
            Self::AgentUnavailable { .. } => {
                "start one with `eval $(ssh-agent)` and `ssh-add`, or use `--ssh-agent auto` or `off`"
                    .to_owned()
            }
            Self::AgentConnection(error) => error.remedy(),
            Self::EnvUnset { name, .. } => format!("set `{name}`, or give it a value: `{name}=…`"),
            Self::ExposeUnknown { name } => {
                format!("one of {}, or a path with a slash in it: `./{name}`", expose::names().join(", "))
            }
            Self::AgentUnknown { name } => {
                format!("one of {}, or a path with a slash in it: `./{name}`", agents::names().join(", "))
            }
            _ => return None,
        })
    }

    /// Sources, our own state, and mounts.
    fn about_directories(&self) -> Option<String> {
        Some(match self {
            Self::HideLinkedWorktree { .. } => {
                "run in a plain copy of the files, or in the main worktree, whose `.git` can be hidden".to_owned()
            }
            Self::LiveHides { .. } | Self::LiveBase => "use `--mode overlay` or `--mode copy`".to_owned(),
            Self::SourceTooWide { .. } => {
                "run in the directory of one project, or say `--dangerously-allow-source`".to_owned()
            }
            Self::SourceHoldsCredentials { store, .. } => {
                format!("move `{}` out of it, or say `--dangerously-allow-source`", store.display())
            }
            Self::SourceHoldsState { .. } => {
                "run in a narrower directory, or let `XDG_DATA_HOME` name a directory outside it".to_owned()
            }
            Self::SourceNotUnicode { .. } => "rename the directory".to_owned(),
            Self::Submounts { below, .. } => {
                format!(
                    "run in a directory without mounts below it, unmount {}, or copy the workspace: `--mode copy`",
                    listed(below)
                )
            }
            Self::SourceFileSystem { .. } => {
                "copy the workspace: `--mode copy`, or move the project to another file system".to_owned()
            }
            Self::StateUnknown { .. } | Self::StateReadOnly { .. } | Self::StateFileSystem { .. } => {
                "let `XDG_DATA_HOME` name a directory on a local, writable file system such as ext4, xfs or btrfs"
                    .to_owned()
            }
            Self::Tool(refusal) => refusal.remedy(),
            Self::MountsUnknown { .. } => "make `/proc` available".to_owned(),
            Self::MountSymlink { real, .. } => format!("name `{}` itself if that is meant", real.display()),
            Self::MountCowFile { .. } => "mount it `:ro` or `:rw`, or mount its directory".to_owned(),
            _ => return None,
        })
    }
}

pub(super) fn listed(paths: &[PathBuf]) -> String {
    const SHOWN: usize = 5;
    let mut text: Vec<String> =
        paths.iter().take(SHOWN).map(|path| format!("`{}`", path.display())).collect();
    if paths.len() > SHOWN {
        text.push(format!("{} more", paths.len() - SHOWN));
    }
    text.join(", ")
}
