//! The plan of a tool: inert data that says everything about how the tool comes to be.
//!
//! A plan is self-contained. It names what is downloaded by hash, what is done by primitive steps, and it embeds the
//! plans of its dependencies, the implicit ones too. It is written as JSON ([`Plan::to_json`]), read back with every
//! check ([`Plan::from_json`]), and has a [`key`] that covers all of it, so that whatever was made from another plan is
//! never taken for it.
//!
//! Paths: a step works in the *work directory* of its plan, and what the tool will consist of is collected in its *output
//! directory*. The latter stands at its final place inside from the start ([`Plan::place`]), so a prefix that a build writes
//! into a file is right forever. Dependencies stand at their own places, read-only.

pub mod check;
pub mod diff;
pub mod download;
pub mod key;
pub mod path;
pub mod platform;
pub mod step;
mod variable;

use std::collections::{BTreeMap, BTreeSet};

use sandtable_sandbox::model::path::BoxPath;
use serde::{Deserialize, Serialize};

pub use self::check::PlanError;
pub use self::download::{Download, FileName, Registry, Sha256};
pub use self::key::{PlanDigest, PlanKey};
pub use self::path::InnerPath;
pub use self::platform::{Arch, Libc, LinuxFamily, PlanPlatform};
pub use self::step::Step;
pub use self::variable::obeyed;
pub use sandtable_sandbox::model::tool::{ToolName, ToolVersion};

/// The version of the format that is written and read here.
pub const FORMAT: u32 = 1;
/// Where tools stand inside a sandbox.
pub const TOOLS: &str = "/opt/sandtable/tools";

/// How one tool comes to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub format: u32,
    pub name: ToolName,
    pub version: ToolVersion,
    /// Where the tool will run. An executor for another platform refuses the plan.
    pub platform: PlanPlatform,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub downloads: Vec<Download>,
    pub steps: Vec<Step>,
    /// How the finished tool shows that it works: inside, with itself and its dependencies on PATH.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<VerifyCommand>,
    pub provides: Provides,
    /// What must be there while the steps run, each with its own plan. A tool that is also needed when this one is used
    /// is named in [`Provides::needs`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Plan>,
}

/// What a finished tool offers to a sandbox that it is mounted in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provides {
    /// Programs, below the output directory. The directories that hold them are those for PATH.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub binaries: Vec<InnerPath>,
    /// Variables for whoever uses the tool. Values are complete: they name places inside.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Dependencies that the tool needs when it is used, not only when it is made.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<ToolName>,
}

/// One command, what it must say and how it must end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyCommand {
    /// Program and arguments; never a shell.
    pub command: Vec<String>,
    /// Texts that must all occur in what it writes, on either stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub exit_code: u8,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}

impl Plan {
    /// Where the finished tool stands inside every sandbox.
    pub fn place(&self) -> BoxPath {
        place(&self.name, &self.version)
    }

    /// `name version`, for people.
    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// The directories of this tool that belong on PATH, in the order of its binaries, each once.
    pub fn search(&self) -> Vec<BoxPath> {
        let mut found: Vec<BoxPath> = Vec::new();
        for binary in &self.provides.binaries {
            let directory = match binary.parent() {
                Some(parent) => self.place().join(parent.as_path()),
                None => self.place(),
            };
            if !found.contains(&directory) {
                found.push(directory);
            }
        }
        found
    }

    /// Whether a step compiles something: such a plan gets more time and room.
    pub fn builds(&self) -> bool {
        self.steps.iter().any(Step::builds)
    }

    /// This plan and all below it, dependencies before dependents, each different plan once.
    pub fn leaves_first(&self) -> Vec<&Self> {
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        self.visit(&mut seen, &mut found);
        found
    }

    fn visit<'a>(&'a self, seen: &mut BTreeSet<PlanDigest>, found: &mut Vec<&'a Self>) {
        if seen.insert(self.digest()) {
            self.dependencies.iter().for_each(|dependency| dependency.visit(seen, found));
            found.push(self);
        }
    }

    /// Reads a plan and checks all of it, dependencies too.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let plan: Self = serde_json::from_str(text).map_err(PlanError::Json)?;
        plan.check()?;
        Ok(plan)
    }

    /// The plan as people and files have it: indented, with a line end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a plan has only keys that are text");
        text.push('\n');
        text
    }
}

/// Where a tool stands inside every sandbox.
pub fn place(name: &ToolName, version: &ToolVersion) -> BoxPath {
    BoxPath::new(TOOLS).expect("absolute").join(format!("{name}-{version}"))
}

#[cfg(test)]
mod tests;
