//! What rootless Podman's overlays stand on: it has words for one directory, a held sandbox stands on two.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::image::engine_of;
use super::launch::ContainerError;
use super::plan::{ContainerPlan, Ground};
use crate::model::resolved::Warning;
use crate::process::Cli;

/// The hidden subcommands that mount and unmount.
pub const LAY: &str = "__ground";
pub const LIFT: &str = "__unground";

/// Whether overlays stand on what was planned.
#[derive(Debug)]
pub(super) enum Grounded {
    AsPlanned,
    /// On the source alone: why.
    OnSource(String),
}

/// Mounts the grounds of a plan in the engine's namespace. Where the kernel does not let an ordinary user, the container
/// stands on its source.
pub(super) fn lay(plan: &ContainerPlan) -> Result<Grounded, ContainerError> {
    if plan.grounds.is_empty() {
        return Ok(Grounded::AsPlanned);
    }
    let mut words: Vec<PathBuf> = Vec::new();
    for ground in &plan.grounds {
        let Ground { place, above, below } = ground;
        fs::create_dir(place).map_err(|source| ContainerError::File { path: place.clone(), source })?;
        words.extend([ground.shown(), above.clone(), below.clone()]);
    }
    let call = in_namespace(&engine_of(plan)?, &plan.init).arg(LAY).args(words);
    let done = call.finish().map_err(ContainerError::Call)?;
    if done.status.success() {
        return Ok(Grounded::AsPlanned);
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Ok(Grounded::OnSource(said.lines().last().unwrap_or("it said nothing").to_owned()))
}

/// Unmounts what is at `places`; says whether nothing is left there.
pub(super) fn lift(engine: &Cli, init: &Path, places: &[PathBuf]) -> bool {
    let made: Vec<&PathBuf> = places.iter().filter(|place| fs::symlink_metadata(place).is_ok()).collect();
    if made.is_empty() {
        return true;
    }
    let done = in_namespace(engine, init).arg(LIFT).args(&made).finish();
    done.is_ok_and(|done| done.status.success())
        && made.iter().filter(|place| fs::remove_dir(place).is_err()).count() == 0
}

fn in_namespace(engine: &Cli, init: &Path) -> Cli {
    engine.clone().arg("unshare").arg(init)
}

impl Grounded {
    /// The words for the engine.
    pub(super) fn words(&self, plan: &ContainerPlan) -> Vec<String> {
        let words = plan.argv.iter().map(|arg| arg.value.clone());
        match self {
            Self::AsPlanned => words.collect(),
            Self::OnSource(_) => words.map(|word| on_source(word, &plan.grounds)).collect(),
        }
    }

    pub(super) fn warning(&self) -> Option<Warning> {
        let Self::OnSource(why) = self else { return None };
        let text = format!(
            "inside, git and files follow the source, not its state when the sandbox was made: {why}"
        );
        Some(Warning::new("git-follows-source", text))
    }
}

fn on_source(word: String, grounds: &[Ground]) -> String {
    for ground in grounds {
        if let Some(rest) = word.strip_prefix(&format!("{}:", ground.shown().display())) {
            return format!("{}:{rest}", ground.below.display());
        }
    }
    word
}
