//! The file system of a sandbox as a table: ordered, free of contradictions, and able to answer what may
//! be done at a path. Engines fold it into whatever they understand; none of them decides anything.

use serde::{Deserialize, Serialize};

use super::layer::LayerName;
use super::path::{BoxPath, HostPath};
use super::setting::Origin;

/// One entry of a sandbox's file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    pub target: BoxPath,
    #[serde(flatten)]
    pub content: Content,
    /// Why it is there, for people.
    pub reason: String,
    pub origin: Origin,
}

/// What stands at a place inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "content", rename_all = "snake_case")]
pub enum Content {
    /// A file or directory of the host.
    Host { source: HostPath, access: HostAccess, ownership: Ownership, identity: Option<FileIdentity> },
    /// A copy-on-write view of a host directory; `layer` names where in the sandbox's state the changes go.
    Cow { source: HostPath, layer: LayerName, pins: Pins, identity: Option<FileIdentity> },
    /// A whole copy of a host directory, made with the sandbox; `layer` names where in its state it is.
    Copy { source: HostPath, layer: LayerName, identity: Option<FileIdentity> },
    /// A directory of the sandbox's own state that survives its commands.
    Private { area: String },
    /// An empty file system in memory, gone with the processes.
    Scratch { size: u64 },
    /// An empty read-only directory.
    Empty,
    /// A symbolic link.
    Link { to: String },
    /// A small read-only file.
    Text { contents: String },
    /// Nothing: whatever a mount above shows here is hidden.
    Masked,
    /// The sandbox's processes.
    Processes,
    /// The few devices every program may have.
    Devices,
    /// The socket of the caller's ssh-agent, by the way that the request names.
    Agent,
}

/// What may be done with a host file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostAccess {
    Read,
    Write,
}

/// Whose a host file appears to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ownership {
    /// The system's: not shifted to the workload, so that only what everyone may read can be read.
    System,
    /// The caller's: inside, it belongs to the workload.
    Caller,
}

/// Whether a layer has a `pins` directory between it and the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pins {
    None,
    Present,
}

/// Device and inode of a mount source when it was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
}

/// What the workload may do at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Nothing,
    Read,
    Write,
}

/// Mounts, parents before children, each target once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MountTable(Vec<Mount>);

/// Why a set of mounts is no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    #[error("two mounts at `{target}`: {first} and {second}")]
    Duplicate { target: BoxPath, first: String, second: String },
    #[error("nothing can be mounted at `{target}` below {what} at `{above}`")]
    Below { target: BoxPath, above: BoxPath, what: &'static str },
}

impl MountTable {
    /// Orders `mounts` and refuses contradictions, so that no engine has to.
    pub fn new(mut mounts: Vec<Mount>) -> Result<Self, MountError> {
        mounts.sort_by(|a, b| a.target.cmp(&b.target));
        for pair in mounts.windows(2) {
            if pair[0].target == pair[1].target {
                return Err(MountError::Duplicate {
                    target: pair[0].target.clone(),
                    first: pair[0].reason.clone(),
                    second: pair[1].reason.clone(),
                });
            }
        }
        let table = Self(mounts);
        table.0.iter().try_for_each(|mount| table.check_parent(mount))?;
        Ok(table)
    }

    /// Adds a mount, unless it contradicts another one.
    pub(crate) fn add(&mut self, mount: Mount) -> Result<(), MountError> {
        let mounts = self.0.iter().cloned().chain([mount]).collect();
        *self = Self::new(mounts)?;
        Ok(())
    }

    /// Nothing is mounted at `target` from now on.
    pub(crate) fn remove(&mut self, target: &BoxPath) {
        self.0.retain(|mount| mount.target != *target);
    }

    /// Something of what lies below the copy-on-write view `name` is covered from now on.
    pub(crate) fn cover(&mut self, name: &LayerName) {
        for mount in &mut self.0 {
            if let Content::Cow { layer, pins, .. } = &mut mount.content
                && layer == name
            {
                *pins = Pins::Present;
            }
        }
    }

    /// The copy-on-write view `name` stands on another directory from now on.
    pub(crate) fn rest_on(&mut self, name: &LayerName, ground: &HostPath) {
        for mount in &mut self.0 {
            if let Content::Cow { source, layer, identity, .. } = &mut mount.content
                && layer == name
            {
                *source = ground.clone();
                *identity = None;
            }
        }
    }

    /// What the copy-on-write view `name` stands on.
    pub fn ground(&self, name: &LayerName) -> Option<&HostPath> {
        self.0.iter().find_map(|mount| match &mount.content {
            Content::Cow { source, layer, .. } if layer == name => Some(source),
            _ => None,
        })
    }

