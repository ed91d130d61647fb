//! From what was asked to what it means here.
//!
//! [`resolve`] makes every decision that needs a look at the machine, asks through [`Facts`] only, and changes
//! nothing. What it returns is complete: no later step looks again. Policy is data (`*.toml` beside this
//! file), each line with its reason.

mod agents;
mod card;
mod case;
mod contained;
mod data;
mod engine;
mod environment;
mod error;
mod expose;
mod flags;
mod gitconfig;
mod groups;
mod helpers;
mod hide;
mod home;
mod homes;
mod identity;
mod lender;
mod mode;
mod network;
mod node;
mod overlay;
mod proxy;
mod remedy;
mod renew;
mod repository;
mod rootfs;
mod search;
mod seatbelt;
mod secrets;
mod source;
mod ssh_agent;
mod system;
#[cfg(test)]
pub(crate) mod tests;
mod toolchains;
mod tools;
mod user_mounts;
mod warnings;

pub use card::{CARD, CARD_VARIABLE};
pub use data::Reasoned;
pub use engine::{Engaged, engaged};
pub use environment::environment_rules;
pub use error::ResolveError;
pub use gitconfig::{ignore_file, without_passwords};
pub use groups::socket as systemd_socket;
pub use helpers::{data_is_apart, helper, helper_environment};
pub use hide::Hidden;
pub use lender::LENDER;
pub(crate) use lender::place as lender_place;
pub use proxy::ProxyError;
pub use renew::renew;
pub use secrets::{says_secret, secret_names};
pub use ssh_agent::{ConnectionError, socket as agent_socket};

use std::collections::BTreeMap;

use case::Case;
use environment::Sights;
use rootfs::Rootfs;
use source::Workspace;
use ssh_agent::Surroundings;

use crate::facts::Facts;
use crate::host::Host;
use crate::model::container::Container;
use crate::model::engine::System;
use crate::model::mount::{Content, Mount, MountTable};
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::{EngineName, ResolvedSpec, Seed, Source, Variable, Warning};
use crate::model::seatbelt as seatbelt_model;
use crate::model::setting::Setting;
use crate::model::spec::{EngineChoice, Network, Spec};

/// Says what `spec` means for `host` on the machine that `facts` describes.
pub fn resolve(spec: &Spec, host: &Host, facts: &dyn Facts) -> Result<ResolvedSpec, ResolveError> {
    let chosen = engine::choose(spec, host, facts)?;
    let case = Case::new(spec, host, facts, chosen.engine)?.contained(chosen.container.as_ref());
    let (seatbelt, network) = way_out(&case, &chosen)?;
    let network_helper = network::helper(&case, &network)?;
    network::check_rootless(&case, &network)?;
    let mut warnings = Vec::new();
    proxy::check_use(spec, network.value, &mut warnings);
    node::check_debugger(&case, network.value, &mut warnings);
    let workspace = source::find(&case, &mut warnings)?;
    let mode = mode::choose(&case, &workspace, &mut warnings)?;
    let build = contained::recipe(&case, &workspace)?;
    let mut asked = Asked { mounts: user_mounts::all(&case)?, seeds: Vec::new() };
    let exposed = expose::add(&case, &mut asked.mounts, &mut warnings)?;
    agents::add(&case, &workspace, &mut asked, &mut warnings)?;
    let Asked { mounts: asked, seeds } = asked;
    let home = home::mounts(&case, &workspace, &seeds);
    let engine = chosen.engine;
    let surroundings =
        Surroundings { host, facts, os: chosen.platform.os, engine, container: chosen.container.as_ref() };
    let ssh_agent = ssh_agent::decide(&spec.ssh_agent, &surroundings, &mut warnings)?;
    let agent = ssh_agent::mounts(&case, &workspace, &ssh_agent, engine);
    let rootfs = rootfs::find(&case)?;
    let tools = tools::mounts(&case)?;
    let own = OwnMounts { workspace: workspace.mounts(&case, &mode)?, home, asked, agent, tools };
    let mounts =
        mounts(&case, &workspace, own, &mut Around { rootfs: rootfs.as_ref(), warnings: &mut warnings })?;
    let mounts = lender::with_lender(&case, (&workspace, &mode), mounts)?;
    identity::check_owners(&case, &workspace.root, &mut warnings);
    let sights =
        Sights { mounts: &mounts, rootfs: rootfs.as_ref(), network: network.value, agent: &ssh_agent };
    let environment = environment::whole(&case, &sights, exposed, &mut warnings)?;
    card::with_card(ResolvedSpec {
        repository_config: gitconfig::of_repository(&case, &workspace, &mode, &mut warnings),
        engine: chosen.engine,
        engine_reason: chosen.reason,
        platform: chosen.platform,
        image: chosen.image.or(rootfs.map(|rootfs| rootfs.image)),
        container: chosen.container.clone().map(|container| Container { build, ..container }),
        seatbelt,
        identity: identity::of(host),
        home: case.home_inside(),
        directory: workspace.directory.same_inside(),
        source: Source { root: workspace.root, kind: workspace.kind },
        mode,
        base: spec.base.clone(),
        mounts,
        tools: host.tools.clone(),
        seeds,
        hide: spec.hide.clone(),
        environment,
        network,
        network_helper,
        limits: spec.limits.clone(),
        systemd: groups::systemd(&spec.limits, engine, host, facts),
        ssh_agent,
        secrets: spec.secrets.clone(),
        strictness: spec.strictness.clone(),
        lifetime: spec.lifetime.clone(),
        warnings,
    })
}

