//! What the user mounts with `SRC[:DST[:ro|rw|cow]]`. A source is what it says it is: a path that leads
//! somewhere else through a symbolic link is refused, because whoever could write the link would choose what
//! is exposed.

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use super::case::Case;
use super::data::{ReasonedPath, policy};
use super::error::ResolveError;
use super::overlay;
use crate::facts::{Entry, Kind};
use crate::model::layer::LayerName;
use crate::model::mount::{Content, FileIdentity, HostAccess, Mount, MountTable, Ownership, Pins};
use crate::model::path::{BoxPath, HostPath};
use crate::model::setting::Setting;
use crate::model::spec::{MountAccess, MountRequest};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Forbidden {
    sources: Vec<ReasonedPath>,
    targets: Vec<ReasonedPath>,
}

static FORBIDDEN: LazyLock<Forbidden> = LazyLock::new(|| policy!("mounts"));

pub(super) fn all(case: &Case<'_>) -> Result<Vec<Mount>, ResolveError> {
    case.spec.mounts.iter().enumerate().map(|(index, request)| one(case, request, index)).collect()
}

/// Refuses a target inside a directory of the host where nothing can be mounted, because there is no such
/// file or directory and none may be made.
pub(super) fn check_places(case: &Case<'_>, table: &MountTable) -> Result<(), ResolveError> {
    for mount in table.iter() {
        let above = mount.target.parent().and_then(|parent| table.at(&parent));
        let Some(Mount { content: Content::Host { source, .. }, target, .. }) = above else { continue };
        let rest = mount.target.below(target).expect("the mount above holds it");
        let place = source.as_path().join(rest);
        let is_directory = |path: &Path| {
            let real = case.facts.real_path(path).ok()?;
            Some(case.facts.kind(real).ok()?.kind == Kind::Directory)
        };
        let wanted = match &mount.content {
            Content::Host { source, .. } | Content::Cow { source, .. } | Content::Copy { source, .. } => {
                is_directory(source.as_path())
            }
            _ => continue,
        };
        if wanted != is_directory(&place) {
            let what = if wanted == Some(true) { "directory" } else { "file" };
            let why = format!("there is no {what} `{}` to mount it on", place.display());
            return Err(ResolveError::MountTarget { path: mount.target.as_path().to_owned(), why });
        }
    }
    Ok(())
}

fn one(case: &Case<'_>, request: &Setting<MountRequest>, index: usize) -> Result<Mount, ResolveError> {
    let asked = &request.value;
    let (source, entry) = source(case, &asked.source)?;
    let target = match &asked.target {
        Some(path) => target(case, path)?,
        None => target(case, source.as_path())?,
    };
    let content = match asked.access {
        MountAccess::Read => host(source, HostAccess::Read, entry),
        MountAccess::Write => host(source, HostAccess::Write, entry),
        MountAccess::Cow if entry.kind != Kind::Directory => {
            return Err(ResolveError::MountCowFile { path: source });
        }
        MountAccess::Cow => overlay::cow(case, &source, &LayerName::Mount(index), Pins::None)?,
    };
    let reason = format!("asked for by {}", request.origin);
    Ok(Mount { target, content, reason, origin: request.origin.clone() })
}

pub(super) fn host(source: HostPath, access: HostAccess, entry: Entry) -> Content {
    let identity = Some(FileIdentity { device: entry.device, inode: entry.inode });
    Content::Host { source, access, ownership: Ownership::Caller, identity }
}

/// The source as a checked real path, and what is there.
pub(super) fn source(case: &Case<'_>, path: &Path) -> Result<(HostPath, Entry), ResolveError> {
    let missing = |why| ResolveError::MountMissing { path: path.to_owned(), why };
    let absolute = absolute(case, path)?;
    let real = case.facts.real_path(&absolute).map_err(missing)?;
    let written = by_name(&absolute);
    if real != written {
        return Err(ResolveError::MountSymlink { written, real });
    }
    let entry = case.facts.kind(&real).map_err(missing)?;
    let real = HostPath::new(real).map_err(ResolveError::MountPath)?;
    match forbidden(case, &real, entry.kind) {
        Some(why) => Err(ResolveError::MountSource { path: real, why }),
        None => Ok((real, entry)),
    }
}

/// `path` made absolute, with the home directory and the directory of the command spelled without symbolic
/// links: neither is part of what was written here.
fn absolute(case: &Case<'_>, path: &Path) -> Result<PathBuf, ResolveError> {
    if path.is_absolute() {
        return Ok(case.at_home(path));
    }
    let base = &case.spec.directory.value;
    let missing = |why| ResolveError::SourceMissing { path: base.clone(), why };
    Ok(case.facts.real_path(base).map_err(missing)?.join(path))
}

/// What `path` would be if none of its components were a symbolic link.
fn by_name(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::Normal(name) => plain.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    plain
}

fn forbidden(case: &Case<'_>, path: &HostPath, kind: Kind) -> Option<String> {
    let overlaps = |other: &Path| other.starts_with(path.as_path()) || path.as_path().starts_with(other);
    if path.as_path().to_str().is_none() {
        return Some("its path is not valid UTF-8".to_owned());
    }
    if path.parent().is_none() {
        return Some("it is the root of the file system".to_owned());
    }
    if case.home.as_ref().is_some_and(|home| home.real.is_within(path)) {
        return Some("it is or contains the home directory".to_owned());
    }
    if overlaps(case.state.real.as_path()) {
        return Some(format!("Sandtable's own state is at `{}`", case.state.real));
    }
    if let Some(rule) = FORBIDDEN.sources.iter().find(|rule| overlaps(&rule.path)) {
        return Some(format!("`{}`: {}", rule.path.display(), rule.reason));
    }
    match kind {
        Kind::File | Kind::Directory => None,
        Kind::Socket => Some("a socket leads out of the sandbox".to_owned()),
        Kind::Special | Kind::Symlink => Some("it is neither a file nor a directory".to_owned()),
    }
}

pub(super) fn target(case: &Case<'_>, path: &Path) -> Result<BoxPath, ResolveError> {
    let target = BoxPath::new(case.at_home(path)).map_err(ResolveError::MountPath)?;
    let refused = |why: &str| ResolveError::MountTarget { path: path.to_owned(), why: why.to_owned() };
    if target.parent().is_none() {
        return Err(refused("it is the root of the sandbox"));
    }
    if target.as_path().to_str().is_none() {
        return Err(refused("it is not valid UTF-8"));
    }
    match FORBIDDEN.targets.iter().find(|rule| target.as_path().starts_with(&rule.path)) {
        Some(rule) => Err(refused(&rule.reason)),
        None => Ok(target),
    }
}
