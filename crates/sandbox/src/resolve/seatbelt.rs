//! What a request means for Seatbelt: a Mac's own directories, no view that is not there already, and a refusal of
//! everything it cannot do, before anything is made.

use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;

use super::case::Case;
use super::data::{ReasonedPath, policy};
use super::error::ResolveError;
use super::system::mount;
use crate::facts::Kind;
use crate::model::layer::LayerName;
use crate::model::mount::{Content, FileIdentity, HostAccess, Mount, MountTable, Ownership};
use crate::model::path::HostPath;
use crate::model::seatbelt::{self, SeatbeltProfile, Unsupported};
use crate::model::setting::Setting;
use crate::model::spec::{Network, WorkspaceMode};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    roots: Vec<ReasonedPath>,
    masks: Vec<ReasonedPath>,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| policy!("macos"));

/// The profile and the network that hold, once it is clear that nothing else was asked for.
pub(super) fn check(case: &Case<'_>) -> Result<(SeatbeltProfile, Setting<Network>), ResolveError> {
    let spec = case.spec;
    if spec.image.is_some() {
        return Err(ResolveError::Unsupported(Unsupported::Image));
    }
    seatbelt::check_limits(&spec.limits).map_err(ResolveError::Unsupported)?;
    let asked = spec.seatbelt_profile.as_ref();
    let (profile, network) = seatbelt::profile(asked.map(|asked| asked.value), &spec.network)
        .map_err(ResolveError::Unsupported)?;
    let origin = match asked {
        Some(asked) if network != spec.network.value => asked.origin.clone(),
        _ => spec.network.origin.clone(),
    };
    Ok((profile, Setting::new(network, origin)))
}

/// The system's part of the file system.
pub(super) fn mounts(case: &Case<'_>) -> Result<Vec<Mount>, ResolveError> {
    let mut mounts = vec![
        mount(Path::new("/dev"), Content::Devices, "the few devices every program may have")?,
        mount(
            Path::new("/private/tmp"),
            Content::Scratch { size: 0 },
            "temporary files, gone with the processes",
        )?,
    ];
    for root in &RULES.roots {
        if case.facts.kind(&root.path).is_ok_and(|entry| entry.kind == Kind::Directory) {
            let source = HostPath::new(&root.path).map_err(ResolveError::MountPath)?;
            mounts.push(mount(&root.path, read_only(source), &root.reason)?);
        }
    }
    for mask in &RULES.masks {
        mounts.push(mount(&mask.path, Content::Masked, &mask.reason)?);
    }
    Ok(mounts)
}

/// What we chose to show copy-on-write is read-only instead: nobody asked to change it.
pub(super) fn read_only_views(case: &Case<'_>, mounts: Vec<Mount>) -> Vec<Mount> {
    without_views(case, mounts, |source, _, _| read_only(source))
}

/// What the user asked to see copy-on-write is copied.
pub(super) fn copied_views(case: &Case<'_>, mounts: Vec<Mount>) -> Vec<Mount> {
    without_views(case, mounts, |source, layer, identity| Content::Copy { source, layer, identity })
}

fn without_views(
    case: &Case<'_>,
    mut mounts: Vec<Mount>,
    instead: impl Fn(HostPath, LayerName, Option<FileIdentity>) -> Content,
) -> Vec<Mount> {
    for mount in mounts.iter_mut().filter(|_| !case.traits().has_views()) {
        if let Content::Cow { source, layer, identity, .. } = &mount.content {
            mount.content = instead(source.clone(), layer.clone(), *identity);
        }
    }
    mounts
}

/// Refuses what cannot be shown.
pub(super) fn check_table(case: &Case<'_>, table: &MountTable) -> Result<(), ResolveError> {
    for mount in table.iter().filter(|_| !case.traits().has_views()) {
        if let Content::Host { source, .. } = &mount.content
            && source.same_inside() != mount.target
        {
            let (path, target) = (source.clone(), mount.target.clone());
            return Err(ResolveError::Unsupported(Unsupported::Elsewhere { path, target }));
        }
    }
    Ok(())
}

/// How the workspace is kept apart: there are no overlays, so by a copy or not at all.
pub(super) fn mode(
    case: &Case<'_>,
    root: &HostPath,
) -> Result<Option<(WorkspaceMode, String)>, ResolveError> {
    match case.spec.mode.value {
        _ if case.traits().has_views() => Ok(None),
        WorkspaceMode::Overlay => {
            Err(ResolveError::Unsupported(Unsupported::CopyOnWrite { target: root.same_inside() }))
        }
        WorkspaceMode::Auto => Ok(Some((WorkspaceMode::Copy, "auto: macOS has no overlays".to_owned()))),
        WorkspaceMode::Copy | WorkspaceMode::Live => Ok(None),
    }
}

fn read_only(source: HostPath) -> Content {
    Content::Host { source, access: HostAccess::Read, ownership: Ownership::System, identity: None }
}
