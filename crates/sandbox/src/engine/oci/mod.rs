//! Container engines: Docker and Podman. One lowering for both; a [`Dialect`] holds the handful of places
//! where they differ.

pub mod plan;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use plan::ContainerPlan;

/// Which engine is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    Docker,
    Podman,
}

/// The plan for people.
pub(super) fn describe(plan: &ContainerPlan, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "container  {}", plan.name)?;
    writeln!(f, "  {}", plan.program.display())?;
    for arg in &plan.argv {
        writeln!(f, "    {}", arg.shown())?;
    }
    Ok(())
}
