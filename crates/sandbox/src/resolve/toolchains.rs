//! Tools below the home directory. PATH only selects among the layouts that `toolchains.toml` knows; it
//! never exposes a directory by itself.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use super::case::{Case, Home};
use super::data::policy;
use super::error::ResolveError;
use super::source::Workspace;
use super::{overlay, search, warnings};
use crate::model::layer::LayerName;
use crate::model::mount::{Content, HostAccess, Mount, Ownership, Pins};
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::Warning;
use crate::model::setting::Origin;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Toolchains {
    tool: Vec<Tool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    id: LayerName,
    select: Vec<PathBuf>,
    #[serde(default)]
    show: Vec<PathBuf>,
    #[serde(default)]
    cow: Vec<PathBuf>,
    #[serde(default)]
    hide: Vec<PathBuf>,
    reason: String,
}

static TOOLCHAINS: LazyLock<Toolchains> = LazyLock::new(|| policy!("toolchains"));

/// How a directory of a tool is shown.
#[derive(Clone, Copy)]
enum Manner<'a> {
    Read,
    Cow { layer: &'a LayerName },
}

/// What the tools on PATH need. `system` is what is visible already.
pub(super) fn mounts(
    case: &Case<'_>,
    workspace: &Workspace,
    system: &[Mount],
    found: &mut Vec<Warning>,
) -> Result<Vec<Mount>, ResolveError> {
    let Some(home) = &case.home else { return Ok(Vec::new()) };
    let mut view = View { case, home, workspace, system, mounts: Vec::new(), found };
    let directories = search::directories(case.host);
    let on_path: Vec<PathBuf> = directories.iter().map(|directory| case.at_home(directory)).collect();
    for tool in TOOLCHAINS.tool.iter().filter(|tool| is_selected(tool, home, &on_path)) {
        for path in &tool.show {
            view.show(tool, path, Manner::Read)?;
        }
        for path in &tool.cow {
            view.show(tool, path, Manner::Cow { layer: &tool.id })?;
        }
        for path in &tool.hide {
            view.hide(tool, path);
        }
    }
    Ok(view.mounts)
}

fn is_selected(tool: &Tool, home: &Home, on_path: &[PathBuf]) -> bool {
    let below_home = on_path.iter().filter_map(|path| path.strip_prefix(home.real.as_path()).ok());
    below_home.into_iter().any(|path| tool.select.iter().any(|select| path.starts_with(select)))
}

struct View<'a> {
    case: &'a Case<'a>,
    home: &'a Home,
    workspace: &'a Workspace,
    system: &'a [Mount],
    mounts: Vec<Mount>,
    found: &'a mut Vec<Warning>,
}

impl View<'_> {
    fn show(&mut self, tool: &Tool, path: &Path, manner: Manner<'_>) -> Result<(), ResolveError> {
        let place = self.home.real.join(path);
        let target = place.same_inside();
        if self.workspace.holds(&target) || self.mounts.iter().any(|mount| mount.target == target) {
            return Ok(());
        }
        let Ok(real) = self.case.facts.real_path(&place) else { return Ok(()) };
        let content = if real.starts_with(self.home.real.as_path()) {
            let real = HostPath::new(real).map_err(ResolveError::MountPath)?;
            self.content(&real, manner)?
        } else if self.is_system(&real) {
            Content::Link { to: real.to_string_lossy().into_owned() }
        } else {
            self.found.push(warnings::toolchain_outside(place.as_path(), &real));
            return Ok(());
        };
        self.add(tool, target, content);
        Ok(())
    }

    /// A directory that cannot be the lower part of an overlay is still worth reading.
    fn content(&mut self, real: &HostPath, manner: Manner<'_>) -> Result<Content, ResolveError> {
        if let Manner::Cow { layer } = manner {
            match overlay::cow(self.case, real, layer, Pins::None) {
                Ok(content) => return Ok(content),
                Err(why) if overlay::is_obstacle(self.case, &why) => {
                    self.found.push(warnings::toolchain_read_only(real, &why.to_string()));
                }
                Err(other) => return Err(other),
            }
        }
        Ok(Content::Host {
            source: real.clone(),
            access: HostAccess::Read,
            ownership: Ownership::Caller,
            identity: self.case.identity(real),
        })
    }

    fn hide(&mut self, tool: &Tool, path: &Path) {
        let target = self.home.real.join(path).same_inside();
        let below_shown = self.mounts.iter().any(|mount| {
            let shows = matches!(mount.content, Content::Host { .. } | Content::Cow { .. });
            shows && target.is_within(&mount.target)
        });
        if below_shown && self.case.facts.kind(self.home.real.join(path)).is_ok() {
            self.add(tool, target, Content::Masked);
        }
    }

    fn is_system(&self, real: &Path) -> bool {
        self.system.iter().any(|mount| {
            matches!(mount.content, Content::Host { .. }) && real.starts_with(mount.target.as_path())
        })
    }

    fn add(&mut self, tool: &Tool, target: BoxPath, content: Content) {
        let reason = format!("{}: {}", tool.id, tool.reason);
        self.mounts.push(Mount {
            target,
            content,
            reason,
            origin: Origin::Variable { name: "PATH".to_owned() },
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Component;

    use super::*;

    #[test]
    fn every_path_of_a_tool_is_plain_and_below_home() {
        for tool in &TOOLCHAINS.tool {
            assert!(!tool.select.is_empty(), "{} is never selected", tool.id);
            assert!(tool.show.len() + tool.cow.len() > 0, "{} shows nothing", tool.id);
            for path in [&tool.select, &tool.show, &tool.cow, &tool.hide].into_iter().flatten() {
                assert!(path.components().all(|part| matches!(part, Component::Normal(_))), "{path:?}");
            }
            let shown = |path: &Path| tool.show.iter().chain(&tool.cow).any(|shown| path.starts_with(shown));
            assert!(tool.hide.iter().all(|path| shown(path)), "{} hides what it does not show", tool.id);
        }
    }

    #[test]
    fn layers_of_tools_are_distinct() {
        let mut ids: Vec<&LayerName> = TOOLCHAINS.tool.iter().map(|tool| &tool.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), TOOLCHAINS.tool.len());
        assert!(TOOLCHAINS.tool.iter().all(|tool| tool.cow.len() <= 1), "one layer per tool");
        assert!(ids.iter().all(|id| matches!(id, LayerName::Toolchain(_))), "no other layer has its name");
    }
}
