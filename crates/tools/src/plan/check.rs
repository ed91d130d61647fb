//! What a plan must hold beyond its types. A plan may come from a file that anybody wrote; all of this is checked before
//! the first byte is fetched, and everything that is wrong is said at once.

use std::collections::BTreeSet;
use std::fmt;

use super::download::{Download, Registry};
use super::variable::may_be_set;
use super::{FORMAT, Plan, Step};

/// How deep dependencies may be nested.
pub const DEEPEST: usize = 8;
/// How many plans one plan may hold, itself included.
pub const MOST_PLANS: usize = 100;
/// How many files one plan may download, without its dependencies.
pub const MOST_DOWNLOADS: usize = 2000;
/// How many steps one plan may have, without its dependencies.
pub const MOST_STEPS: usize = 500;

/// Why a plan was refused.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("this is not a plan")]
    Json(#[source] serde_json::Error),
    #[error("the plan is not sound: {0}")]
    Unsound(Faults),
}

/// Everything that is wrong with a plan, each with the chain of tools that leads there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(pub Vec<String>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl Plan {
    /// Checks this plan and all below it.
    pub fn check(&self) -> Result<(), PlanError> {
        let mut search = Search { faults: Vec::new(), plans: 0, chain: Vec::new() };
        search.plan(self);
        if search.faults.is_empty() { Ok(()) } else { Err(PlanError::Unsound(Faults(search.faults))) }
    }
}

struct Search<'a> {
    faults: Vec<String>,
    plans: usize,
    chain: Vec<&'a Plan>,
}

impl<'a> Search<'a> {
    fn fault(&mut self, what: impl fmt::Display) {
        let chain: Vec<&str> = self.chain.iter().map(|plan| plan.name.as_str()).collect();
        self.faults.push(format!("{}: {what}", chain.join(" → ")));
    }

    fn plan(&mut self, plan: &'a Plan) {
        self.plans += 1;
        self.chain.push(plan);
        if self.plans == MOST_PLANS + 1 {
            self.fault(format!("more than {MOST_PLANS} plans in one"));
        }
        if self.plans <= MOST_PLANS && self.chain.len() <= DEEPEST {
            self.alone(plan);
            self.relations(plan);
            plan.dependencies.iter().for_each(|dependency| self.plan(dependency));
        } else if self.chain.len() == DEEPEST + 1 {
            self.fault(format!("dependencies are nested deeper than {DEEPEST}"));
        }
        self.chain.pop();
    }

    fn alone(&mut self, plan: &Plan) {
        if plan.format != FORMAT {
            self.fault(format!("format {} is not known here, only {FORMAT}", plan.format));
        }
        if plan.downloads.len() > MOST_DOWNLOADS || plan.steps.len() > MOST_STEPS {
            self.fault("too many downloads or steps");
        }
        let mut files = BTreeSet::new();
        for download in &plan.downloads {
            if !files.insert(&download.file) {
                self.fault(format!("two downloads are called `{}`", download.file));
            }
            if let Some(why) = wrong_download(download) {
                self.fault(format!("download `{}` {why}", download.file));
            }
        }
        let missing = plan.steps.iter().flat_map(Step::files).filter(|file| !files.contains(file));
        for file in missing.collect::<BTreeSet<_>>() {
            self.fault(format!("a step takes `{file}`, which is no download of the plan"));
        }
        let variables = plan.provides.env.iter().filter(|(name, value)| !may_be_set(name, value));
        for (name, _) in variables {
            self.fault(format!("`{}` cannot be a variable", name.escape_debug()));
        }
        for step in &plan.steps {
            if let Some(why) = wrong_step(plan, step) {
                self.fault(format!("step `{}` {why}", step.action()));
            }
        }
        if plan.verify.iter().any(|verify| verify.command.is_empty()) {
            self.fault("a verification has no command");
        }
    }

    fn relations(&mut self, plan: &Plan) {
        let mut names = BTreeSet::new();
        for dependency in &plan.dependencies {
            if !names.insert(&dependency.name) {
                self.fault(format!("`{}` is a dependency twice", dependency.name));
            }
            if !dependency.platform.fits(&plan.platform) {
                self.fault(format!("`{}` is for {}", dependency.name, dependency.platform));
            }
            if self.chain.iter().any(|above| above.name == dependency.name) {
                self.fault(format!("`{}` depends on itself", dependency.name));
            }
        }
        for name in plan.provides.needs.iter().filter(|name| !names.contains(name)) {
            self.fault(format!("needs `{name}`, which is no dependency"));
        }
    }
}

fn wrong_download(download: &Download) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_+.~:".contains(c);
    let version = download.version.as_str();
    if version.is_empty() || version.starts_with('-') || !version.chars().all(plain) {
        return Some("has no plain version");
    }
    match (download.source, download.url.as_deref()) {
        (Registry::Https, Some(url)) if is_https(url) => None,
        (Registry::Https, _) => Some("needs an https address without user, space or fragment"),
        (_, Some(_)) => Some("comes from a registry and has an address"),
        (_, None) => None,
    }
}

fn is_https(url: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && !"\"'<>\\^`{|}#@".contains(c);
    url.strip_prefix("https://")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()) && rest.chars().all(plain))
}

fn wrong_step(plan: &Plan, step: &Step) -> Option<String> {
    match step {
        Step::RunCommand { command, .. } if command.is_empty() => Some("has no command".to_owned()),
        Step::LinkDependencies { dependency, .. } => {
            let known = plan.dependencies.iter().any(|plan| plan.name == *dependency);
            (!known).then(|| format!("links `{dependency}`, which is no dependency"))
        }
        Step::SetEnv { vars } | Step::RunCommand { env: vars, .. } => {
            let bad = vars.iter().find(|(name, value)| !may_be_set(name, value));
            bad.map(|(name, _)| format!("sets `{}`, which cannot be a variable", name.escape_debug()))
        }
        Step::SystemPackages { packages, .. } => {
            let letters = |c: char| c.is_ascii_alphanumeric() || "-_+.".contains(c);
            let fine = |name: &String| {
                name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(letters)
            };
            let bad = packages.iter().find(|name| !fine(name));
            bad.map(|name| format!("names `{}`, which is no package", name.escape_debug()))
        }
        _ => None,
    }
}
