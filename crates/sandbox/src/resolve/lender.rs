//! The objects of the source's git directory at a place of their own, read-only: git inside borrows from there.
//!
//! They are among the mounts of the resolved request, so that whoever asks for the policy hears of them, and with device and
//! inode, so that nothing else is ever mounted there. The session checks them by handle before it makes use of them.

use sandtable_store::dir::Kind;
use sandtable_store::path::RelPath;

use super::case::Case;
use super::error::ResolveError;
use super::hide::fits;
use super::repository;
use super::source::Workspace;
use crate::facts;
use crate::model::engine::Maker;
use crate::model::hide::HidePattern;
use crate::model::layer::LayerName;
use crate::model::mount::{Content, HostAccess, Mount, MountTable, Ownership};
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::{Mode, SourceKind};
use crate::model::setting::Origin;
use crate::model::spec::{Base, WorkspaceMode};

/// Where they are. Programs that take the directory around objects for a repository look for `objects` in it.
pub const LENDER: &str = "/.sandtable/objects";

/// Where the objects are shown.
pub(crate) fn place() -> BoxPath {
    BoxPath::new(LENDER).expect("an absolute path")
}

/// `mounts` with the objects of the workspace's git directory, where they can be lent.
pub(super) fn with_lender(
    case: &Case<'_>,
    (workspace, mode): (&Workspace, &Mode),
    mut mounts: MountTable,
) -> Result<MountTable, ResolveError> {
    if let Some(lender) = lender(case, (workspace, mode), &mounts) {
        mounts.add(lender).map_err(ResolveError::Conflict)?;
    }
    Ok(mounts)
}

fn lender(case: &Case<'_>, (workspace, mode): (&Workspace, &Mode), mounts: &MountTable) -> Option<Mount> {
    // The engine of a container looks up the path itself, when a command of another sandbox may have put a link there.
    if case.traits().mounts != Maker::Sandtable
        || mode.value != WorkspaceMode::Overlay
        || case.spec.base.value == Base::Store
    {
        return None;
    }
    let git = git_directory(case, workspace)?;
    let source = git.join("objects");
    let is_directory = case.facts.kind(&source).ok()?.kind == facts::Kind::Directory;
    let is_free =
        place().parent().is_none_or(|above| mounts.iter().all(|mount| !mount.target.is_within(&above)));
    if !is_directory || !is_free || is_covered(workspace, &git, mounts) || is_hidden(case, workspace, &git) {
        return None;
    }
    let identity = case.identity(&source);
    let content = Content::Host { source, access: HostAccess::Read, ownership: Ownership::Caller, identity };
    let reason = "the repository's objects, which git borrows".to_owned();
    Some(Mount { target: place(), content, reason, origin: Origin::Default })
}

fn git_directory(case: &Case<'_>, workspace: &Workspace) -> Option<HostPath> {
    match &workspace.kind {
        SourceKind::Plain => None,
        SourceKind::Git => repository::own(case, &workspace.root),
        SourceKind::LinkedWorktree { common } => Some(common.clone()),
    }
}

/// Whether something is mounted over the git directory, a part of it, or the file that leads to it.
fn is_covered(workspace: &Workspace, git: &HostPath, mounts: &MountTable) -> bool {
    let (root, inside) = (workspace.root.same_inside(), git.same_inside());
    let is_own = |mount: &Mount| {
        matches!(&mount.content, Content::Cow { layer: LayerName::Workspace | LayerName::GitDirectory, .. })
    };
    let covers = |target: &BoxPath| {
        target.is_within(&inside)
            || (inside.is_within(target) && target.is_within(&root))
            || target.is_within(&root.join(".git"))
    };
    mounts.iter().any(|mount| !is_own(mount) && covers(&mount.target))
}

/// Whether the user hides the git directory, or wants to hide a part of it.
fn is_hidden(case: &Case<'_>, workspace: &Workspace, git: &HostPath) -> bool {
    let Ok(below) = git.as_path().strip_prefix(workspace.root.as_path()) else { return false };
    let ways = below.ancestors().filter_map(|way| RelPath::new(way.to_str()?).ok());
    let ways: Vec<RelPath> = ways.filter(|way| !way.is_root()).collect();
    let hides = |pattern: &HidePattern| {
        ways.iter().any(|way| fits(pattern, way, Kind::Directory)) || pattern.glob().starts_with(".git/")
    };
    case.spec.hide.iter().any(|pattern| hides(&pattern.value))
}

/// Refuses to hide the `.git` of a linked worktree: that is a file, and what it leads to would still be shown.
pub(super) fn check_hidden(case: &Case<'_>, workspace: &Workspace) -> Result<(), ResolveError> {
    let SourceKind::LinkedWorktree { common } = &workspace.kind else { return Ok(()) };
    let dot_git = RelPath::new(".git").expect("a name");
    let means_it = |pattern: &HidePattern| {
        fits(pattern, &dot_git, Kind::Directory) || pattern.glob().starts_with(".git/")
    };
    match case.spec.hide.iter().find(|pattern| means_it(&pattern.value)) {
        Some(pattern) => Err(ResolveError::HideLinkedWorktree {
            pattern: pattern.value.to_string(),
            common: common.clone(),
        }),
        None => Ok(()),
    }
}
