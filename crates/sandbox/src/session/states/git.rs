//! Holding the git directory of a source to what it was when a sandbox was made.
//!
//! Inside, git and files have one base. The files are pinned when they are found to have moved; `HEAD`, references and
//! index are held before the first mount, since a commit outside must not be seen by a command that runs. See
//! `sandtable_store::layer::hold` for what that is and how it is done.

use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use fs_err as fs;
use rustix::io::Errno;
use sandtable_store::dir::{names, stat_at};
use sandtable_store::id::ObjectId;
use sandtable_store::layer::hold::{GitDirectory, Reword, hold_git};
use sandtable_store::path::RelPath;
use sandtable_store::regular;
use sandtable_store::remove::remove_at;
use sandtable_store::source::repository::Repository;

use super::super::create::make;
use super::super::directory::{SandboxDirectory, Sandboxes};
use super::super::error::SessionError;
use super::super::furnish::opened;
use super::super::record::Record;
use super::objects::{lend, take_back};
use super::{StandsOn, open};
use crate::model::causes::chained;
use crate::model::layer::LayerName;
use crate::model::layout::LayerPart;
use crate::model::path::HostPath;
use crate::model::resolved::{RepositoryConfig, ResolvedSpec, SourceKind, Warning};
use crate::model::spec::WorkspaceMode;
use crate::repository::{BaseHead, head_in};
use crate::resolve::{LENDER, without_passwords};

/// More than any configuration has.
const LARGEST: u64 = 16 << 20;

/// Which git directory a sandbox sees, and in which of its layers.
struct Place {
    layer: LayerName,
    lower: HostPath,
    /// The git directory in the layer, the common one of a linked worktree.
    at: RelPath,
    worktree: Option<Vec<u8>>,
}

impl Place {
    /// None for a sandbox that has no repository, or one of its own that nobody else moves.
    fn of(record: &Record) -> Option<Self> {
        let resolved = &record.resolved;
        if resolved.mode.value != WorkspaceMode::Overlay || !record.sees_source() {
            return None;
        }
        let root = &resolved.source.root;
        match &resolved.source.kind {
            SourceKind::Plain => None,
            SourceKind::Git => {
                let at = within(root.as_path())?;
                Some(Self { layer: LayerName::Workspace, lower: root.clone(), at, worktree: None })
            }
            SourceKind::LinkedWorktree { common } => {
                let own = Repository::find(root.as_path()).ok()??.git_dir;
                let worktree = own.file_name()?.as_bytes().to_vec();
                Some(Self {
                    layer: LayerName::GitDirectory,
                    lower: common.clone(),
                    at: RelPath::root(),
                    worktree: Some(worktree),
                })
            }
        }
    }

    fn pins(&self, directory: &SandboxDirectory) -> HostPath {
        directory.layer(&self.layer, LayerPart::Pins)
    }

