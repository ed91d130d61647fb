//! The environment of a command: what the allow-list takes from the caller, and what is made anew.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use sandtable_store::wildcard::{Syntax, matches};
use serde::Deserialize;

use super::case::Case;
use super::contained::VIRTUAL_ENV;
use super::data::{Reasoned, policy};
use super::error::ResolveError;
use super::rootfs::Rootfs;
use super::{node, proxy, search, shows_host, tools, warnings};
use crate::model::agent::{self, Agent};
use crate::model::engine::System;
use crate::model::mount::MountTable;
use crate::model::path::BoxPath;
use crate::model::resolved::{EngineName, Variable, Warning};
use crate::model::setting::{Origin, Setting};
use crate::model::spec::{EnvRequest, EnvValue, Network};

/// Git looks for its repository above a mount as well.
const DISCOVERY: &str = "GIT_DISCOVERY_ACROSS_FILESYSTEM";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rules {
    variables: Vec<Reasoned>,
    reserved: Vec<Reasoned>,
    pub(super) path: Vec<Reasoned>,
}

pub(super) static RULES: LazyLock<Rules> = LazyLock::new(|| policy!("environment"));

/// The variables of the caller that are seen inside.
pub fn environment_rules() -> &'static [Reasoned] {
    &RULES.variables
}

/// What the environment depends on, besides the case.
pub(super) struct Sights<'a> {
    pub(super) mounts: &'a MountTable,
    pub(super) rootfs: Option<&'a Rootfs>,
    pub(super) network: Network,
    pub(super) agent: &'a Agent,
}

/// The whole environment, but for the sandbox's name. What comes later stands for what came before: `exposed` belongs to
/// credentials that are shown, what the user asked for counts more than what we make, and nothing counts more than where
/// the agent is.
pub(super) fn whole(
    case: &Case<'_>,
    sights: &Sights<'_>,
    mut exposed: BTreeMap<String, Variable>,
    found: &mut Vec<Warning>,
) -> Result<BTreeMap<String, Variable>, ResolveError> {
    let mut environment = build(case, sights.mounts, sights.rootfs, found);
    tools::add_variables(case, &mut environment);
    environment.append(&mut exposed);
    environment.append(&mut proxy::variables(case.host, sights.network));
    environment.append(&mut node::debugger(case, sights.network));
    environment.append(&mut asked(case)?);
    node::fit_memory(case, &mut environment);
    environment.append(&mut last(sights.agent, case.engine));
    Ok(environment)
}

/// What the caller has that may be seen, and what is made anew.
fn build(
    case: &Case<'_>,
    mounts: &MountTable,
    rootfs: Option<&Rootfs>,
    found: &mut Vec<Warning>,
) -> BTreeMap<String, Variable> {
    let mut environment: BTreeMap<String, Variable> = case
        .host
        .environment
        .iter()
        .filter(|(name, value)| is_allowed(name) && !value.is_empty())
        .map(|(name, value)| (name.clone(), from_caller(name, value.clone())))
        .collect();
    for name in case.host.odd_variables.iter().filter(|name| is_allowed(name)) {
        found.push(warnings::variable_not_unicode(name));
    }
    environment.insert("HOME".to_owned(), made(case.home_inside().to_string()));
    if case.traits().system == System::Image {
        // The image knows where its programs are.
        environment.remove("PATH");
        environment.remove("SHELL");
        let own =
            mounts.iter().find(|mount| mount.origin == Origin::Variable { name: VIRTUAL_ENV.to_owned() });
        environment.extend(
            own.map(|mount| (VIRTUAL_ENV.to_owned(), from_caller(VIRTUAL_ENV, mount.target.to_string()))),
        );
    } else {
        let (path, shell) = match rootfs {
            Some(rootfs) => (made(search::of_image(case, rootfs)), made("/bin/sh".to_owned())),
            None => (from_caller("PATH", search::inside(case, mounts, found)), shell(case, mounts)),
        };
        environment.insert("PATH".to_owned(), path);
        environment.insert("SHELL".to_owned(), shell);
    }
    environment.insert("TMPDIR".to_owned(), made("/tmp".to_owned()));
    environment
}

/// What the user gives or passes on. It may be secret, so it is concealed.
fn asked(case: &Case<'_>) -> Result<BTreeMap<String, Variable>, ResolveError> {
    let mut variables = BTreeMap::new();
    for Setting { value: EnvRequest { name, value }, origin } in &case.spec.env {
        if let Some(rule) = RULES.reserved.iter().find(|rule| matches(&rule.name, name, Syntax::Path)) {
            return Err(ResolveError::EnvReserved { name: name.clone(), why: &rule.reason });
        }
        let text = match value {
            EnvValue::Given(secret) => Some(secret.reveal()),
            EnvValue::Caller | EnvValue::CallerIfSet => case.host.environment.get(name).map(String::as_str),
        };
        match (text, value) {
            (Some(text), _) => {
                variables.insert(name.clone(), Variable::concealed(text, origin.clone()));
            }
            (None, _) if case.host.odd_variables.contains(name) => {
                return Err(ResolveError::EnvNotText { name: name.clone() });
            }
            (None, EnvValue::CallerIfSet) => {}
            (None, _) => {
                return Err(ResolveError::EnvUnset { name: name.clone(), origin: origin.to_string() });
            }
        }
    }
    Ok(variables)
}

/// What holds whatever the user says: git finds a repository whose top is a mount of its own, and whoever looks
/// for the agent looks in its one place.
pub(super) fn last(agent: &Agent, engine: EngineName) -> BTreeMap<String, Variable> {
    let discovery = (DISCOVERY.to_owned(), made("1".to_owned()));
    let socket = agent.place(engine).map(|place| {
        let value = Variable::open(place.to_string(), agent.asked.origin.clone());
        (agent::VARIABLE.to_owned(), value)
    });
    std::iter::once(discovery).chain(socket).collect()
}

fn is_allowed(name: &str) -> bool {
    RULES.variables.iter().any(|rule| matches(&rule.name, name, Syntax::Path))
}

/// The caller's shell if it exists inside, else the one that every system has.
fn shell(case: &Case<'_>, mounts: &MountTable) -> Variable {
    let written = case.host.environment.get("SHELL");
    let visible = |path: &&String| {
        BoxPath::new(path).is_ok_and(|path| shows_host(mounts, &path)) && case.facts.kind(path).is_ok()
    };
    match written.filter(visible) {
        Some(path) => from_caller("SHELL", path.clone()),
        None => made("/bin/sh".to_owned()),
    }
}

fn from_caller(name: &str, value: String) -> Variable {
    Variable::open(value, Origin::Variable { name: name.to_owned() })
}

fn made(value: String) -> Variable {
    Variable::open(value, Origin::Default)
}
