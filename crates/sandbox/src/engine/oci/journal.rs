//! What a launch makes outside the sandbox's directory, written down before it is made, so that what a killed
//! supervisor left is found and removed: these things, and nobody else's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sandtable_store::regular;
use serde::{Deserialize, Serialize};

use super::image::program;
use super::launch::ContainerError;
use super::plan::ContainerPlan;
use super::{Dialect, ground, own};
use crate::model::container::EngineRights;
use crate::model::layout;
use crate::model::path::HostPath;
use crate::model::resolved::Variable;
use crate::process::Cli;

/// More than is ever in it.
const LARGEST: u64 = 64 << 20;
/// Directories in it that are there only while the container is.
const PASSING: &[&str] = &["inside", "door", layout::PROXY];
/// The hidden subcommand that empties directories.
pub const SWEEP: &str = "__sweep";

/// Everything of one launch that lies outside the sandbox's directory, or that only the engine may remove.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    dialect: Dialect,
    rights: EngineRights,
    program: PathBuf,
    variables: BTreeMap<String, Variable>,
    container: String,
    volumes: Vec<String>,
    /// Places of mounts in the engine's namespace.
    #[serde(default)]
    grounds: Vec<PathBuf>,
    /// The container beside it, and the network.
    #[serde(default)]
    proxy: Option<String>,
    #[serde(default)]
    network: Option<String>,
    works: Vec<PathBuf>,
    image: String,
    init: PathBuf,
}

impl Journal {
    pub(super) fn of(plan: &ContainerPlan) -> Self {
        let image = plan.argv.iter().find(|arg| arg.part == super::plan::Part::Image);
        Self {
            dialect: plan.dialect,
            rights: plan.rights,
            program: plan.program.clone(),
            variables: plan.variables.clone(),
            container: plan.name.clone(),
            volumes: plan.volumes.iter().map(|volume| volume.name.clone()).collect(),
            grounds: plan.grounds.iter().map(|ground| ground.place.clone()).collect(),
            proxy: plan.proxy.as_ref().map(|proxy| proxy.name.clone()),
            network: plan.network_name.clone(),
            works: plan.works.clone(),
            image: image.map(|arg| arg.value.clone()).unwrap_or_default(),
            init: plan.init.clone(),
        }
    }

    /// Writes it down; from here on [`reap`] can do the rest.
    pub(super) fn write(&self, directory: &Path) -> Result<(), ContainerError> {
        let path = directory.join(layout::CONTAINER);
        let text = serde_json::to_vec(self).expect("plain data");
        fs::write(&path, text).map_err(|source| ContainerError::File { path, source })
    }

    /// Removes everything it names, and itself when nothing is left.
    pub(super) fn clear(&self, directory: &Path) {
        let Ok(engine) = program(self.program.clone(), &self.variables) else { return };
        // Failing means that it is gone already, or that the engine does not answer: then the next call tries.
        let gone = |call: Cli| call.finish().is_ok_and(|done| done.status.success() || is_gone(&done.stderr));
        let mut all = true;
        for container in [Some(&self.container), self.proxy.as_ref()].into_iter().flatten() {
            all &= gone(engine.clone().args(["rm", "--force", "--volumes", container]));
        }
        for volume in &self.volumes {
            all &= gone(engine.clone().args(["volume", "rm", "--force", volume]));
        }
        all &= ground::lift(&engine, &self.init, &self.grounds);
        if let Some(network) = &self.network {
            all &= gone(engine.clone().args(["network", "rm", network]));
        }
        all &= self.works.iter().all(|work| self.sweep(&engine, work));
        for name in PASSING {
            let _never_made = fs::remove_dir_all(directory.join(name));
        }
        if all {
            let _already_gone = fs::remove_file(directory.join(layout::CONTAINER));
        }
    }

    /// Empties a directory in which an overlay has left files that are not the caller's. The engine can: inside
    /// its own user namespace, or as root in a container that sees nothing else.
    fn sweep(&self, engine: &Cli, work: &Path) -> bool {
        let left = work.join("work");
        if fs::symlink_metadata(&left).is_err() || fs::remove_dir(&left).is_ok() {
            return true;
        }
        if fs::remove_dir_all(&left).is_ok() {
            return true;
        }
        let init = self.init.display().to_string();
        let call = match (self.dialect, self.rights) {
            (Dialect::Podman, EngineRights::Rootless) => {
                engine.clone().args(["unshare", &init, SWEEP, &left.display().to_string()])
            }
            _ => engine.clone().args(self.sweeping_container(&init, work)),
        };
        call.finish().is_ok_and(|done| done.status.success())
    }

    fn sweeping_container(&self, init: &str, work: &Path) -> Vec<String> {
        let bind = |source: &str, target: &str, rest: &str| {
            format!("type=bind,source={source},target={target}{rest}")
        };
        let words = ["run", "--rm", "--pull=never", "--network", "none", "--read-only", "--no-healthcheck"];
        let rights = ["--cap-drop=ALL", "--cap-add=DAC_OVERRIDE", "--security-opt", "no-new-privileges"];
        let mut argv: Vec<String> = words.iter().chain(&rights).map(|&word| word.to_owned()).collect();
        argv.extend(["--user".to_owned(), "0:0".to_owned()]);
        argv.extend(["--mount".to_owned(), bind(init, own::INIT, ",readonly")]);
        argv.extend(["--mount".to_owned(), bind(&work.display().to_string(), "/.sandtable/work", "")]);
        argv.extend(["--entrypoint".to_owned(), own::INIT.to_owned(), self.image.clone()]);
        argv.extend([SWEEP.to_owned(), "/.sandtable/work/work".to_owned()]);
        argv
    }
}

/// Removes what a launch for the sandbox in `directory` left.
pub(in crate::engine) fn reap(directory: &HostPath) {
    let directory = directory.as_path();
    let Ok(text) = regular::read(&directory.join(layout::CONTAINER), LARGEST) else { return };
    if let Ok(journal) = serde_json::from_slice::<Journal>(&text) {
        journal.clear(directory);
    }
}

/// Whether there is anything to remove.
pub(in crate::engine) fn has_left(directory: &HostPath) -> bool {
    directory.join(layout::CONTAINER).as_path().exists()
}

fn is_gone(stderr: &[u8]) -> bool {
    let said = String::from_utf8_lossy(stderr).to_lowercase();
    [
        "no such container",
        "no such volume",
        "no such network",
        "no container with",
        "no volume with",
        "not found",
    ]
    .iter()
    .any(|words| said.contains(words))
}
