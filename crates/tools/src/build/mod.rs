//! From a plan to a tool that can be mounted: fetched, made in sandboxes, shown to work, kept.
//!
//! Dependencies come first, each in sandboxes of its own, native ones or containers of an image: no network, the base
//! programs of the root file system (an image shows all of its own), and
//! the tools that its plan declares, read-only. Limits and time hold for dependencies as for everything else, and the
//! end of a command is the end of all it started. What is there already is neither fetched nor made.

mod error;
mod files;
mod find;
mod fit;
mod image;
mod left;
mod make;
mod packages;
mod root;
mod rootfs;
mod spec;
mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sandtable_sandbox::model::choice::choice;
use sandtable_sandbox::model::observe::{Event, Observer, ToolPlace, ToolStep};
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::resolved::Identity;
use sandtable_sandbox::model::tool::ProvidedDep;
use sandtable_sandbox::random::random;
use sandtable_sandbox::session::Sandboxes;
use sandtable_store::remove::remove_tree;

pub use self::error::{Error, StepError};
pub use self::find::{find, find_on_image};
pub use self::fit::{ASK, answer};
pub use self::image::{BuildImage, ImageError, build_image};
pub use self::left::{Left, left};
pub use self::packages::PackagesError;
pub use self::root::BuildRoot;
pub use self::rootfs::{Rootfs, RootfsError, machine_release, rootfs};
pub use crate::depot::Failures;
use crate::depot::{Around, Depot, Origin, Wanted};
use crate::execute::VERSION;
use crate::fetch::{Cache, Clients, fetch};
use crate::plan::key::KeyContext;
use crate::plan::{Plan, PlanDigest, PlanKey};

choice! {
    /// Where dependencies come from, and what stays of them.
    DepsMode { Store = "store", Isolated = "isolated", Image = "image" }
}

/// Everything that making tools needs to be told.
#[derive(Debug)]
pub struct Workshop {
    /// Where finished tools and downloads are: `tools` below our data directory.
    pub depot: HostPath,
    pub clients: Clients,
    /// The root file system that steps see and tools will run in.
    pub root: BuildRoot,
    pub deps: DepsMode,
    /// For whom.
    pub identity: Identity,
    /// How much a build may do at once.
    pub jobs: usize,
    /// How long the steps of one plan may take; else what is usual for what they do.
    pub timeout: Option<Duration>,
    /// Whether the place of a failed build stays, to be looked at.
    pub failures: Failures,
}

/// A tool that can be mounted, and what it needs when it is used. What a workshop that keeps nothing made is gone when
/// this is.
#[derive(Debug)]
pub struct Provided {
    pub tool: ProvidedDep,
    /// What the tool needs when it is used, nearest first.
    pub needs: Vec<ProvidedDep>,
    /// How many tools were there, were made, and how many files were fetched.
    pub counts: Counts,
    pub notes: Vec<Note>,
    _place: Option<Temporary>,
}

/// What it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub kept: usize,
    pub made: usize,
    pub fetched: u64,
}

/// Something the author of a recipe should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A declared dependency of which nothing was opened while the steps ran.
    Unused { tool: String, dependency: String },
    /// A step looked for a program that is no declared dependency, and went on without it.
    Undeclared { tool: String, step: usize, command: String },
}

/// Makes sure that what `plan` makes is there.
pub fn provide(workshop: &Workshop, plan: &Plan, observer: &dyn Observer) -> Result<Provided, Error> {
    let temporary = match workshop.deps {
        DepsMode::Store | DepsMode::Image => None,
        DepsMode::Isolated => Some(Temporary::below(&workshop.depot)),
    };
    let place = temporary.as_ref().map_or(&workshop.depot, |temporary| &temporary.0);
    let root = workshop.root.seen()?;
    let mut work = Work::new((workshop, &root), plan, observer);
    work.depot = Depot::new(place.clone());
    work.cache = Cache::new(work.depot.downloads());
    work.platform(plan)?;
    if root.image().is_some() {
        image::check_place(&workshop.depot)?;
        image::reap(&workshop.depot);
    }
    work.fetch(plan)?;
    let tool = work.obtain(plan)?;
    let needs = work.needs(plan)?;
    let Work { counts, notes, .. } = work;
    Ok(Provided { tool, needs, counts, notes, _place: temporary })
}

