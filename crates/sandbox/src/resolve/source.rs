//! The directory a sandbox is a view of: the repository around the directory a command starts in, or that
//! directory alone. Too wide a directory, or one that holds what must stay out, is refused here.

use std::path::PathBuf;

use super::case::Case;
use super::error::{ResolveError, Width};
use super::repository::{self, Repository};
use super::{mode, system, warnings};
use crate::facts::Kind;
use crate::model::layer::LayerName;
use crate::model::mount::Mount;
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::{Mode, SourceKind, Warning};
use crate::model::setting::Origin;
use crate::model::spec::SourceGuard;

/// Files in which git keeps passwords, below the home directory.
const CREDENTIAL_STORES: &[&str] = &[".git-credentials", ".config/git/credentials"];

/// A checked source.
pub(super) struct Workspace {
    pub(super) directory: HostPath,
    pub(super) root: HostPath,
    pub(super) kind: SourceKind,
}

impl Workspace {
    /// Whether `path` is part of the workspace.
    pub(super) fn holds(&self, path: &BoxPath) -> bool {
        path.is_within(&self.root.same_inside())
    }

    /// The workspace at its own path and, for a linked worktree, the git directory it shares.
    pub(super) fn mounts(&self, case: &Case<'_>, mode: &Mode) -> Result<Vec<Mount>, ResolveError> {
        let mount = |path: &HostPath, layer: &LayerName, reason: &str| {
            Ok(Mount {
                target: path.same_inside(),
                content: mode::content(case, mode, path, layer)?,
                reason: reason.to_owned(),
                origin: case.spec.directory.origin.clone(),
            })
        };
        let mut mounts = vec![mount(&self.root, &LayerName::Workspace, "the workspace")?];
        if let SourceKind::LinkedWorktree { common } = &self.kind {
            let shared = mount(common, &LayerName::GitDirectory, "the git directory the worktree shares")?;
            mounts.push(Mount { origin: Origin::Default, ..shared });
        }
        Ok(mounts)
    }
}

pub(super) fn find(case: &Case<'_>, found: &mut Vec<Warning>) -> Result<Workspace, ResolveError> {
    let directory = directory(case)?;
    let (root, kind) = top(case, &directory, found);
    check(case, &root)?;
    Ok(Workspace { directory, root, kind })
}

/// The directory asked for, as a real path.
fn directory(case: &Case<'_>) -> Result<HostPath, ResolveError> {
    let path = case.spec.directory.value.clone();
    let real = match case.facts.real_path(&path) {
        Ok(real) => real,
        Err(why) => return Err(ResolveError::SourceMissing { path, why }),
    };
    match case.facts.kind(&real) {
        Ok(entry) if entry.kind == Kind::Directory => {}
        Ok(_) => return Err(ResolveError::SourceNotDirectory { path }),
        Err(why) => return Err(ResolveError::SourceMissing { path, why }),
    }
    if real.to_str().is_none() {
        return Err(ResolveError::SourceNotUnicode { path: real });
    }
    HostPath::new(real).map_err(ResolveError::MountPath)
}

/// The top of the repository around `directory`. A repository that would be refused, like one in the home
/// directory for its dot files, is no reason to refuse a project below it.
fn top(case: &Case<'_>, directory: &HostPath, found: &mut Vec<Warning>) -> (HostPath, SourceKind) {
    let home = case.home.as_ref().map(|home| &home.real);
    let mut next = Some(directory.clone());
    while let Some(place) = next {
        let repository = repository::at(case, &place);
        if repository.is_some() && place != *directory && width(case, &place).is_some() && refuses(case) {
            found.push(warnings::repository_too_wide(&place, directory));
            break;
        }
        match repository {
            Some(Repository::Own) => return (place, SourceKind::Git),
            Some(Repository::Linked { common }) => return (place, SourceKind::LinkedWorktree { common }),
            Some(Repository::Elsewhere { why }) => {
                found.push(warnings::git_directory_outside(&place, why));
                return (place, SourceKind::Plain);
            }
            None if Some(&place) == home => break,
            None => next = place.parent(),
        }
    }
    (directory.clone(), SourceKind::Plain)
}

fn refuses(case: &Case<'_>) -> bool {
    case.spec.source_guard.value == SourceGuard::Refuse
}

fn check(case: &Case<'_>, root: &HostPath) -> Result<(), ResolveError> {
    let path = || root.clone();
    if ["/proc", "/sys", "/dev"].iter().any(|pseudo| root.as_path().starts_with(pseudo)) {
        return Err(ResolveError::SourcePseudo { path: path() });
    }
    if refuses(case) {
        if let Some(why) = width(case, root) {
            return Err(ResolveError::SourceTooWide { path: path(), why });
        }
        if let Some(store) = credential_store(case, root) {
            return Err(ResolveError::SourceHoldsCredentials { path: path(), store });
        }
    }
    let state = || case.state.real.clone();
    if root.is_within(&case.state.real) {
        return Err(ResolveError::SourceInState { path: path(), state: state() });
    }
    if case.state.real.is_within(root) {
        return Err(ResolveError::SourceHoldsState { path: path(), state: state() });
    }
    Ok(())
}

fn width(case: &Case<'_>, root: &HostPath) -> Option<Width> {
    let home = case.home.as_ref().map(|home| &home.real);
    if root.parent().is_none() {
        Some(Width::Everything)
    } else if home == Some(root) {
        Some(Width::Home)
    } else if home.is_some_and(|home| home.is_within(root)) {
        Some(Width::AboveHome)
    } else if system::is_wide(root) {
        Some(Width::System)
    } else {
        None
    }
}

/// A credential store of git that the workspace would carry inside.
fn credential_store(case: &Case<'_>, root: &HostPath) -> Option<PathBuf> {
    let own = root.join(".git-credentials").as_path().to_owned();
    if case.facts.kind(&own).is_ok() {
        return Some(own);
    }
    let home = &case.home.as_ref()?.real;
    CREDENTIAL_STORES
        .iter()
        .filter_map(|name| case.facts.real_path(home.join(name)).ok())
        .find(|real| real.starts_with(root.as_path()))
}
