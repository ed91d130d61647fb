//! What a new sandbox holds besides empty layers: copies of directories, files of the caller in its private
//! home, and the values of variables that are written nowhere else.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::io::Errno;
use sandtable_store::copy::{self, copy};
use sandtable_store::dir::{open_named, stat_fd};
use sandtable_store::source::Stamp;
use serde::{Deserialize, Serialize};

use super::directory::SandboxDirectory;
use super::error::SessionError;
use super::record::{Record, SCHEMA, SkippedEntry};
use super::states::clean;
use crate::model::layer::LayerName;
use crate::model::layout::{COPIES, ENVIRONMENT};
use crate::model::mount::{Content, FileIdentity, Mount};
use crate::model::observe::{Event, Observer};
use crate::model::path::HostPath;
use crate::model::resolved::{RepositoryConfig, ResolvedSpec, Secrecy, Seed};
use crate::resolve::Hidden;

/// What is known of each copy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CopiesFile {
    schema: u32,
    copies: BTreeMap<LayerName, CopyEntry>,
}

/// One copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CopyEntry {
    /// Nanoseconds since 1970.
    finished: i64,
    pub(super) skipped: Vec<SkippedEntry>,
}

impl CopyEntry {
    pub(super) fn finished(&self) -> Stamp {
        Stamp::from_nanoseconds(self.finished)
    }
}

impl CopiesFile {
    pub(super) fn of(&self, layer: &LayerName) -> Option<&CopyEntry> {
        self.copies.get(layer)
    }
}

/// The values of concealed variables.
#[derive(Serialize, Deserialize)]
pub(super) struct EnvironmentFile {
    schema: u32,
    variables: BTreeMap<String, String>,
}

/// Makes every copy, unless the observer cancels it.
pub(super) fn copies(
    directory: &SandboxDirectory,
    resolved: &ResolvedSpec,
    observer: &dyn Observer,
) -> Result<(), SessionError> {
    let wanted: Vec<&Mount> =
        resolved.mounts.iter().filter(|mount| matches!(mount.content, Content::Copy { .. })).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let place = directory.layout().copies();
    fs::create_dir(place.as_path()).map_err(SessionError::state("make", place.as_path()))?;
    let mut file = CopiesFile { schema: SCHEMA, copies: BTreeMap::new() };
    let _over = Over(observer);
    for mount in wanted {
        let Content::Copy { source, layer, identity } = &mount.content else { continue };
        if file.copies.contains_key(layer) {
            continue;
        }
        let target = directory.layout().copy(layer);
        let options = copy::CopyOptions {
            leave_out: &|_, _| false,
            progress: &|now| observer.event(&Event::Copying { files: now.files, bytes: now.bytes }),
            cancelled: &|| observer.cancelled(),
        };
        let outcome = copy_one(&Copied { source, layer, identity: *identity }, resolved, &target, &options)?;
        if resolved.repository_config == RepositoryConfig::WithoutPasswords {
            match layer {
                LayerName::Workspace => clean_git(&target.join(".git"))?,
                LayerName::GitDirectory => clean_git(&target)?,
                _ => {}
            }
        }
        let skipped = outcome.skipped.iter();
        let skipped = skipped
            .map(|entry| SkippedEntry { path: entry.path.display_escaped(), why: entry.why.to_owned() });
        let entry = CopyEntry { finished: outcome.finished.as_nanoseconds(), skipped: skipped.collect() };
        file.copies.insert(layer.clone(), entry);
    }
    directory.write(COPIES, &file)
}

/// Copies the source once more, to a directory that is not there yet.
pub(super) fn copy_workspace(resolved: &ResolvedSpec, target: &HostPath) -> Result<(), SessionError> {
    let workspace = resolved.mounts.iter().find_map(|mount| match &mount.content {
        Content::Copy { source, layer, identity } if *layer == LayerName::Workspace => {
            Some(Copied { source, layer, identity: *identity })
        }
        _ => None,
    });
    let Some(workspace) = workspace else { return Ok(()) };
    let options = copy::CopyOptions { leave_out: &|_, _| false, progress: &|_| {}, cancelled: &|| false };
    copy_one(&workspace, resolved, target, &options).map(drop)
}

/// A directory to be copied.
struct Copied<'a> {
    source: &'a HostPath,
    layer: &'a LayerName,
    identity: Option<FileIdentity>,
}

/// Makes one copy, without what is hidden from the sandbox.
fn copy_one(
    copied: &Copied<'_>,
    resolved: &ResolvedSpec,
    target: &HostPath,
    options: &copy::CopyOptions<'_>,
) -> Result<copy::CopyOutcome, SessionError> {
    let Copied { source, layer, identity } = copied;
    fs::create_dir(target.as_path()).map_err(SessionError::state("make", target.as_path()))?;
    let hidden = Hidden::of(resolved);
    let options = copy::CopyOptions {
        leave_out: &|path, kind| **layer == LayerName::Workspace && hidden.picks(path, kind),
        progress: options.progress,
        cancelled: options.cancelled,
    };
    let (from, to) = (opened(source, *identity)?, opened(target, None)?);
    copy(from.as_fd(), to.as_fd(), &options).map_err(|error| match error {
        copy::CopyError::Cancelled => SessionError::Interrupted,
        error => SessionError::Copy { path: source.as_path().to_owned(), source: error },
    })
}