/// The key under which `workshop` keeps what `plan` makes.
pub fn key(workshop: &Workshop, plan: &Plan) -> Result<PlanKey, Error> {
    Ok(workshop.root.seen()?.key(&workshop.asked(plan)))
}

impl Workshop {
    /// The plan as it is carried out: with `image`, dependencies are what the root file system has.
    fn asked(&self, plan: &Plan) -> Plan {
        match self.deps {
            DepsMode::Image => Plan { dependencies: Vec::new(), ..plan.clone() },
            DepsMode::Store | DepsMode::Isolated => plan.clone(),
        }
    }
}

impl root::Seen {
    fn key(&self, plan: &Plan) -> PlanKey {
        key_on(&self.digest, plan)
    }
}

/// The key of `plan` on the root file system that is known by `root`.
fn key_on(root: &str, plan: &Plan) -> PlanKey {
    plan.key(KeyContext { root_digest: root, executor_version: VERSION })
}

struct Work<'a> {
    workshop: &'a Workshop,
    observer: &'a dyn Observer,
    /// Which of all tools each is, dependencies first.
    places: BTreeMap<PlanDigest, usize>,
    depot: Depot,
    cache: Cache,
    root: &'a root::Seen,
    done: BTreeMap<PlanDigest, ProvidedDep>,
    counts: Counts,
    notes: Vec<Note>,
    /// The tools that led here, for messages.
    chain: Vec<String>,
}

impl<'a> Work<'a> {
    fn new(
        (workshop, root): (&'a Workshop, &'a root::Seen),
        plan: &Plan,
        observer: &'a dyn Observer,
    ) -> Self {
        let all = plan.leaves_first();
        let depot = Depot::new(workshop.depot.clone());
        Self {
            workshop,
            observer,
            places: all.iter().enumerate().map(|(index, plan)| (plan.digest(), index + 1)).collect(),
            cache: Cache::new(depot.downloads()),
            depot,
            root,
            done: BTreeMap::new(),
            counts: Counts::default(),
            notes: Vec::new(),
            chain: Vec::new(),
        }
    }
}