    /// What the directory below the copy-on-write view `name` was when it was checked.
    pub(crate) fn identity(&self, name: &LayerName) -> Option<FileIdentity> {
        self.0.iter().find_map(|mount| match &mount.content {
            Content::Cow { layer, identity, .. } if layer == name => *identity,
            _ => None,
        })
    }

    /// The mounts, parents before children.
    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.0.iter()
    }

    /// The mount that decides what is at `path`: the deepest that holds it.
    pub fn at(&self, path: &BoxPath) -> Option<&Mount> {
        self.0
            .iter()
            .filter(|mount| path.is_within(&mount.target))
            .max_by_key(|mount| mount.target.as_path().as_os_str().len())
    }

    /// What the workload may do at `path`.
    pub fn access(&self, path: &BoxPath) -> Access {
        match self.at(path).map(|mount| &mount.content) {
            None | Some(Content::Masked) => Access::Nothing,
            Some(
                Content::Cow { .. }
                | Content::Copy { .. }
                | Content::Private { .. }
                | Content::Scratch { .. }
                | Content::Devices
                | Content::Host { access: HostAccess::Write, .. },
            ) => Access::Write,
            Some(
                Content::Host { access: HostAccess::Read, .. }
                | Content::Empty
                | Content::Link { .. }
                | Content::Text { .. }
                | Content::Processes
                | Content::Agent,
            ) => Access::Read,
        }
    }

    fn check_parent(&self, mount: &Mount) -> Result<(), MountError> {
        let Some(above) = mount.target.parent().and_then(|parent| self.at(&parent)) else { return Ok(()) };
        let what = match above.content {
            Content::Link { .. } => "a symbolic link",
            Content::Text { .. } => "a file",
            Content::Masked => "a masked path",
            Content::Processes => "the process file system",
            Content::Devices => "the devices",
            Content::Agent => "a socket",
            _ => return Ok(()),
        };
        Err(MountError::Below { target: mount.target.clone(), above: above.target.clone(), what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(target: &str, content: Content) -> Mount {
        let target = BoxPath::new(target).expect("absolute");
        Mount { target, content, reason: "a test".to_owned(), origin: Origin::Default }
    }

    fn host(source: &str, access: HostAccess) -> Content {
        let source = HostPath::new(source).expect("absolute");
        Content::Host { source, access, ownership: Ownership::Caller, identity: None }
    }

    #[test]
    fn the_deepest_mount_decides() {
        let table = MountTable::new(vec![
            mount("/repo/.git/hooks", Content::Masked),
            mount("/repo", host("/repo", HostAccess::Write)),
            mount("/repo/.git", host("/repo/.git", HostAccess::Read)),
        ])
        .expect("no contradiction");
        let access = |path: &str| table.access(&BoxPath::new(path).expect("absolute"));
        assert_eq!(access("/repo/src/main.rs"), Access::Write);
        assert_eq!(access("/repo/.git/config"), Access::Read);
        assert_eq!(access("/repo/.git/hooks/pre-commit"), Access::Nothing);
        assert_eq!(access("/repository"), Access::Nothing);
    }

    #[test]
    fn a_target_is_mounted_once() {
        let twice = MountTable::new(vec![mount("/a", Content::Empty), mount("/a", Content::Masked)]);
        assert!(matches!(twice, Err(MountError::Duplicate { .. })));
    }

    #[test]
    fn a_mount_that_is_added_later_keeps_the_order_and_is_checked() {
        let order = |table: &MountTable| -> Vec<String> {
            table.iter().map(|mount| mount.target.to_string()).collect()
        };
        let mut table = MountTable::new(vec![mount("/a", Content::Empty), mount("/c", Content::Masked)])
            .expect("no contradiction");
        table.add(mount("/b", Content::Empty)).expect("no contradiction");
        assert!(matches!(table.add(mount("/b", Content::Empty)), Err(MountError::Duplicate { .. })));
        assert!(matches!(table.add(mount("/c/d", Content::Empty)), Err(MountError::Below { .. })));
        assert_eq!(order(&table), ["/a", "/b", "/c"]);
        table.remove(&BoxPath::new("/b").expect("absolute"));
        assert_eq!(order(&table), ["/a", "/c"]);
    }

    #[test]
    fn nothing_is_mounted_below_a_link() {
        let below = MountTable::new(vec![
            mount("/bin", Content::Link { to: "usr/bin".into() }),
            mount("/bin/x", Content::Empty),
        ]);
        assert!(matches!(below, Err(MountError::Below { .. })));
    }
}
