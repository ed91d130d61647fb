//! An agent's own settings inside: a private view of what it keeps in the home directory. It reads and writes
//! them as always, its changes stay with the sandbox, and the host's stay as they are.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use super::case::{Case, Home};
use super::data::policy;
use super::error::ResolveError;
use super::source::Workspace;
use super::{Asked, expose, homes, overlay, user_mounts, warnings};
use crate::facts::Kind;
use crate::model::engine::Maker;
use crate::model::layer::LayerName;
use crate::model::mount::Mount;
use crate::model::path::HostPath;
use crate::model::resolved::{Seed, Warning};
use crate::model::setting::{Origin, Setting};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Agents {
    agent: Vec<Agent>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Agent {
    name: String,
    directories: Vec<PathBuf>,
    #[serde(default)]
    files: Vec<PathBuf>,
    credentials: Vec<PathBuf>,
    reason: String,
}

static AGENTS: LazyLock<Agents> = LazyLock::new(|| policy!("agents"));

/// The names of the agents.
pub(super) fn names() -> Vec<&'static str> {
    AGENTS.agent.iter().map(|agent| agent.name.as_str()).collect()
}

/// Adds the homes of agents to what is shown.
pub(super) fn add(
    case: &Case<'_>,
    workspace: &Workspace,
    asked: &mut Asked,
    found: &mut Vec<Warning>,
) -> Result<(), ResolveError> {
    let mut view = View { case, workspace, asked, found };
    for Setting { value: written, origin } in &case.spec.agent_homes {
        if expose::is_name(written) {
            let name = written.to_string_lossy();
            let agent = AGENTS.agent.iter().find(|agent| agent.name == name);
            let agent = agent.ok_or_else(|| ResolveError::AgentUnknown { name: name.into_owned() })?;
            view.agent(agent, origin)?;
        } else {
            view.path(written, origin)?;
        }
    }
    Ok(())
}

struct View<'a> {
    case: &'a Case<'a>,
    workspace: &'a Workspace,
    asked: &'a mut Asked,
    found: &'a mut Vec<Warning>,
}

impl View<'_> {
    fn agent(&mut self, agent: &Agent, origin: &Origin) -> Result<(), ResolveError> {
        let reason = format!("{}: {}", agent.name, agent.reason);
        let case = self.case;
        let Some(home) = &case.home else {
            self.found.push(warnings::agent_home_empty(&agent.name));
            return Ok(());
        };
        let mut shown = Vec::new();
        for path in agent.directories.iter().chain(&agent.files) {
            let place = home.real.join(path);
            let Ok(real) = case.facts.real_path(&place) else { continue };
            if !real.starts_with(home.real.as_path()) {
                self.found.push(warnings::agent_home_outside(place.as_path(), &real));
                continue;
            }
            let real = HostPath::new(real).map_err(ResolveError::MountPath)?;
            self.show(home, &Shown { real, place: &place, reason: &reason, origin })?;
            shown.push(format!("~/{}", path.display()));
        }
        if shown.is_empty() {
            self.found.push(warnings::agent_home_empty(&agent.name));
        } else {
            let keys = agent.credentials.iter().filter(|path| case.facts.kind(home.real.join(path)).is_ok());
            let keys: Vec<String> = keys.map(|path| format!("~/{}", path.display())).collect();
            self.found.push(warnings::agent_home(&agent.name, &shown, &keys));
        }
        Ok(())
    }

    fn path(&mut self, written: &Path, origin: &Origin) -> Result<(), ResolveError> {
        let case = self.case;
        let (real, _) = user_mounts::source(case, written)?;
        let why = "there is no home directory";
        let home = case.home.as_ref().ok_or_else(|| ResolveError::AgentHome { path: real.clone(), why })?;
        let reason = format!("asked for by {origin}");
        let place = real.clone();
        self.show(home, &Shown { real, place: &place, reason: &reason, origin })?;
        let name = place.to_string();
        self.found.push(warnings::agent_home(&name, std::slice::from_ref(&name), &[]));
        Ok(())
    }

    fn show(&mut self, home: &Home, shown: &Shown<'_>) -> Result<(), ResolveError> {
        let target = shown.place.same_inside();
        // The workspace is a private view itself.
        if self.workspace.holds(&target) || self.asked.mounts.iter().any(|mount| mount.target == target) {
            return Ok(());
        }
        let refused = |why| ResolveError::AgentHome { path: shown.real.clone(), why };
        let entry = self.case.facts.kind(&shown.real).map_err(|_| refused("it cannot be looked at"))?;
        match entry.kind {
            Kind::Directory => {
                let layer = LayerName::AgentHome(self.asked.mounts.len());
                // One layer cannot be mounted at two places.
                let twice = self.case.traits().mounts == Maker::Engine && homes::of(self.case).len() > 1;
                let (content, copied) = if twice {
                    let why = "the home directory has two names".to_owned();
                    (overlay::copy(self.case, &shown.real, &layer), Some(why))
                } else {
                    overlay::cow_or_copy(self.case, &shown.real, &layer)?
                };
                if let Some(why) = copied {
                    self.found.push(warnings::agent_home_copied(&shown.real, &why));
                }
                let (reason, origin) = (shown.reason.to_owned(), shown.origin.clone());
                self.asked.mounts.push(Mount { target, content, reason, origin });
            }
            Kind::File => {
                let place = shown.place.below(&home.real).ok_or_else(|| {
                    refused("a file is copied into the private home, and it lies outside of yours")
                })?;
                self.asked.seeds.push(Seed {
                    source: shown.real.clone(),
                    place: place.to_owned(),
                    identity: self.case.identity(&shown.real),
                    reason: shown.reason.to_owned(),
                });
            }
            _ => return Err(refused("it is neither a file nor a directory")),
        }
        Ok(())
    }
}

/// A file or directory to be shown.
struct Shown<'a> {
    real: HostPath,
    /// Where it is written to be, which a link may differ from.
    place: &'a HostPath,
    reason: &'a str,
    origin: &'a Origin,
}

#[cfg(test)]
mod tests {
    use std::path::Component;

    use super::*;

    #[test]
    fn agents_keep_their_settings_in_plain_places_below_home() {
        for agent in &AGENTS.agent {
            assert!(expose::is_name(Path::new(&agent.name)));
            for path in agent.directories.iter().chain(&agent.files).chain(&agent.credentials) {
                assert!(path.components().all(|part| matches!(part, Component::Normal(_))), "{path:?}");
            }
            let shown = |path: &Path| {
                agent.directories.iter().any(|directory| path.starts_with(directory))
                    || agent.files.iter().any(|file| file == path)
            };
            assert!(agent.credentials.iter().all(|path| shown(path)), "{} logs in with more", agent.name);
        }
    }
}
