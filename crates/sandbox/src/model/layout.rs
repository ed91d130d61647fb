//! The directory of a sandbox: all names and paths in it. Only the process that mounts a layer knows some of them as well: it
//! gets the directory and the name of the layer (`Op::Overlay`).
//!
//! `docs/architecture.md` describes each entry under *State on disk*.

use super::layer::LayerName;
use super::path::HostPath;

/// Locked while a sandbox runs, is made or is removed.
pub const LOCK: &str = "lock";
/// The same before it is held, where a file cannot be without a name.
pub const LOCK_NEW: &str = "lock.new";
/// The socket of PID 1, there from the launch to the end.
pub const CONTROL: &str = "control";
/// What the sandbox is.
pub const RECORD: &str = "sandbox.json";
/// What its last command did.
pub const OUTCOME: &str = "outcome.json";
/// The state of the source that is its base.
pub const BASE: &str = "base.json";
/// What its workspace looked like when it was last brought to a state.
pub const ARRIVED: &str = "arrived.json";
/// When its copies were made, and without what.
pub const COPIES: &str = "copies.json";
/// There while the layer may hold what no recorded state has: from before a command runs until its state is recorded.
pub const UNRECORDED: &str = "unrecorded";
/// What is being written into the layer of pins; there only meanwhile.
pub const PINNING: &str = "pinning.json";
/// The values of its concealed variables.
pub const ENVIRONMENT: &str = "environment";
/// What a detached command wrote.
pub const LOG: &str = "log";
/// What a command wrote whose streams are kept whole.
pub const STDOUT: &str = "stdout";
pub const STDERR: &str = "stderr";
/// The private home directory, which mounts name as an area of the sandbox.
pub const HOME: &str = "home";
/// A scratch repository for the commits made inside.
pub const COMMITS: &str = "commits.tmp";
/// The control groups of its command, named before they are made.
pub const GROUPS: &str = "cgroups";
/// What was made for its container outside this directory.
pub const CONTAINER: &str = "container.json";
/// Where the supervisor and the container of a proxy command meet.
pub const PROXY: &str = "proxy";
/// The socket of the supervisor that stands between the workload and the ssh-agent.
pub const SSH_AGENT: &str = "agent";
/// What `ssh` said, and whom it met, while there is a tunnel into Podman's machine.
pub const TUNNEL_LOG: &str = "tunnel.log";
pub const TUNNEL_HOSTS: &str = "tunnel.hosts";

/// The parts of a copy-on-write layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerPart {
    /// The changes.
    Upper,
    /// The kernel's own.
    Work,
    /// What covers parts of the source.
    Pins,
    /// Pins and source as one, where an engine mounts them first.
    Ground,
}

/// The paths of one sandbox's directory.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a>(&'a HostPath);

impl<'a> Layout<'a> {
    pub const fn of(directory: &'a HostPath) -> Self {
        Self(directory)
    }

    /// A directory of one of its layers.
    pub fn layer(self, layer: &LayerName, part: LayerPart) -> HostPath {
        let ending = match part {
            LayerPart::Upper => "upper",
            LayerPart::Work => "work",
            LayerPart::Pins => "pins",
            LayerPart::Ground => "ground",
        };
        self.0.join(format!("{layer}.{ending}"))
    }

    /// The directory of all copies.
    pub fn copies(self) -> HostPath {
        self.0.join("copies")
    }

    /// The copy of the source of one mount.
    pub fn copy(self, layer: &LayerName) -> HostPath {
        self.copies().join(layer.to_string())
    }

    /// The recorded state that the workspace stands on, written out.
    pub fn base(self) -> HostPath {
        self.0.join("base")
    }

    /// The git directory that a linked worktree shares, beside that.
    pub fn base_git(self) -> HostPath {
        self.0.join("base-git")
    }

    /// A second copy of the source, while its state is recorded once more.
    pub fn base_again(self) -> HostPath {
        self.0.join("base.new")
    }

    /// The private home directory.
    pub fn home(self) -> HostPath {
        self.0.join(HOME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_where_they_always_were() {
        let directory = HostPath::new("/s/box").expect("absolute");
        let layout = Layout::of(&directory);
        let mount = LayerName::Mount(2);
        let paths = [
            layout.layer(&LayerName::Workspace, LayerPart::Upper),
            layout.layer(&LayerName::GitDirectory, LayerPart::Work),
            layout.layer(&mount, LayerPart::Pins),
            layout.layer(&LayerName::Workspace, LayerPart::Ground),
            layout.copy(&LayerName::AgentHome(0)),
            layout.base(),
            layout.base_git(),
            layout.base_again(),
            layout.home(),
        ];
        let text = paths.map(|path| path.to_string()).join("\n");
        insta::assert_snapshot!(text, @"
        /s/box/workspace.upper
        /s/box/git.work
        /s/box/mount-2.pins
        /s/box/workspace.ground
        /s/box/copies/agent-0
        /s/box/base
        /s/box/base-git
        /s/box/base.new
        /s/box/home
        ");
    }
}
