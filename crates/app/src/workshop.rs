//! The workshop of this user, and the tools that a sandbox asks for.

use std::path::Path;
use std::time::Duration;

use sandtable_sandbox::engine::oci::image::present;
use sandtable_sandbox::facts::MachineFacts;
use sandtable_sandbox::host::Host;
use sandtable_sandbox::model::image::{Pull, ResolvedImage};
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::platform::Os;
use sandtable_sandbox::model::resolved::Identity;
use sandtable_sandbox::model::setting::Setting;
use sandtable_sandbox::model::spec::Spec;
use sandtable_sandbox::model::tool::{ProvidedDep, ToolRequest};
use sandtable_sandbox::resolve::{self, Engaged, ResolveError};
use sandtable_tools::assemble::{AssembleError, Shelf};
use sandtable_tools::build::{self as tools, BuildRoot, DepsMode, Failures, Workshop};
use sandtable_tools::builtin;
use sandtable_tools::consent::{ConsentError, Consents, Question};
use sandtable_tools::depot::{Depot, DepotError, Receipt};
use sandtable_tools::fetch::{CLIENTS, Clients};
use sandtable_tools::plan::{Arch, Libc, Plan, PlanPlatform};

use crate::env::{Environment, EnvironmentError};

/// Why a tool that a sandbox asks for cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ToolChoiceError {
    #[error("there is no plan")]
    Assemble(#[from] AssembleError),
    #[error(transparent)]
    Machine(#[from] UnknownMachine),
    #[error(transparent)]
    Consent(#[from] ConsentError),
    #[error(transparent)]
    Make(#[from] tools::Error),
    #[error(transparent)]
    Depot(#[from] DepotError),
    #[error("tool `{0}` is not kept here yet")]
    NotKept(ToolRequest),
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The tools would be fetched and made in the middle of what is worked on.
    #[error(transparent)]
    Place(#[from] ResolveError),
}

/// No tool is made for this processor.
#[derive(Debug, thiserror::Error)]
#[error("this machine's processor is not known: `{0}`")]
pub struct UnknownMachine(&'static str);

/// How tools are to be made.
#[derive(Clone, Debug)]
pub struct Manner {
    pub root: BuildRoot,
    pub deps: DepsMode,
    pub timeout: Option<Duration>,
    pub failures: Failures,
}

impl Default for Manner {
    fn default() -> Self {
        Self { root: BuildRoot::Machine, deps: DepsMode::Store, timeout: None, failures: Failures::Removed }
    }
}

/// Where this user's tools are.
pub fn depot(environment: &Environment) -> Result<Depot, ToolChoiceError> {
    Ok(Depot::new(place(environment)?))
}

fn place(environment: &Environment) -> Result<HostPath, ToolChoiceError> {
    let data = environment.data()?;
    // What is mounted is looked at by its real path, so it is made under it as well.
    let real = fs_err::canonicalize(data.as_path()).ok().and_then(|real| HostPath::new(real).ok());
    Ok(real.unwrap_or(data).join("tools"))
}

pub fn workshop(environment: &Environment, manner: Manner) -> Result<Workshop, ToolChoiceError> {
    workshop_for(environment, manner, &environment.host()?)
}

/// The same for a sandbox: nothing of its source works for us.
pub fn workshop_of(environment: &Environment, spec: &Spec) -> Result<Workshop, ToolChoiceError> {
    workshop_for(environment, Manner::default(), &environment.host_for(spec)?)
}

fn workshop_for(environment: &Environment, manner: Manner, host: &Host) -> Result<Workshop, ToolChoiceError> {
    resolve::data_is_apart(host, &MachineFacts)?;
    let client = |name| Some((name, HostPath::new(resolve::helper(name, host, &MachineFacts)?).ok()?));
    let programs = CLIENTS.into_iter().filter_map(client).collect();
    Ok(Workshop {
        depot: place(environment)?,
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
fn plan_of(environment: &Environment, request: &ToolRequest) -> Result<Plan, ToolChoiceError> {
    if builtin::recipes().iter().any(|recipe| recipe.name == request.name) {
        return builtin_plan(request, libc_here());
    }
    let depot = depot(environment)?;
    let consents = Consents::new(environment.data()?.as_path());
    let mut found = depot.list()?;
    found.retain(|receipt| receipt.name == request.name && request.accepts(&receipt.version));
    found.sort_by_key(|receipt| std::cmp::Reverse(receipt.made_at));
    for receipt in &found {
        if consents.has(receipt.plan)?
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

/// The plans of what a sandbox asks for and is not there yet, for [`provide`](tools::provide) with the workshop. A tool is
/// made natively here; it is made on an image when somebody says so.
pub fn missing(environment: &Environment, spec: &Spec) -> Result<Vec<Plan>, ToolChoiceError> {
    if spec.tools.is_empty() {
        return Ok(Vec::new());
    }
    let workshop = workshop_of(environment, spec)?;
    let image = Image::of(environment, spec)?;
    let mut missing = Vec::new();
    for Setting { value: request, .. } in &spec.tools {
        if found_on(environment, image.as_ref(), request)?.is_some() {
            continue;
        }
        let plan = plan_of(environment, request)?;
        if tools::find(&workshop, &plan)?.is_none() {
            missing.push(plan);
        }
    }
    Ok(missing)
}

/// The tools that a sandbox asks for, each with what it needs: those that were made on its image, else those that were
/// made natively.
pub fn kept(environment: &Environment, spec: &Spec) -> Result<Vec<ProvidedDep>, ToolChoiceError> {
    if spec.tools.is_empty() {
        return Ok(Vec::new());
    }
    let workshop = workshop_of(environment, spec)?;
    let image = Image::of(environment, spec)?;
    let mut found: Vec<ProvidedDep> = Vec::new();
    for Setting { value: request, .. } in &spec.tools {
        let tools = match found_on(environment, image.as_ref(), request)? {
            Some(tools) => Some(tools),
            None => tools::find(&workshop, &plan_of(environment, request)?)?,
        };
        for tool in tools.ok_or_else(|| ToolChoiceError::NotKept(request.clone()))? {
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
    fn of(environment: &Environment, spec: &Spec) -> Result<Option<Self>, ToolChoiceError> {
        let mut made = depot(environment)?.list()?;
        made.retain(|receipt| receipt.made_on.is_some());
        if made.is_empty() || spec.container.pull.value == Pull::Always {
            return Ok(None);
        }
        let engaged = resolve::engaged(spec, &environment.host_for(spec)?, &MachineFacts);
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
    environment: &Environment,
    image: Option<&Image>,
    request: &ToolRequest,
) -> Result<Option<Vec<ProvidedDep>>, ToolChoiceError> {
    let Some(image) = image else { return Ok(None) };
    let asked = |receipt: &&Receipt| receipt.name == request.name && request.accepts(&receipt.version);
    let (depot, workshop) = (depot(environment)?, workshop(environment, Manner::default())?);
    let consents = Consents::new(environment.data()?.as_path());
    for receipt in image.made.iter().filter(asked) {
        let Some(plan) = depot.plan(receipt) else { continue };
        let trusted = match Question::about(&plan) {
            None => true,
            Some(question) => consents.has(question.digest)?,
        };
        if !trusted {
            continue;
        }
        if let Some(tools) = tools::find_on_image(&workshop, &image.id, &plan)? {
            return Ok(Some(tools));
        }
    }
    Ok(None)
}

/// The plan of a built-in tool for this machine.
pub fn builtin_plan(request: &ToolRequest, libc: Libc) -> Result<Plan, ToolChoiceError> {
    let shelf = Shelf::new(builtin::recipes(), &[])?;
    let platform = PlanPlatform { os: Os::Linux, arch: arch_here()?, libc, linux_family: None };
    Ok(shelf.plan(shelf.find(request)?, platform)?)
}

/// The processor of this machine.
pub fn arch_here() -> Result<Arch, UnknownMachine> {
    let name = std::env::consts::ARCH;
    name.parse().map_err(|_| UnknownMachine(name))
}

/// The C library of this machine, which is what a sandbox without an image shows.
pub fn libc_here() -> Libc {
    let loader = format!("/lib/ld-musl-{}.so.1", std::env::consts::ARCH);
    let gnu = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    // A machine may have both; then the other one is a guest.
    if Path::new(&loader).exists() && !gnu.iter().any(|path| Path::new(path).exists()) {
        Libc::Musl
    } else {
        Libc::Glibc
    }
}