/// The network that the sandbox has. Where no engine makes a view, a profile of macOS decides about it.
fn way_out(
    case: &Case<'_>,
    chosen: &engine::Chosen,
) -> Result<(Option<seatbelt_model::Profile>, Setting<Network>), ResolveError> {
    if chosen.engine.traits().has_views() {
        return Ok((None, chosen.network.clone()));
    }
    seatbelt::check(case).map(|(profile, network)| (Some(profile), network))
}

/// The names of the agents whose settings can be shown.
pub fn agent_names() -> Vec<&'static str> {
    agents::names()
}

/// The directory that a sandbox made by `spec` would be a view of.
pub fn source_of(spec: &Spec, host: &Host, facts: &dyn Facts) -> Result<HostPath, ResolveError> {
    let case = Case::new(spec, host, facts, engine::check(spec.engine.value, host, facts)?)?;
    Ok(source::find(&case, &mut Vec::new())?.root)
}

/// Whether our state directory can hold the layers of sandboxes.
pub fn check_state(host: &Host, facts: &dyn Facts) -> Result<(), ResolveError> {
    let state = case::state(&host.data, facts)?;
    overlay::check_state(&state, facts)?;
    overlay::check_upper(&state, facts)
}

/// Whether there is such an engine here. Only what can be known without starting it.
pub fn check_engine(
    engine: EngineChoice,
    host: &Host,
    facts: &dyn Facts,
) -> Result<EngineName, ResolveError> {
    engine::check(engine, host, facts)
}

/// The variables by which the program of a container engine finds its service.
pub fn engine_variables(host: &Host, facts: &dyn Facts) -> BTreeMap<String, Variable> {
    engine::variables(host, facts)
}

/// What the user wants to see inside besides the workspace.
struct Asked {
    mounts: Vec<Mount>,
    /// What cannot be mounted and is copied into the private home instead.
    seeds: Vec<Seed>,
}

/// The mounts that the user has a word in.
struct OwnMounts {
    workspace: Vec<Mount>,
    home: Vec<Mount>,
    asked: Vec<Mount>,
    agent: Vec<Mount>,
    tools: Vec<Mount>,
}

/// What the file system is built around, and who hears of it.
struct Around<'a> {
    rootfs: Option<&'a Rootfs>,
    warnings: &'a mut Vec<Warning>,
}

/// The whole file system. What the user asked for comes before what we would have shown at the same place
/// of the home directory; everywhere else two mounts at one place are a conflict.
fn mounts(
    case: &Case<'_>,
    workspace: &Workspace,
    own: OwnMounts,
    around: &mut Around<'_>,
) -> Result<MountTable, ResolveError> {
    let Around { rootfs, warnings } = around;
    if case.traits().system == System::Image {
        return contained_mounts(case, workspace, own, warnings);
    }
    let OwnMounts { workspace: mut mounts, home, asked, agent, tools } = own;
    let mut system =
        if case.traits().has_views() { system::mounts(case, *rootfs)? } else { seatbelt::mounts(case)? };
    system.retain(|mount| mount.target != workspace.root.same_inside());
    tools::make_room(case, &tools, &mut system)?;
    mounts.extend(tools);
    let mut shown = gitconfig::mounts(case, workspace, warnings);
    shown.extend(agent);
    // Tools of the host are built for the host's libraries, not for those of an image.
    if rootfs.is_none() {
        shown.extend(toolchains::mounts(case, workspace, &system, warnings)?);
    }
    shown.retain(|mount| asked.iter().all(|request| request.target != mount.target));
    mounts.extend(home);
    mounts.extend(seatbelt::copied_views(case, asked));
    mounts.extend(seatbelt::read_only_views(case, shown));
    system::keep_temporary_directory(&mut system, &mounts);
    mounts.extend(system);
    if let Some(rootfs) = rootfs {
        let image = rootfs.mounts(case, &mounts, warnings)?;
        mounts.extend(image);
    }
    let table = MountTable::new(mounts).map_err(ResolveError::Conflict)?;
    seatbelt::check_table(case, &table)?;
    user_mounts::check_places(case, &table)?;
    if rootfs.is_some() { Ok(table) } else { system::with_state_masked(case, table) }
}

/// The same where an image brings the system, and with it the programs.
fn contained_mounts(
    case: &Case<'_>,
    workspace: &Workspace,
    own: OwnMounts,
    warnings: &mut Vec<Warning>,
) -> Result<MountTable, ResolveError> {
    let OwnMounts { workspace: mut mounts, home, asked, agent, tools } = own;
    mounts.extend(tools);
    let mut shown = gitconfig::mounts(case, workspace, warnings);
    shown.extend(agent);
    shown = homes::at_each(shown, &homes::of(case));
    shown.extend(contained::virtual_environment(case, workspace));
    let (views, asked): (Vec<Mount>, Vec<Mount>) =
        asked.into_iter().partition(|mount| matches!(mount.content, Content::Cow { .. }));
    let asked: Vec<Mount> = homes::at_each(asked, &homes::of(case)).into_iter().chain(views).collect();
    shown.retain(|mount| asked.iter().all(|request| request.target != mount.target));
    mounts.extend(contained::without_links(home));
    mounts.extend(asked);
    mounts.extend(shown);
    let mut system = contained::mounts(case);
    contained::give_way(&mut system, &mounts);
    mounts.extend(system);
    let table = MountTable::new(mounts).map_err(ResolveError::Conflict)?;
    user_mounts::check_places(case, &table)?;
    system::with_state_masked(case, table)
}

/// Whether `path` shows files of the host, by way of a link of ours or not.
fn shows_host(mounts: &MountTable, path: &BoxPath) -> bool {
    mounts.at(path).is_some_and(|mount: &Mount| {
        matches!(
            mount.content,
            Content::Host { .. } | Content::Cow { .. } | Content::Copy { .. } | Content::Link { .. }
        )
    })
}
