//! What this machine lets a sandbox do, as far as it can be known by asking. Whether it really does is found
//! out by launching one, which is the caller's business; these facts then say why it failed and what mends it.
//!
//! Nothing here changes anything, and every answer comes through [`Facts`], so that other machines can be
//! examined in tests.

mod agent;
mod cgroups;
mod containers;
mod kernel;
mod nesting;
mod podman;
mod root;
mod selinux;
mod state;
#[cfg(test)]
mod tests;
mod tools;

pub use containers::container_engine;

use crate::facts::Facts;
use crate::host::Host;
use crate::model::check::{Check, Status};
use crate::model::spec::EngineChoice;
use crate::resolve::{self, ResolveError};

/// Whom and what is examined.
#[derive(Clone, Copy)]
pub struct Patient<'a> {
    pub host: &'a Host,
    pub facts: &'a dyn Facts,
}

impl std::fmt::Debug for Patient<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Patient").field("host", self.host).finish_non_exhaustive()
    }
}

/// What the kernel and the place we run in allow: the facts on which a launch stands.
pub fn foundations(patient: Patient<'_>) -> Vec<Check> {
    let mut checks = vec![
        kernel::version(patient),
        kernel::user_namespaces(patient),
        kernel::landlock(patient),
        kernel::overlay(patient),
    ];
    // The first that fails says what to do, so the walls around us come before what is missing within them.
    checks.extend([nesting::container(patient), nesting::proc(patient)]);
    checks.extend([root::id_range(patient), root::capabilities(patient), state::directory(patient)]);
    checks
}

/// What is good to have: a launch does not need it.
pub fn surroundings(patient: Patient<'_>) -> Vec<Check> {
    vec![
        tools::git(patient),
        agent::identities(patient),
        cgroups::control_groups(patient),
        selinux::mode(patient),
    ]
}

/// Whether an engine that cannot be launched by this version is here.
pub fn absent_engine(engine: EngineChoice, patient: Patient<'_>) -> Option<Check> {
    let (id, what) = (format!("engine.{engine}"), format!("engine `{engine}`"));
    let why = match resolve::check_engine(engine, patient.host, patient.facts).err()? {
        ResolveError::EngineMissing { .. } => "not installed, and this version has no such engine".to_owned(),
        other => other.to_string(),
    };
    Some(Check::warn(&id, &what, why))
}

/// What mends a failed launch: the first fact that stands in its way knows.
pub fn remedy(foundations: &[Check]) -> Option<String> {
    let mut standing_in_the_way = foundations.iter().filter(|check| check.status == Status::Fail);
    standing_in_the_way.find_map(|check| check.mend.clone())
}
