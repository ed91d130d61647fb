//! The workshop of this user, and the tools that a sandbox asks for.

use std::time::Duration;

use sandtable_app::config::Loaded;
use sandtable_sandbox::engine::oci::image::present;
use sandtable_sandbox::facts::MachineFacts;
use sandtable_sandbox::host::Host;
use sandtable_sandbox::model::image::{Pull, ResolvedImage};
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::resolved::Identity;
use sandtable_sandbox::model::setting::Setting;
use sandtable_sandbox::model::spec::Spec;
use sandtable_sandbox::model::tool::{ProvidedDep, ToolRequest};
use sandtable_sandbox::resolve::{self, Engaged};
use sandtable_tools::build::{self as tools, BuildRoot, DepsMode, Failures, Workshop};
use sandtable_tools::builtin;
use sandtable_tools::consent::{Consents, Question};
use sandtable_tools::depot::{Depot, Receipt};
use sandtable_tools::fetch::{CLIENTS, Clients};
use sandtable_tools::plan::Plan;

use super::watch::Told;
use super::which::{ToolError, builtin_plan, libc_here};
use crate::app::App;
use crate::error::CliError;

/// How tools are to be made.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    pub(super) root: BuildRoot,
    pub(super) deps: DepsMode,
    pub(super) timeout: Option<Duration>,
    pub(super) failures: Failures,
}

impl Default for Manner {
    fn default() -> Self {
        Self { root: BuildRoot::Machine, deps: DepsMode::Store, timeout: None, failures: Failures::Removed }
    }
}

/// Where this user's tools are.
pub(super) fn depot(app: &App) -> Result<Depot, CliError> {
    Ok(Depot::new(place(app)?))
}

fn place(app: &App) -> Result<HostPath, CliError> {
    let data = app.environment.data()?;
    // What is mounted is looked at by its real path, so it is made under it as well.
    let real = fs_err::canonicalize(data.as_path()).ok().and_then(|real| HostPath::new(real).ok());
    Ok(real.unwrap_or(data).join("tools"))
}

pub(super) fn workshop(app: &App, manner: Manner) -> Result<Workshop, CliError> {
    workshop_for(app, manner, &app.environment.host()?)
}

/// The same for a sandbox: nothing of its source works for us.
fn workshop_of(app: &App, spec: &Spec) -> Result<Workshop, CliError> {
    workshop_for(app, Manner::default(), &app.host_of(spec)?)
}

fn workshop_for(app: &App, manner: Manner, host: &Host) -> Result<Workshop, CliError> {
    let client = |name| Some((name, HostPath::new(resolve::helper(name, host, &MachineFacts)?).ok()?));
    let programs = CLIENTS.into_iter().filter_map(client).collect();
    Ok(Workshop {
        depot: place(app)?,
        clients: Clients { programs, environment: resolve::helper_environment(host, &MachineFacts) },
        root: manner.root,
        deps: manner.deps,
        identity: Identity { uid: host.uid, gid: host.gid },
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        timeout: manner.timeout,
        failures: manner.failures,
    })
}

/// The plan of a tool that a sandbox asks for: one that comes with the program, or one of this user's own that was installed
/// and consented to. Of several versions of the latter the newest one made is meant.
fn plan_of(app: &App, request: &ToolRequest) -> Result<Plan, CliError> {
    if builtin::recipes().iter().any(|recipe| recipe.name == request.name) {
        return builtin_plan(request, libc_here());
    }
    let depot = depot(app)?;
    let consents = Consents::new(app.environment.data()?.as_path());
    let mut found = depot.list().map_err(ToolError::from)?;
    found.retain(|receipt| receipt.name == request.name && request.accepts(&receipt.version));
    found.sort_by_key(|receipt| std::cmp::Reverse(receipt.made_at));
    for receipt in &found {
        if consents.has(receipt.plan).map_err(ToolError::from)?
            && let Some(plan) = depot.plan(receipt)
            // One that was made on an image may be for another C library.
            && plan.platform.libc == libc_here()
        {
            return Ok(plan);
        }
    }
    // Says which tools there are.
    builtin_plan(request, libc_here())
}

