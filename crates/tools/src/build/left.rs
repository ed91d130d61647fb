//! The place of a build that failed and was to stay: the same sandbox again, for somebody who wants to look around in it.
//!
//! What is done there changes that place and nothing else. The next build of the same plan begins with an empty one.

use fs_err as fs;
use sandtable_sandbox::model::observe::Observer;
use sandtable_sandbox::model::resolved::{ResolvedSpec, Variable};
use sandtable_sandbox::model::setting::Origin;
use sandtable_store::lock::FileLock;

use super::error::Error;
use super::make::Making;
use super::{Work, Workshop};
use crate::depot::Workplace;
use crate::execute::{Action, Command, Lowering};
use crate::plan::Plan;

/// What a failed build left.
#[derive(Debug)]
pub struct Left {
    /// The sandbox of its last step: the same files, tools, variables and directory, and no network either.
    pub resolved: ResolvedSpec,
    /// The last step that was begun, counted from one, and its action.
    pub step: usize,
    pub action: &'static str,
    /// What that step runs, for people; nothing if it runs nothing.
    pub commands: Vec<String>,
    /// Nobody builds there meanwhile.
    _held: FileLock,
}

/// What the last build of `plan` left, if it failed and its place was kept. Its dependencies are made if they are not there.
pub fn left(workshop: &Workshop, plan: &Plan, observer: &dyn Observer) -> Result<Option<Left>, Error> {
    let root = workshop.root.seen()?;
    let mut work = Work::new((workshop, &root), plan, observer);
    let Some((workplace, held)) = work.depot.left(work.key(plan))? else { return Ok(None) };
    let Some(step) = begun(&workplace).filter(|step| (1..=plan.steps.len()).contains(step)) else {
        return Ok(None);
    };
    work.fetch(plan)?;
    let dependencies = work.declared(plan)?;
    let making = Making {
        workshop,
        root: &root,
        cache: &work.cache,
        plan,
        dependencies: &dependencies,
        workplace: &workplace,
        begun: &|_, _| {},
    };
    let mut resolved = making.resolved().map_err(|error| Error::Sandbox(Box::new(error)))?;
    let mut lowering = Lowering::new(plan, &dependencies, workshop.jobs);
    let mut last = Vec::new();
    for (index, step) in plan.steps.iter().take(step).enumerate() {
        last = lowering.step(index, step);
    }
    let commands: Vec<&Command> = last
        .iter()
        .filter_map(|action| match action {
            Action::Run(command) => Some(command),
            _ => None,
        })
        .collect();
    let environment = match commands.first() {
        Some(command) => {
            resolved.directory = command.directory.clone();
            command.environment.clone()
        }
        None => lowering.environment(),
    };
    let variable = |(name, value)| (name, Variable::open(value, Origin::Default));
    resolved.environment = environment.into_iter().map(variable).collect();
    let action = plan.steps[step - 1].action();
    let commands = commands.into_iter().map(Command::shown).collect();
    Ok(Some(Left { resolved, step, action, commands, _held: held }))
}

/// Writes down which step is begun.
pub(super) fn begin(workplace: &Workplace, step: usize) {
    // It is a help for people, and no reason to fail.
    let _unknown = fs::write(workplace.partial.join(STEP).as_path(), step.to_string());
}

/// In the place of a build, where no step can write.
const STEP: &str = "step";

fn begun(workplace: &Workplace) -> Option<usize> {
    fs::read_to_string(workplace.partial.join(STEP).as_path()).ok()?.trim().parse().ok()
}
