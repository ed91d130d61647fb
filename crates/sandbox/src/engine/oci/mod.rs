//! Container engines: Docker and Podman. One lowering for both; a [`Dialect`] holds the handful of places
//! where they differ.
//!
//! The engine builds the sandbox around our own PID 1 and is then out of the way: commands, streams, signals
//! and exit codes go between the supervisor and PID 1 as on the native engine. When the supervisor is gone,
//! PID 1 ends and the container with it; what else was made is named in a journal beforehand (`journal`).

mod ground;
pub mod image;
mod journal;
mod launch;
mod lower;
mod mounts;
mod own;
pub mod plan;
mod points;
mod proxy;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use ground::{LAY, LIFT};
pub use journal::SWEEP;
pub(super) use journal::{has_left, reap};
pub use launch::ContainerError;
pub use lower::SUBCOMMAND;
pub use own::INIT;
pub use plan::ContainerPlan;

use super::ssh_agent::Setup;
use super::{Engine, Handles, LaunchError, Place, Running, ssh_agent};
use crate::model::observe::Observer;
use crate::model::resolved::ResolvedSpec;
use crate::model::shell;

/// Which engine is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    Docker,
    Podman,
}

/// A container engine.
#[derive(Clone, Copy, Debug)]
pub struct Oci {
    pub dialect: Dialect,
}

impl Engine for Oci {
    type Plan = ContainerPlan;

    fn prepare(&self, spec: &mut ResolvedSpec, observer: &dyn Observer) -> Result<(), LaunchError> {
        if let (Some(container), Some(image)) = (&spec.container, &mut spec.image) {
            image::ensure(container, image, observer)?;
        }
        Ok(ssh_agent::check(spec)?)
    }

    fn plan(&self, spec: &ResolvedSpec, place: &Place) -> ContainerPlan {
        lower::lower(self.dialect, spec, place)
    }

    fn launch(&self, plan: &ContainerPlan, handles: &Handles<'_>) -> Result<Box<dyn Running>, LaunchError> {
        let agent = ssh_agent::set_up(&plan.agent)?;
        Ok(Box::new(launch::launch(plan, handles, agent)?))
    }
}

/// The plan for people: what is made before, then the call, a word per line with where it came from.
pub(super) fn describe(plan: &ContainerPlan, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for volume in &plan.volumes {
        writeln!(f, "volume     {}: overlay {}", volume.name, volume.options)?;
    }
    for plan::Ground { place, above, below } in &plan.grounds {
        writeln!(f, "ground     {}: {} on {}", place.display(), above.display(), below.display())?;
    }
    for file in &plan.files {
        writeln!(f, "file       {} ({} bytes)", file.path.display(), file.contents.len())?;
    }
    if let Some(network) = &plan.network_name {
        writeln!(f, "network    {network}")?;
    }
    if !plan.concealed.is_empty() {
        writeln!(f, "unseen by the engine: {}", plan.concealed.join(", "))?;
    }
    match &plan.agent {
        Setup::Nothing => {}
        Setup::Relay(relay) => writeln!(f, "relay      {} to {}", relay.at.display(), relay.to.display())?,
        Setup::Tunnel(tunnel) => {
            let words: Vec<String> = tunnel.forward().iter().map(|word| shell::word(word)).collect();
            writeln!(f, "tunnel     {} {}", tunnel.ssh.display(), words.join(" "))?;
        }
    }
    for argv in plan.proxy.iter().map(|proxy| &proxy.argv).chain([&plan.argv]) {
        writeln!(f, "{}", plan.program.display())?;
        for line in lines(argv) {
            writeln!(f, "  {line}")?;
        }
    }
    Ok(())
}

/// An option and its value on one line, with the origin of those that somebody asked for.
fn lines(argv: &[plan::Arg]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut words = argv.iter().peekable();
    while let Some(arg) = words.next() {
        let mut line = shell::word(arg.shown());
        let takes = arg.value.starts_with("--") && !arg.value.contains('=');
        if let Some(value) =
            words.next_if(|next| takes && next.part == arg.part && !next.value.starts_with("--"))
        {
            line = format!("{line} {}", shell::word(value.shown()));
        }
        match &arg.origin {
            crate::model::setting::Origin::Default => lines.push(line),
            origin => lines.push(format!("{line}    # {origin}")),
        }
    }
    lines
}