impl Work<'_> {
    fn tell(&self, plan: &Plan, step: ToolStep) {
        let number = self.places.get(&plan.digest()).copied().unwrap_or_default();
        let tool = ToolPlace { title: &plan.title(), number, of: self.places.len() };
        self.observer.event(&Event::Tool { tool, step });
    }

    fn platform(&self, plan: &Plan) -> Result<(), Error> {
        let has = self.root.libc.name();
        let machine = std::env::consts::ARCH;
        let family = self.root.release.family;
        // Most plans are for every family with the same C library.
        let fits = plan.platform.linux_family.is_none_or(|wanted| family == Some(wanted));
        if fits && plan.platform.arch.to_string() == machine && plan.platform.libc.to_string() == has {
            return Ok(());
        }
        let family = family.map_or_else(String::new, |family| format!(" {family}"));
        Err(Error::Platform {
            tool: plan.title(),
            platform: plan.platform.to_string(),
            machine: format!("linux {machine} {has}{family}"),
        })
    }

    fn dependencies<'p>(&self, plan: &'p Plan) -> &'p [Plan] {
        match self.workshop.deps {
            DepsMode::Image => &[],
            DepsMode::Store | DepsMode::Isolated => &plan.dependencies,
        }
    }

    fn key(&self, plan: &Plan) -> PlanKey {
        self.root.key(&self.workshop.asked(plan))
    }

    /// Fetches what is missing, all at once, before anything runs.
    fn fetch(&mut self, plan: &Plan) -> Result<(), Error> {
        let (mut missing, mut seen) = (Vec::new(), BTreeSet::new());
        self.missing(plan, &mut seen, &mut missing)?;
        self.counts.fetched = fetch(&missing, &self.cache, &self.workshop.clients, self.observer)?;
        Ok(())
    }

    fn missing<'p>(
        &self,
        plan: &'p Plan,
        seen: &mut BTreeSet<PlanDigest>,
        found: &mut Vec<&'p Plan>,
    ) -> Result<(), Error> {
        if !seen.insert(plan.digest()) {
            return Ok(());
        }
        let kept = self.depot.find(plan, self.key(plan))?.is_some();
        if !kept {
            found.push(plan);
        }
        let needed = |dependency: &&Plan| !kept || plan.provides.needs.contains(&dependency.name);
        for dependency in self.dependencies(plan).iter().filter(needed) {
            self.missing(dependency, seen, found)?;
        }
        Ok(())
    }

    /// The tool of `plan`, made if it is not there, after all that its steps declare.
    fn obtain(&mut self, plan: &Plan) -> Result<ProvidedDep, Error> {
        if let Some(done) = self.done.get(&plan.digest()) {
            return Ok(done.clone());
        }
        let key = self.key(plan);
        self.chain.push(plan.name.to_string());
        let found = self.depot.find(plan, key)?;
        let (tool, origin) = match found {
            Some(found) => (found, Origin::Kept),
            None => self.make(plan, key)?,
        };
        self.chain.pop();
        match origin {
            Origin::Kept => {
                self.counts.kept += 1;
                self.tell(plan, ToolStep::Kept);
            }
            Origin::Made => {
                self.counts.made += 1;
                self.tell(plan, ToolStep::Made);
            }
        }
        self.done.insert(plan.digest(), tool.clone());
        Ok(tool)
    }

    /// All that the steps of `plan` see: its dependencies, and what those need.
    fn declared(&mut self, plan: &Plan) -> Result<Vec<ProvidedDep>, Error> {
        let mut seen = Vec::new();
        for dependency in self.dependencies(plan) {
            let tool = self.obtain(dependency)?;
            let needs = self.needs(dependency)?;
            for tool in std::iter::once(tool).chain(needs) {
                if !seen.contains(&tool) {
                    seen.push(tool);
                }
            }
        }
        Ok(seen)
    }

    fn make(&mut self, plan: &Plan, key: PlanKey) -> Result<(ProvidedDep, Origin), Error> {
        let seen = self.declared(plan)?;
        let needed = |dependency: &&Plan| plan.provides.needs.contains(&dependency.name);
        let needs =
            self.dependencies(plan).iter().filter(needed).map(|dependency| self.key(dependency)).collect();
        let made_on = self.root.image().map(|image| image.made_on.clone());
        let wanted = Wanted { plan, key, needs, made_on };
        let around = Around {
            waiting: &|| self.tell(plan, ToolStep::Awaited),
            // Control groups lie outside; the directory says which.
            clear: &|partial| Sandboxes::new(partial).reap_all_groups(),
            failures: self.workshop.failures,
        };
        let of = plan.steps.len();
        let begun = |number, action| self.tell(plan, ToolStep::Begun { number, of, action });
        let chain = self.chain.join(" → ");
        let mut notes = Vec::new();
        let obtained = self.depot.obtain(&wanted, &around, |workplace| {
            let making = make::Making {
                workshop: self.workshop,
                root: self.root,
                cache: &self.cache,
                plan,
                dependencies: &seen,
                workplace,
                begun: &begun,
            };
            notes = making.make().map_err(|error| error.in_chain(&chain))?;
            Ok::<(), Error>(())
        });
        self.notes.append(&mut notes);
        obtained
    }

    /// What the tool of `plan` needs when it is used.
    fn needs(&mut self, plan: &Plan) -> Result<Vec<ProvidedDep>, Error> {
        let mut found = Vec::new();
        for dependency in self.dependencies(plan) {
            if plan.provides.needs.contains(&dependency.name) {
                let tool = self.obtain(dependency)?;
                let more = self.needs(dependency)?;
                for tool in std::iter::once(tool).chain(more) {
                    if !found.contains(&tool) {
                        found.push(tool);
                    }
                }
            }
        }
        Ok(found)
    }
}

/// What the names of depots begin with that are thrown away.
const ISOLATED: &str = "isolated-";

/// A depot that nothing is left of.
#[derive(Debug)]
struct Temporary(HostPath);

impl Temporary {
    fn below(depot: &HostPath) -> Self {
        Self(depot.join(format!("{ISOLATED}{:016x}", random())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next collection.
        let _left = remove_tree(self.0.as_path());
    }
}
