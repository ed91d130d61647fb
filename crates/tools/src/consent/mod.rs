//! Consent to a plan that did not come with the program.
//!
//! Asked once for each plan, by its digest: that covers every file, every step and every dependency, so a change of any of
//! them is another question and a new comment in a recipe is none. What is asked lists everything a person needs to decide:
//! what is fetched from where and how large it is, who vouches for it, what runs and what stays.
//!
//! A plan counts as built in if the built-in recipes make exactly this plan for its platform. What a file says about itself
//! counts for nothing.

use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use sandtable_sandbox::model::choice::choice;
use serde::Serialize;

use super::assemble::Shelf;
use super::builtin;
use super::plan::{Plan, PlanDigest, Registry, ToolName, ToolVersion, obeyed};

choice! {
    /// Who vouches for a plan.
    Voucher { Builtin = "built-in", Foreign = "foreign" }
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    pub digest: PlanDigest,
    /// Dependencies first, the tool itself last.
    pub tools: Vec<Item>,
    /// Bytes of all files together, where their sizes are known.
    pub bytes: u64,
    /// Programs of the plan that are run inside: those that the recipe names itself.
    pub commands: Vec<String>,
    /// What the tools that do not come with the program set in every sandbox that has them.
    pub variables: Vec<Variable>,
}

/// One variable that a tool sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variable {
    pub name: String,
    pub value: String,
    /// What some program does because of it.
    pub obeyed: Option<&'static str>,
}

/// One tool of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    pub name: ToolName,
    pub version: ToolVersion,
    pub voucher: Voucher,
    pub files: Vec<ItemFile>,
}

/// One file that is fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemFile {
    pub source: Registry,
    /// The package, or the address where there is no registry.
    pub name: String,
    pub version: String,
    pub size: Option<u64>,
    pub sha256: String,
}

/// The consents of this user.
#[derive(Clone, Debug)]
pub struct Consents {
    directory: PathBuf,
}

/// Why consents cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("could not {what} `{}`", path.display())]
pub struct ConsentError {
    pub what: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl Question {
    /// What there is to ask about a plan; nothing if the built-in recipes make the same.
    pub fn about(plan: &Plan) -> Option<Self> {
        if voucher(plan) == Voucher::Builtin {
            return None;
        }
        let plans = plan.leaves_first();
        let foreign: Vec<&&Plan> = plans.iter().filter(|plan| voucher(plan) == Voucher::Foreign).collect();
        let commands = foreign.iter().flat_map(|plan| plan.steps.iter().filter_map(command)).collect();
        let variables = foreign.iter().flat_map(|plan| &plan.provides.env).map(variable).collect();
        let tools: Vec<Item> = plans.into_iter().map(item).collect();
        let bytes = tools.iter().flat_map(|item| &item.files).filter_map(|file| file.size).sum();
        Some(Self { digest: plan.digest(), tools, bytes, commands, variables })
    }
}

fn variable((name, value): (&String, &String)) -> Variable {
    Variable { name: name.clone(), value: value.clone(), obeyed: obeyed(name) }
}

impl Consents {
    /// Consents below our data directory. Nothing is made yet.
    pub fn new(data: &Path) -> Self {
        Self { directory: data.join("tool-consent") }
    }

    /// Whether somebody consented to exactly this plan.
    pub fn has(&self, digest: PlanDigest) -> Result<bool, ConsentError> {
        let path = self.path(digest);
        match fs_err::symlink_metadata(&path) {
            Ok(entry) => Ok(entry.is_file()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(ConsentError { what: "look at", path, source }),
        }
    }

    /// Records consent.
    pub fn give(&self, question: &Question) -> Result<(), ConsentError> {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| ConsentError { what, path, source }
        };
        let make = DirBuilder::new().recursive(true).mode(0o700).create(&self.directory);
        make.map_err(failed("make", &self.directory))?;
        let path = self.path(question.digest);
        let file = fs_err::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match file {
            Ok(mut file) => {
                let text = serde_json::to_string_pretty(question).expect("a question has only plain keys");
                file.write_all(text.as_bytes()).map_err(failed("write", &path))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(source) => Err(failed("make", &path)(source)),
        }
    }

    fn path(&self, digest: PlanDigest) -> PathBuf {
        self.directory.join(digest.to_string())
    }
}

/// Who vouches for this plan: its dependencies are judged one by one.
pub fn voucher(plan: &Plan) -> Voucher {
    let same = |recipe: &super::recipe::Recipe| {
        let shelf = Shelf::new(builtin::recipes(), &[]).ok()?;
        shelf.plan(recipe, plan.platform).ok().filter(|made| made == plan)
    };
    let mut candidates = builtin::recipes().iter().filter(|recipe| recipe.name == plan.name);
    if candidates.find_map(same).is_some() { Voucher::Builtin } else { Voucher::Foreign }
}

fn item(plan: &Plan) -> Item {
    let file = |download: &super::plan::Download| ItemFile {
        source: download.source,
        name: download.url.clone().unwrap_or_else(|| download.name.to_string()),
        version: download.version.clone(),
        size: download.size,
        sha256: download.sha256.to_string(),
    };
    Item {
        name: plan.name.clone(),
        version: plan.version.clone(),
        voucher: voucher(plan),
        files: plan.downloads.iter().map(file).collect(),
    }
}

fn command(step: &super::plan::Step) -> Option<String> {
    match step {
        super::plan::Step::RunCommand { command, .. } => Some(command.join(" ")),
        super::plan::Step::SystemPackages { manager, packages } => {
            Some(format!("{manager}, to install {} into a view of the root file system", packages.join(" ")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
