//! From a recipe to its plan: dependencies found, conditions decided, composites taken apart, everything embedded.
//!
//! This looks at nothing but recipes. A dependency that nobody provides is an error that names the whole chain, here and now, and
//! never a tool that turns out to be missing in the middle of a build. What an action implies comes from the built-in set alone,
//! and no local recipe may carry the name of a built-in one, so nobody can slip another `cmake` under a build.

mod error;
mod expand;
mod implicit;

use std::collections::{BTreeMap, BTreeSet};

use sandtable_sandbox::model::tool::ToolRequest;

pub use self::error::{AssembleError, Chain};
pub use self::implicit::implies;
use super::plan::check::{DEEPEST, MOST_PLANS};
use super::plan::{Download, FORMAT, Plan, PlanPlatform, Provides, Step, ToolName, VerifyCommand};
use super::recipe::{Recipe, RecipeStep, RecipeVerify};

/// The recipes there are.
#[derive(Clone, Copy, Debug)]
pub struct Shelf<'a> {
    /// Those that come with the program; of several with one name the first is meant unless a version is asked for.
    pub trusted: &'a [Recipe],
    /// Those that somebody brought. None of them is called like a trusted one.
    local: &'a [Recipe],
}

impl<'a> Shelf<'a> {
    /// Puts recipes together. A local one that is called like a trusted one is refused.
    pub fn new(trusted: &'a [Recipe], local: &'a [Recipe]) -> Result<Self, AssembleError> {
        for (index, recipe) in local.iter().enumerate() {
            if trusted.iter().any(|other| other.name == recipe.name) {
                return Err(AssembleError::Shadows { name: recipe.name.clone() });
            }
            if local[..index].iter().any(|other| other.name == recipe.name) {
                return Err(AssembleError::Twice { name: recipe.name.clone() });
            }
        }
        Ok(Self { trusted, local })
    }

    /// The recipe that is asked for by a person.
    pub fn find(&self, request: &ToolRequest) -> Result<&'a Recipe, AssembleError> {
        self.lookup(request, Trust::Any)
            .ok_or_else(|| AssembleError::Unknown { request: request.clone(), known: self.known(request) })
    }

    /// The plan of a recipe there.
    pub fn plan(&self, recipe: &Recipe, target: PlanPlatform) -> Result<Plan, AssembleError> {
        let mut work = Work { shelf: *self, target, chain: Vec::new(), done: BTreeMap::new(), plans: 0 };
        let plan = work.plan(recipe)?;
        plan.check()
            .map_err(|error| AssembleError::Unsound { chain: Chain(vec![recipe.name.clone()]), error })?;
        Ok(plan)
    }

    fn lookup(&self, request: &ToolRequest, trust: Trust) -> Option<&'a Recipe> {
        let fits = |recipe: &&Recipe| recipe.name == request.name && request.accepts(&recipe.version);
        let local = if trust == Trust::Any { self.local } else { &[] };
        self.trusted.iter().chain(local).find(fits)
    }

    /// The versions there are of a tool, or else the names of all tools.
    fn known(&self, request: &ToolRequest) -> Vec<String> {
        let all = || self.trusted.iter().chain(self.local);
        let versions: Vec<String> = all()
            .filter(|recipe| recipe.name == request.name)
            .map(|recipe| recipe.version.to_string())
            .collect();
        if versions.is_empty() { all().map(|recipe| recipe.name.to_string()).collect() } else { versions }
    }
}

/// Who may provide a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Builtin,
    Any,
}

/// One dependency of a recipe.
struct Wanted {
    request: ToolRequest,
    trust: Trust,
}

struct Work<'a> {
    shelf: Shelf<'a>,
    target: PlanPlatform,
    /// From the recipe that was asked for to the one that is being worked on.
    chain: Vec<ToolName>,
    done: BTreeMap<(ToolName, String), Plan>,
    plans: usize,
}

