//! What an overlay cannot do, known before it fails: the kernel's answer would be a bare error number.

use std::sync::LazyLock;

use serde::Deserialize;

use super::case::{Case, State};
use super::data::policy;
use super::error::ResolveError;
use crate::facts::Facts;
use crate::model::container::Lowers;
use crate::model::layer::LayerName;
use crate::model::mount::{Content, Pins};
use crate::model::path::HostPath;
use crate::model::platform::Os;

const TMPFS: u64 = 0x0102_1994;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSystems {
    systems: Vec<FileSystemRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSystemRule {
    magic: u64,
    name: String,
    refuses: Vec<Part>,
    reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Upper,
    Lower,
}

static FILE_SYSTEMS: LazyLock<FileSystems> = LazyLock::new(|| policy!("filesystems"));

/// A copy-on-write view of the directory `path`, which is a real path.
pub(super) fn cow(
    case: &Case<'_>,
    path: &HostPath,
    layer: &LayerName,
    pins: Pins,
) -> Result<Content, ResolveError> {
    // Where no view can be made this only says what is wished for.
    if case.traits().has_views() {
        check_upper(&case.state, case.facts)?;
        check_lower(case, path)?;
        check_engine(case, path, pins)?;
    }
    let identity = case.identity(path);
    Ok(Content::Cow { source: path.clone(), layer: layer.clone(), pins, identity })
}

/// The same, or a copy where there can be no overlay. The reason comes with it.
pub(super) fn cow_or_copy(
    case: &Case<'_>,
    path: &HostPath,
    layer: &LayerName,
) -> Result<(Content, Option<String>), ResolveError> {
    match cow(case, path, layer, Pins::None) {
        Ok(content) => Ok((content, None)),
        Err(why) if is_obstacle(case, &why) => Ok((copy(case, path, layer), Some(why.to_string()))),
        Err(other) => Err(other),
    }
}

/// A copy of the directory `path`, which is a real path.
pub(super) fn copy(case: &Case<'_>, path: &HostPath, layer: &LayerName) -> Content {
    Content::Copy { source: path.clone(), layer: layer.clone(), identity: case.identity(path) }
}

/// Whether an error says that there can be no overlay, though there could be a copy. For root even the private
/// home needs a file system that can shift owners, which those that hold no layer cannot.
pub(super) fn is_obstacle(case: &Case<'_>, error: &ResolveError) -> bool {
    match error {
        ResolveError::Submounts { .. }
        | ResolveError::SourceFileSystem { .. }
        | ResolveError::OverlayEngine { .. } => true,
        ResolveError::StateFileSystem { .. } => case.host.uid != 0,
        _ => false,
    }
}

/// Refuses a directory that an overlay cannot stand on, or that holds the layers themselves.
fn check_lower(case: &Case<'_>, path: &HostPath) -> Result<(), ResolveError> {
    if case.state.real.is_within(path) {
        return Err(ResolveError::SourceHoldsState { path: path.clone(), state: case.state.real.clone() });
    }
    let below = case.mounts_below(path)?;
    if !below.is_empty() {
        return Err(ResolveError::Submounts { path: path.clone(), below });
    }
    let Ok(system) = case.facts.file_system(path) else { return Ok(()) };
    match refusal(system.magic, Part::Lower) {
        None => Ok(()),
        Some(rule) => Err(ResolveError::SourceFileSystem {
            path: path.clone(),
            file_system: &rule.name,
            reason: &rule.reason,
        }),
    }
}

/// Refuses what a container engine cannot say in its own words for an overlay.
fn check_engine(case: &Case<'_>, path: &HostPath, pins: Pins) -> Result<(), ResolveError> {
    let Some(container) = case.container else { return Ok(()) };
    let refused = |why| Err(ResolveError::OverlayEngine { path: path.clone(), why });
    let odd = |path: &HostPath| path.to_string().contains([',', ':', '\\', '"']);
    if odd(path) || odd(&case.state.real) {
        return refused("its path has a character that means something in mount options");
    }
    if case.facts.platform().is_ok_and(|platform| platform.os == Os::MacOs) {
        return refused("it runs in a virtual machine, and what that shares with macOS can hold no layer");
    }
    if container.lowers == Lowers::One && pins == Pins::Present {
        return refused("its overlays stand on one directory only, and hiding files takes two");
    }
    Ok(())
}

/// Refuses a state directory that can hold nothing.
pub(super) fn check_state(state: &State, facts: &dyn Facts) -> Result<(), ResolveError> {
    let path = state.real.clone();
    let system = match facts.file_system(&state.existing) {
        Ok(system) => system,
        Err(why) => return Err(ResolveError::StateUnknown { path, why }),
    };
    if system.read_only {
        return Err(ResolveError::StateReadOnly { path });
    }
    Ok(())
}

/// Refuses a state directory that cannot hold the layers of overlays.
pub(super) fn check_upper(state: &State, facts: &dyn Facts) -> Result<(), ResolveError> {
    let path = state.real.clone();
    let Ok(system) = facts.file_system(&state.existing) else { return Ok(()) };
    if let Some(rule) = refusal(system.magic, Part::Upper) {
        return Err(ResolveError::StateFileSystem { path, file_system: &rule.name, reason: &rule.reason });
    }
    // Since 6.6 tmpfs has the `user.*` attributes in which an unprivileged overlay keeps its marks.
    if system.magic == TMPFS && !is_at_least(&facts.kernel().unwrap_or_default(), (6, 6)) {
        let reason = "before Linux 6.6 it has no attributes of users";
        return Err(ResolveError::StateFileSystem { path, file_system: "tmpfs", reason });
    }
    Ok(())
}

fn refusal(magic: u64, part: Part) -> Option<&'static FileSystemRule> {
    FILE_SYSTEMS.systems.iter().find(|rule| rule.magic == magic && rule.refuses.contains(&part))
}

fn is_at_least(release: &str, wanted: (u32, u32)) -> bool {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= wanted
}

#[cfg(test)]
mod tests {
    use super::is_at_least;

    #[test]
    fn kernels_are_compared_by_number() {
        assert!(
            is_at_least("6.6.0", (6, 6)) && is_at_least("6.10-rc1", (6, 6)) && is_at_least("7.0", (6, 6))
        );
        assert!(
            !is_at_least("6.5.13-generic", (6, 6))
                && !is_at_least("5.15", (6, 6))
                && !is_at_least("", (6, 6))
        );
    }
}
