//! One resolution: what was asked, by whom, on which machine, and the few facts that several parts need.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::error::ResolveError;
use crate::facts::{Facts, Failure, MountPoint};
use crate::host::Host;
use crate::model::container::Container;
use crate::model::engine::EngineTraits;
use crate::model::mount::FileIdentity;
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::EngineName;
use crate::model::spec::Spec;

pub(super) struct Case<'a> {
    pub(super) spec: &'a Spec,
    pub(super) host: &'a Host,
    pub(super) facts: &'a dyn Facts,
    pub(super) engine: EngineName,
    pub(super) home: Option<Home>,
    pub(super) state: State,
    /// The container engine, when one runs the sandbox.
    pub(super) container: Option<&'a Container>,
    mounts: OnceCell<Vec<MountPoint>>,
}

/// The caller's home directory.
pub(super) struct Home {
    /// As the environment spells it.
    pub(super) written: HostPath,
    /// Without symbolic links. The sandbox uses this one.
    pub(super) real: HostPath,
}

/// Where our own state lies or will lie.
pub(super) struct State {
    /// Without symbolic links.
    pub(super) real: HostPath,
    /// The directory itself if it exists, else the nearest one above it that does.
    pub(super) existing: HostPath,
}

impl<'a> Case<'a> {
    pub(super) fn new(
        spec: &'a Spec,
        host: &'a Host,
        facts: &'a dyn Facts,
        engine: EngineName,
    ) -> Result<Self, ResolveError> {
        let home = host.home.as_ref().filter(|home| home.parent().is_some()).map(|written| {
            let real = facts.real_path(written).ok().and_then(|real| HostPath::new(real).ok());
            Home { written: written.clone(), real: real.unwrap_or_else(|| written.clone()) }
        });
        let state = state(&host.data, facts)?;
        Ok(Self { spec, host, facts, engine, home, state, container: None, mounts: OnceCell::new() })
    }

    /// The properties of its engine.
    pub(super) fn traits(&self) -> EngineTraits {
        self.engine.traits()
    }

    /// The same in a container.
    pub(super) fn contained(self, container: Option<&'a Container>) -> Self {
        Self { container, ..self }
    }

    /// The home directory as the sandbox sees it.
    pub(super) fn home_inside(&self) -> BoxPath {
        match &self.home {
            Some(home) => home.real.same_inside(),
            None => BoxPath::new("/home/sandbox").expect("absolute"),
        }
    }

    /// `path` with the home directory spelled without symbolic links.
    pub(super) fn at_home(&self, path: &Path) -> PathBuf {
        let rest = self.home.as_ref().and_then(|home| {
            path.strip_prefix(home.written.as_path()).ok().map(|rest| home.real.as_path().join(rest))
        });
        // Joining nothing would leave a separator at the end.
        rest.map_or_else(|| path.to_owned(), |path| path.components().collect())
    }

    /// What below the home directory `path` is, if it lies there.
    pub(super) fn below_home<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(self.home.as_ref()?.real.as_path()).ok()
    }

    /// The mounts that lie below `directory`.
    pub(super) fn mounts_below(&self, directory: &HostPath) -> Result<Vec<PathBuf>, ResolveError> {
        if self.mounts.get().is_none() {
            let mounts = self.facts.mounts().map_err(|why| ResolveError::MountsUnknown { why })?;
            self.mounts.get_or_init(|| mounts);
        }
        let below = self.mounts.get().into_iter().flatten().map(|mount| &mount.target);
        let directory = directory.as_path();
        Ok(below.filter(|target| target.starts_with(directory) && *target != directory).cloned().collect())
    }

    /// Device and inode of `path`, to be compared when it is mounted.
    pub(super) fn identity(&self, path: &HostPath) -> Option<FileIdentity> {
        let entry = self.facts.kind(path).ok()?;
        Some(FileIdentity { device: entry.device, inode: entry.inode })
    }
}

pub(super) fn state(data: &HostPath, facts: &dyn Facts) -> Result<State, ResolveError> {
    let mut last = Failure::Missing;
    for ancestor in data.as_path().ancestors() {
        match facts.real_path(ancestor) {
            Ok(real) => {
                let rest = data.as_path().strip_prefix(ancestor).expect("an ancestor of it");
                let path = |path: PathBuf| HostPath::new(path).expect("a real path is absolute");
                // Joining nothing would leave a separator at the end, which `HostPath` drops.
                return Ok(State { real: path(real.join(rest)), existing: path(real) });
            }
            Err(Failure::Missing) => {}
            Err(why) => last = why,
        }
    }
    Err(ResolveError::StateUnknown { path: data.clone(), why: last })
}