impl Work<'_> {
    fn chain(&self) -> Chain {
        Chain(self.chain.clone())
    }

    fn plan(&mut self, recipe: &Recipe) -> Result<Plan, AssembleError> {
        let again = self.chain.contains(&recipe.name);
        self.chain.push(recipe.name.clone());
        if again {
            return Err(AssembleError::Cycle { chain: self.chain() });
        }
        if self.chain.len() > DEEPEST {
            return Err(AssembleError::Deep { chain: self.chain() });
        }
        self.plans += 1;
        if self.plans > MOST_PLANS {
            return Err(AssembleError::Many { chain: self.chain() });
        }
        let target = self.target;
        let steps: Vec<&RecipeStep> = recipe.steps.iter().filter(|step| step.when.applies(&target)).collect();
        let wanted = wanted(recipe, &steps, target);
        let mut dependencies = Vec::new();
        for wanted in wanted {
            dependencies.push(self.dependency(&wanted)?);
        }
        let plan = self.alone(recipe, &steps, dependencies)?;
        self.chain.pop();
        Ok(plan)
    }

    fn dependency(&mut self, wanted: &Wanted) -> Result<Plan, AssembleError> {
        let Some(found) = self.shelf.lookup(&wanted.request, wanted.trust) else {
            let mut chain = self.chain();
            chain.0.push(wanted.request.name.clone());
            let known = self.shelf.known(&wanted.request);
            return Err(AssembleError::Missing { chain, request: wanted.request.clone(), known });
        };
        let id = (found.name.clone(), found.version.to_string());
        if let Some(plan) = self.done.get(&id).filter(|_| !self.chain.contains(&found.name)) {
            return Ok(plan.clone());
        }
        let plan = self.plan(found)?;
        self.done.insert(id, plan.clone());
        Ok(plan)
    }

    /// Everything of a plan but its dependencies, which are there already.
    fn alone(
        &self,
        recipe: &Recipe,
        steps: &[&RecipeStep],
        dependencies: Vec<Plan>,
    ) -> Result<Plan, AssembleError> {
        let target = self.target;
        let mut lowered = Vec::new();
        for step in steps {
            let lower = step.action.lower(target.linux_family).map_err(|error| AssembleError::Step {
                chain: self.chain(),
                place: step.place,
                error,
            })?;
            lowered.extend(lower);
        }
        let used: BTreeSet<_> = lowered.iter().flat_map(Step::files).cloned().collect();
        let here = recipe.downloads.iter().filter(|download| download.when.applies(&target));
        let downloads: Vec<Download> = here
            .map(|download| download.download.clone())
            .filter(|download| used.contains(&download.file))
            .collect();
        if downloads.is_empty() && !used.is_empty() || lowered.is_empty() {
            return Err(AssembleError::Nothing { chain: self.chain(), target });
        }
        let family =
            names_family(recipe) || dependencies.iter().any(|plan| plan.platform.linux_family.is_some());
        let linux_family = if family { target.linux_family } else { None };
        let needs = needs(recipe, steps, &dependencies, target);
        let mut plan = Plan {
            format: FORMAT,
            name: recipe.name.clone(),
            version: recipe.version.clone(),
            platform: PlanPlatform { linux_family, ..target },
            downloads,
            steps: lowered,
            verify: recipe.verify.as_ref().map(verify).unwrap_or_default(),
            provides: Provides {
                binaries: recipe.provides.binaries.clone(),
                env: recipe.provides.env.clone(),
                needs,
            },
            dependencies,
        };
        expand::plan(&mut plan).map_err(|error| AssembleError::Expand { chain: self.chain(), error })?;
        Ok(plan)
    }
}

/// The dependencies of a recipe whose steps were chosen: each name once, in the order of their names.
fn wanted(recipe: &Recipe, steps: &[&RecipeStep], target: PlanPlatform) -> Vec<Wanted> {
    let mut found: BTreeMap<ToolName, Wanted> = BTreeMap::new();
    let mut add = |request: ToolRequest, trust: Trust| {
        if request.name == recipe.name {
            return;
        }
        let name = request.name.clone();
        let wanted = found.entry(name).or_insert(Wanted { request: request.clone(), trust });
        // A version that somebody names is more than none; who may provide it only gets narrower.
        wanted.request.version = wanted.request.version.take().or(request.version);
        if trust == Trust::Builtin {
            wanted.trust = trust;
        }
    };
    if let Some(instead) = &recipe.dependencies {
        for request in instead {
            add(request.clone(), Trust::Any);
        }
    } else {
        for step in steps {
            match &step.dependencies {
                Some(instead) => instead.iter().for_each(|request| add(request.clone(), Trust::Any)),
                None => implicit::of(step.action.word(), target.os)
                    .flat_map(|rule| &rule.tools)
                    .for_each(|name| add(ToolRequest { name: name.clone(), version: None }, Trust::Builtin)),
            }
            step.extra_dependencies.iter().for_each(|request| add(request.clone(), Trust::Any));
        }
    }
    recipe.extra_dependencies.iter().for_each(|request| add(request.clone(), Trust::Any));
    found.into_values().collect()
}

/// Which dependencies are needed by whoever uses the tool.
fn needs(
    recipe: &Recipe,
    steps: &[&RecipeStep],
    dependencies: &[Plan],
    target: PlanPlatform,
) -> BTreeSet<ToolName> {
    let implied = steps.iter().flat_map(|step| implicit::of(step.action.word(), target.os));
    let implied = implied.flat_map(|rule| &rule.needs);
    let implied = implied.filter(|name| dependencies.iter().any(|plan| plan.name == **name));
    recipe.provides.needs.iter().chain(implied).cloned().collect()
}

/// Whether the family decides about anything in a recipe.
fn names_family(recipe: &Recipe) -> bool {
    let steps = recipe.steps.iter().any(|step| step.when.names_family() || step.action.names_family());
    steps || recipe.downloads.iter().any(|download| download.when.names_family())
}

fn verify(recipe: &RecipeVerify) -> Vec<VerifyCommand> {
    let patterns = recipe.pattern.iter().chain(&recipe.patterns).cloned().collect();
    let first = VerifyCommand { command: recipe.command.clone(), patterns, exit_code: recipe.exit_code };
    let more = recipe.additional.iter().map(|more| VerifyCommand {
        command: more.command.clone(),
        patterns: more.pattern.iter().cloned().collect(),
        exit_code: 0,
    });
    std::iter::once(first).chain(more).collect()
}

#[cfg(test)]
mod tests;