/// Takes passwords out of a git directory that is a copy of ours: its settings, and those of its worktrees.
fn clean_git(git: &HostPath) -> Result<(), SessionError> {
    clean(&git.join("config"))?;
    clean(&git.join("config.worktree"))?;
    let worktrees = git.join("worktrees");
    for entry in fs::read_dir(worktrees.as_path()).into_iter().flatten().flatten() {
        if let Some(name) = entry.file_name().to_str() {
            clean(&worktrees.join(name).join("config.worktree"))?;
        }
    }
    Ok(())
}

/// The same for a workspace that rests on a recorded state, written out below its own directory.
pub(super) fn clean_ground(
    directory: &SandboxDirectory,
    resolved: &ResolvedSpec,
) -> Result<(), SessionError> {
    if resolved.repository_config != RepositoryConfig::WithoutPasswords {
        return Ok(());
    }
    for mount in resolved.mounts.iter() {
        match &mount.content {
            Content::Cow { source, layer, .. }
                if source.as_path().starts_with(directory.path().as_path()) =>
            {
                match layer {
                    LayerName::Workspace => clean_git(&source.join(".git"))?,
                    LayerName::GitDirectory => clean_git(source)?,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Says that it is over, however it ends.
struct Over<'a>(&'a dyn Observer);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.event(&Event::Copied);
    }
}

/// Opens a directory that must still be the one that was checked.
pub(super) fn opened(path: &HostPath, identity: Option<FileIdentity>) -> Result<OwnedFd, SessionError> {
    let failed = |errno: Errno| SessionError::state("open", path.as_path())(errno.into());
    let opened = open_named(path.as_path()).map_err(failed)?;
    let found = stat_fd(opened.as_fd()).map_err(failed)?;
    match identity {
        Some(identity) if identity.inode != found.ino => Err(failed(Errno::STALE)),
        _ => Ok(opened),
    }
}

/// Copies files of the caller into the private home.
pub(super) fn seeds(directory: &SandboxDirectory, resolved: &ResolvedSpec) -> Result<(), SessionError> {
    resolved.seeds.iter().try_for_each(|seed| plant(&directory.layout().home(), seed))
}

fn plant(home: &HostPath, seed: &Seed) -> Result<(), SessionError> {
    let failed = |error| SessionError::state("copy", seed.source.as_path())(error);
    let place = home.join(&seed.place);
    let parent = place.parent().expect("below the home directory");
    fs::create_dir_all(parent.as_path()).map_err(SessionError::state("make", parent.as_path()))?;
    copy_file(seed.source.as_path(), place.as_path()).map_err(failed)
}

/// The new file is the caller's alone until it has its mode.
fn copy_file(from: &Path, to: &Path) -> std::io::Result<()> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = flags.bits().cast_signed();
    let mut source = fs::OpenOptions::new().read(true).custom_flags(flags).open(from)?;
    let data = source.metadata()?;
    if !data.is_file() {
        return Err(std::io::Error::other("it is no regular file any more"));
    }
    let mut target = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    std::io::copy(&mut source, &mut target)?;
    target.set_permissions(data.permissions())?;
    target.set_modified(data.modified()?)
}

impl SandboxDirectory {
    /// Keeps the values that the record does not hold, readable by the caller alone.
    pub(super) fn keep_values(&self, resolved: &ResolvedSpec) -> Result<(), SessionError> {
        let concealed = resolved.environment.iter().filter(|(_, found)| found.secrecy == Secrecy::Concealed);
        let variables: BTreeMap<String, String> =
            concealed.map(|(name, variable)| (name.clone(), variable.value.clone())).collect();
        if variables.is_empty() {
            return Ok(());
        }
        let path = self.path().join(ENVIRONMENT);
        let text = serde_json::to_vec(&EnvironmentFile { schema: SCHEMA, variables })
            .map_err(|source| SessionError::Record { path: path.as_path().to_owned(), source })?;
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path.as_path())
            .and_then(|mut file| file.write_all(&text))
            .map_err(SessionError::state("write", path.as_path()))
    }

    /// Puts the values into a record that is about to be used, never into one that is shown.
    pub(super) fn fill_in_values(&self, record: &mut Record) -> Result<(), SessionError> {
        let Some(mut file) = self.read_environment()? else { return Ok(()) };
        for (name, variable) in &mut record.resolved.environment {
            if let Some(value) =
                file.variables.remove(name).filter(|_| variable.secrecy == Secrecy::Concealed)
            {
                variable.value = value;
            }
        }
        Ok(())
    }
}
