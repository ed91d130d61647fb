//! The system's part of the file system: what `system.toml` shows and hides, and the few places every
//! program expects.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use sandtable_store::wildcard::{Syntax, matches};
use serde::Deserialize;

use super::case::Case;
use super::data::{ReasonedPath, policy};
use super::error::ResolveError;
use super::network;
use super::rootfs::Rootfs;
use crate::facts::{Entry, Kind};
use crate::model::mount::{Content, HostAccess, Mount, MountTable, Ownership};
use crate::model::path::{BoxPath, HostPath};
use crate::model::setting::Origin;
use crate::model::spec::Network;

const RESOLVER: &str = "/etc/resolv.conf";
const VAR_TMP: &str = "/var/tmp";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct System {
    roots: Vec<ReasonedPath>,
    masks: Vec<ReasonedPath>,
}

static SYSTEM: LazyLock<System> = LazyLock::new(|| policy!("system"));

/// Whether `path` is one of the system's directories or contains one.
pub(super) fn is_wide(path: &HostPath) -> bool {
    let places = ["/var", "/run"].iter().map(Path::new);
    let roots = SYSTEM.roots.iter().map(|root| root.path.as_path());
    roots.chain(places).any(|place| place.starts_with(path.as_path()))
}

pub(super) fn mounts(case: &Case<'_>, rootfs: Option<&Rootfs>) -> Result<Vec<Mount>, ResolveError> {
    let mut mounts = fixed();
    if rootfs.is_some() {
        // An image has a `/var` of its own, with things that its programs look for.
        mounts.retain(|mount| mount.target.as_path() != Path::new("/var"));
        mounts.extend(network::resolver_of_image(case));
        return Ok(mounts);
    }
    for root in &SYSTEM.roots {
        if let Some(content) = shown(case, &root.path) {
            mounts.push(mount(&root.path, content, &root.reason)?);
        }
    }
    for mask in &SYSTEM.masks {
        for path in unfolded(case, &mask.path) {
            if case.facts.kind(&path).is_ok_and(|entry| could_read(case, &entry)) {
                mounts.push(mount(&path, Content::Masked, &mask.reason)?);
            }
        }
    }
    mounts.extend(match case.spec.network.value {
        Network::None | Network::Proxied => None,
        Network::Nat => network::resolver(case),
        Network::Host => resolver(case),
    });
    Ok(mounts)
}

/// `/var/tmp` is `/tmp`, unless something is mounted below it, which cannot be below a link.
pub(super) fn keep_temporary_directory(system: &mut Vec<Mount>, others: &[Mount]) {
    let place = BoxPath::new(VAR_TMP).expect("absolute");
    if others.iter().any(|mount| mount.target == place) {
        system.retain(|mount| mount.target != place);
    } else if others.iter().any(|mount| mount.target.is_within(&place))
        && let Some(mount) = system.iter_mut().find(|mount| mount.target == place)
    {
        mount.content = Content::Scratch { size: 0 };
    }
}

/// Hides our own state where a directory of the host that is shown holds it.
pub(super) fn with_state_masked(case: &Case<'_>, table: MountTable) -> Result<MountTable, ResolveError> {
    let place = case.state.real.same_inside();
    if !matches!(table.at(&place), Some(Mount { content: Content::Host { .. }, .. })) {
        return Ok(table);
    }
    let mut mounts: Vec<Mount> = table.iter().cloned().collect();
    mounts.push(mount(place.as_path(), Content::Masked, "no sandbox sees the state of another")?);
    MountTable::new(mounts).map_err(ResolveError::Conflict)
}

/// A size of nought leaves the bound to the kernel: half of the memory.
fn fixed() -> Vec<Mount> {
    let places = [
        ("/proc", Content::Processes, "the sandbox's own processes"),
        ("/dev", Content::Devices, "the few devices every program may have"),
        ("/tmp", Content::Scratch { size: 0 }, "temporary files, gone with the processes"),
        ("/run", Content::Empty, "no socket of the host is reachable"),
        ("/var", Content::Empty, "the host's state is not seen"),
        (VAR_TMP, Content::Link { to: "/tmp".to_owned() }, "the other place for temporary files"),
    ];
    places.map(|(path, content, reason)| mount(Path::new(path), content, reason).expect("absolute")).into()
}

pub(super) fn mount(path: &Path, content: Content, reason: &str) -> Result<Mount, ResolveError> {
    let target = BoxPath::new(path).map_err(ResolveError::MountPath)?;
    Ok(Mount { target, content, reason: reason.to_owned(), origin: Origin::Default })
}

/// How a place of the system appears inside, if it exists.
fn shown(case: &Case<'_>, path: &Path) -> Option<Content> {
    match case.facts.kind(path).ok()?.kind {
        Kind::Symlink => {
            let to = case.facts.read_link(path).ok()?.to_str()?.to_owned();
            Some(Content::Link { to })
        }
        Kind::Directory => Some(read_only(HostPath::new(path).ok()?)),
        Kind::File | Kind::Socket | Kind::Special => None,
    }
}

fn read_only(source: HostPath) -> Content {
    Content::Host { source, access: HostAccess::Read, ownership: Ownership::System, identity: None }
}

/// The paths a mask names: itself, or the entries its last component fits.
fn unfolded(case: &Case<'_>, path: &Path) -> Vec<PathBuf> {
    let (Some(directory), Some(pattern)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
    else {
        return Vec::new();
    };
    if !pattern.contains('*') {
        return vec![path.to_owned()];
    }
    let entries = case.facts.top_level(directory, 1000).unwrap_or_default();
    let names =
        entries.into_iter().map(|entry| entry.name).filter(|name| matches(pattern, name, Syntax::Path));
    names.map(|name| directory.join(name)).collect()
}

/// Whether the workload could read it. An ordinary caller keeps its ids and its groups, so what it can read
/// counts; the workload of root has ids of its own and reads only what everyone may.
fn could_read(case: &Case<'_>, entry: &Entry) -> bool {
    match entry.kind {
        // A link is hidden by what it leads to, not by itself: nothing can be mounted on it.
        Kind::Symlink => false,
        _ if case.host.uid == 0 => entry.mode & 0o005 != 0,
        _ => entry.readable,
    }
}

/// The file that `/etc/resolv.conf` leads to, when it lies outside what is shown.
fn resolver(case: &Case<'_>) -> Option<Mount> {
    if case.facts.kind(RESOLVER).ok()?.kind != Kind::Symlink {
        return None;
    }
    let real = HostPath::new(case.facts.real_path(RESOLVER).ok()?).ok()?;
    let shown = SYSTEM.roots.iter().any(|root| real.as_path().starts_with(&root.path));
    if shown || case.facts.kind(&real).ok()?.kind != Kind::File {
        return None;
    }
    mount(real.as_path(), read_only(real.clone()), "the resolver's configuration, which /etc points to").ok()
}