/// Makes what a sandbox asks for and is not there yet. That is done natively: a tool is made on an image when somebody
/// says so, with `tool install --engine`.
pub(crate) fn prepared(app: &App, loaded: &Loaded) -> Result<(), CliError> {
    if loaded.output.dry_run.value || loaded.spec.tools.is_empty() {
        return Ok(());
    }
    let workshop = workshop_of(app, &loaded.spec)?;
    let image = Image::of(app, &loaded.spec)?;
    for Setting { value: request, .. } in &loaded.spec.tools {
        if found_on(app, image.as_ref(), request)?.is_some() {
            continue;
        }
        let plan = plan_of(app, request)?;
        if tools::find(&workshop, &plan).map_err(ToolError::from)?.is_none() {
            let told = Told::new(app.ui, &plan);
            tools::provide(&workshop, &plan, &told).map_err(ToolError::from)?;
            told.over();
        }
    }
    Ok(())
}

/// The tools that a sandbox asks for, each with what it needs: those that were made on its image, else those that were
/// made natively.
pub(crate) fn kept(app: &App, spec: &Spec) -> Result<Vec<ProvidedDep>, CliError> {
    if spec.tools.is_empty() {
        return Ok(Vec::new());
    }
    let workshop = workshop_of(app, spec)?;
    let image = Image::of(app, spec)?;
    let mut found: Vec<ProvidedDep> = Vec::new();
    for Setting { value: request, .. } in &spec.tools {
        let tools = match found_on(app, image.as_ref(), request)? {
            Some(tools) => Some(tools),
            None => tools::find(&workshop, &plan_of(app, request)?).map_err(ToolError::from)?,
        };
        for tool in tools.ok_or_else(|| ToolError::NotKept(request.clone()))? {
            if !found.contains(&tool) {
                found.push(tool);
            }
        }
    }
    Ok(found)
}

/// The image that a sandbox will stand on, and what was made on it.
struct Image {
    id: String,
    made: Vec<Receipt>,
}

impl Image {
    /// Nothing if no tool was made on it, or if it is yet to be fetched. An engine that does not answer says so when the
    /// sandbox is made.
    fn of(app: &App, spec: &Spec) -> Result<Option<Self>, CliError> {
        let mut made = depot(app)?.list().map_err(ToolError::from)?;
        made.retain(|receipt| receipt.made_on.is_some());
        if made.is_empty() || spec.container.pull.value == Pull::Always {
            return Ok(None);
        }
        let engaged = resolve::engaged(spec, &app.host_of(spec)?, &MachineFacts);
        let Ok(Some(Engaged { container, image: ResolvedImage::Named { name, .. }, .. })) = engaged else {
            return Ok(None);
        };
        let Ok(Some(id)) = present(&container, &name) else { return Ok(None) };
        made.retain(|receipt| receipt.made_on.as_ref().is_some_and(|on| on.is_on(&id)));
        made.sort_by_key(|receipt| std::cmp::Reverse(receipt.made_at));
        Ok((!made.is_empty()).then_some(Self { id, made }))
    }
}

/// What was made on the image for such a request, built in or consented to; the newest of several versions.
fn found_on(
    app: &App,
    image: Option<&Image>,
    request: &ToolRequest,
) -> Result<Option<Vec<ProvidedDep>>, CliError> {
    let Some(image) = image else { return Ok(None) };
    let asked = |receipt: &&Receipt| receipt.name == request.name && request.accepts(&receipt.version);
    let (depot, workshop) = (depot(app)?, workshop(app, Manner::default())?);
    let consents = Consents::new(app.environment.data()?.as_path());
    for receipt in image.made.iter().filter(asked) {
        let Some(plan) = depot.plan(receipt) else { continue };
        let trusted = match Question::about(&plan) {
            None => true,
            Some(question) => consents.has(question.digest).map_err(ToolError::from)?,
        };
        if !trusted {
            continue;
        }
        if let Some(tools) = tools::find_on_image(&workshop, &image.id, &plan).map_err(ToolError::from)? {
            return Ok(Some(tools));
        }
    }
    Ok(None)
}
