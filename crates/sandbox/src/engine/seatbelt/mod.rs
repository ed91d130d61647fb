//! The Seatbelt engine: macOS's own sandbox, by way of `/usr/bin/sandbox-exec`.
//!
//! Seatbelt shows nothing at another place: it decides who may do what with the files where they are. So the
//! table of mounts becomes rules about paths, and what a sandbox has of its own (its home, its temporary files, a
//! copy of the workspace) keeps the place it has in the sandbox's state; variables that name such places are
//! rewritten. No text of the user ever becomes part of the profile: paths are parameters.
//!
//! The rules that do not depend on the request are the `*.sbpl` files, each rule with its reason. Lowering is pure
//! and the same everywhere. Starting is for macOS, and this executable is for Linux: a launch is refused.

mod lower;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::oci::plan::OwnFile;
use super::{Engine, Handles, LaunchError, Place, Running};
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::{EngineName, ResolvedSpec, Secrecy, Variable};
use crate::model::seatbelt::SeatbeltProfile;
use crate::model::secret::REDACTED;

pub use lower::lower;

/// The program that applies a profile.
pub const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// What Seatbelt will be told, and what has to be there before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatbeltPlan {
    pub name: SeatbeltProfile,
    /// The rules.
    pub profile: String,
    /// What stands for a path in them.
    pub parameters: Vec<Parameter>,
    /// The environment of a command, as it is outside.
    pub environment: BTreeMap<String, Variable>,
    /// Where a command starts, as it is outside.
    pub directory: HostPath,
    /// What of the inside lies elsewhere.
    pub moved: Vec<Moved>,
    /// Links in moved directories to what is shown below them.
    pub links: Vec<Link>,
    /// Small files that are written before the command starts.
    pub files: Vec<OwnFile>,
}

/// A path that the profile speaks of by a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    pub name: String,
    pub value: String,
    pub reason: String,
}

/// A place inside, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub inside: BoxPath,
    pub outside: HostPath,
    pub lasts: Lasts,
}

/// How long a moved directory is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lasts {
    /// As long as the sandbox.
    Sandbox,
    /// As long as its processes.
    Processes,
}

/// A symbolic link that is made before the command starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The place inside that it leads to.
    pub inside: BoxPath,
    pub at: HostPath,
    pub to: HostPath,
}

impl SeatbeltPlan {
    /// The words before the command: the program, the profile and its parameters. None goes through a shell, so
    /// nothing in a path needs quotes.
    pub fn argv(&self) -> Vec<String> {
        let mut argv = vec![PROGRAM.to_owned(), "-p".to_owned(), self.profile.clone()];
        for parameter in &self.parameters {
            argv.extend(["-D".to_owned(), format!("{}={}", parameter.name, parameter.value)]);
        }
        argv.push("--".to_owned());
        argv
    }

    /// Where on the host a path inside is, without links.
    pub fn outside(&self, path: &BoxPath) -> HostPath {
        let path = lower::real(path);
        let moved = self.moved.iter().map(|moved| (lower::real(&moved.inside), &moved.outside));
        let links = self.links.iter().map(|link| (lower::real(&link.inside), &link.to));
        let holding = moved.chain(links).filter(|(inside, _)| path.is_within(inside));
        let deepest = holding.max_by_key(|(inside, _)| inside.as_path().as_os_str().len());
        match deepest.map(|(inside, outside)| (outside, path.below(&inside).map(Path::to_owned))) {
            Some((outside, Some(rest))) if !rest.as_os_str().is_empty() => outside.join(rest),
            Some((outside, _)) => outside.clone(),
            None => path,
        }
    }
}

/// The Seatbelt engine.
#[derive(Clone, Copy, Debug)]
pub struct Seatbelt;

impl Engine for Seatbelt {
    type Plan = SeatbeltPlan;

    fn plan(&self, spec: &ResolvedSpec, place: &Place) -> SeatbeltPlan {
        lower(spec, place).expect("resolve refuses what Seatbelt cannot do")
    }

    fn launch(&self, _plan: &SeatbeltPlan, _handles: &Handles<'_>) -> Result<Box<dyn Running>, LaunchError> {
        Err(LaunchError::Elsewhere { engine: EngineName::Seatbelt, system: "macOS" })
    }
}

/// The plan for people: where things are, the parameters, the rules.
pub(super) fn describe(plan: &SeatbeltPlan, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "profile    {}", plan.name)?;
    writeln!(f, "directory  {}", plan.directory)?;
    for Moved { inside, outside, .. } in &plan.moved {
        writeln!(f, "  {inside} is {outside}")?;
    }
    for Link { at, to, .. } in &plan.links {
        writeln!(f, "  link {at} to {to}")?;
    }
    for OwnFile { path, .. } in &plan.files {
        writeln!(f, "  write {}", path.display())?;
    }
    for (name, variable) in &plan.environment {
        let value = if variable.secrecy == Secrecy::Open { &variable.value } else { REDACTED };
        writeln!(f, "  {name}={value}")?;
    }
    for Parameter { name, value, reason } in &plan.parameters {
        writeln!(f, "  -D {name}={value}  ; {reason}")?;
    }
    plan.profile.lines().try_for_each(|line| writeln!(f, "  {line}"))
}