    /// Puts into the layer what `twin` has of the git directory, or else what the source has, and shows the source's objects
    /// beside it.
    fn hold(
        &self,
        directory: &SandboxDirectory,
        twin: Option<&HostPath>,
        resolved: &mut ResolvedSpec,
    ) -> Result<(), SessionError> {
        let pins = self.pins(directory);
        if !pins.as_path().exists() {
            make(&pins)?;
        }
        let source = opened(&self.lower, resolved.mounts.identity(&self.layer))?;
        let (layer, twin) = (open(pins.as_path())?, twin.map(|twin| open(twin.as_path())).transpose()?);
        let lends = lend(&mut resolved.mounts, (source.as_fd(), &self.at), layer.as_fd());
        let git = GitDirectory {
            lower: twin.as_ref().unwrap_or(&source).as_fd(),
            at: &self.at,
            worktree: self.worktree.as_deref(),
            reword: (resolved.repository_config == RepositoryConfig::WithoutPasswords)
                .then_some(&without_passwords as Reword<'_>),
            lender: lends.then_some(LENDER.as_bytes()),
        };
        hold_git(layer.as_fd(), &git)
            .map_err(|errno| SessionError::state("hold", self.git().as_path())(errno.into()))?;
        resolved.mounts.cover(&self.layer);
        Ok(())
    }

    fn git(&self) -> HostPath {
        self.lower.join(OsStr::from_bytes(self.at.as_bytes()))
    }
}

/// Where in a source its git directory is.
fn within(root: &Path) -> Option<RelPath> {
    let dot_git = root.join(".git");
    if fs::symlink_metadata(&dot_git).ok()?.is_dir() {
        return RelPath::new(".git").ok();
    }
    let real = fs::canonicalize(Repository::find(root).ok()??.git_dir).ok()?;
    RelPath::new(real.strip_prefix(root).ok()?.as_os_str().as_bytes()).ok()
}

/// Holds the git directory of a new sandbox's source. Where that is not possible git goes on with its source inside, and a
/// warning says so; but a configuration that must not be seen as it is stops the sandbox.
pub(in crate::session) fn hold(
    directory: &SandboxDirectory,
    record: &mut Record,
) -> Result<(), SessionError> {
    let Some(place) = Place::of(record) else {
        take_back(&mut record.resolved.mounts);
        return Ok(());
    };
    let config = record.resolved.repository_config;
    match place.hold(directory, None, &mut record.resolved) {
        Ok(()) => {}
        Err(error) if config == RepositoryConfig::WithoutPasswords => return Err(error),
        Err(error) => {
            take_back(&mut record.resolved.mounts);
            let text = format!("inside, git follows the source, not its state now: {}", chained(&error));
            record.resolved.warnings.push(Warning::new("git-follows-source", text));
        }
    }
    Ok(())
}

/// Holds the git directory of a new sandbox to what another one on the same state has, or else to what it is now.
/// Returns where `HEAD` is, if another sandbox knows.
pub(super) fn inherit(
    sandboxes: &Sandboxes,
    base: ObjectId,
    (directory, record): (&SandboxDirectory, &mut Record),
) -> Result<Option<BaseHead>, SessionError> {
    let Some(place) = Place::of(record) else {
        take_back(&mut record.resolved.mounts);
        return Ok(None);
    };
    let twin = twin(sandboxes, base, &place, record);
    let inherited = twin.and_then(|(pins, stands_on)| {
        let held = place.hold(directory, Some(&pins), &mut record.resolved).ok();
        held.and(stands_on.head)
    });
    if inherited.is_none() {
        hold(directory, record)?;
    }
    Ok(inherited)
}

/// Another sandbox of the same source that stands on the same state and holds its git directory.
fn twin(
    sandboxes: &Sandboxes,
    base: ObjectId,
    place: &Place,
    record: &Record,
) -> Option<(HostPath, StandsOn)> {
    let names = sandboxes.names().ok()?;
    names.into_iter().filter(|name| *name != record.name).find_map(|name| {
        let directory = sandboxes.at(&name);
        let stands_on = directory.read_base().ok()??;
        let other = directory.read_record().ok()?;
        let same = stands_on.snapshot == base && other.resolved.source.root == record.resolved.source.root;
        let pins = place.pins(&directory);
        let held = pins.as_path().join(OsStr::from_bytes(place.at.as_bytes())).join("refs").exists();
        (same && held && stands_on.head.is_some()).then_some((pins, stands_on))
    })
}

/// Where `HEAD` is in what a sandbox holds of its git directory.
pub(super) fn held_head(directory: &SandboxDirectory, record: &Record) -> Option<BaseHead> {
    let place = Place::of(record)?;
    let common = place.pins(directory).as_path().join(OsStr::from_bytes(place.at.as_bytes()));
    let own = match &place.worktree {
        None => common.clone(),
        Some(name) => common.join("worktrees").join(OsStr::from_bytes(name)),
    };
    head_in(&own, &common)
}

/// The source is gone, with its objects: what was held of its git directory says nothing any more.
pub(super) fn let_go(directory: &SandboxDirectory, record: &mut Record) -> Result<(), SessionError> {
    take_back(&mut record.resolved.mounts);
    let layer = match record.resolved.source.kind {
        SourceKind::Plain => return Ok(()),
        SourceKind::Git => LayerName::Workspace,
        SourceKind::LinkedWorktree { .. } => LayerName::GitDirectory,
    };
    let pins = directory.layer(&layer, LayerPart::Pins);
    let Ok(held) = open(pins.as_path()) else { return Ok(()) };
    let cleared = (|| {
        for entry in names(held.as_fd())? {
            let is_git = layer == LayerName::GitDirectory || entry.bytes == b".git";
            // A git directory that was hidden stays hidden.
            if is_git && !stat_at(held.as_fd(), &entry.bytes)?.is_null_device() {
                remove_at(held.as_fd(), &entry.bytes)?;
            }
        }
        Ok(())
    })();
    cleared.map_err(|errno: Errno| SessionError::state("clear", pins.as_path())(errno.into()))
}

/// Takes passwords out of the configuration of a git directory that is a copy of ours.
pub(in crate::session) fn clean(config: &HostPath) -> Result<(), SessionError> {
    let is_file = fs::symlink_metadata(config.as_path()).is_ok_and(|meta| meta.is_file());
    if !is_file {
        return Ok(());
    }
    let text =
        regular::read(config.as_path(), LARGEST).map_err(SessionError::state("read", config.as_path()))?;
    match without_passwords(&text) {
        None => Ok(()),
        Some(text) => {
            fs::write(config.as_path(), text).map_err(SessionError::state("write", config.as_path()))
        }
    }
}
