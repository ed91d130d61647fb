//! A ground of a sandbox's own: a recorded state of the source, written out below the sandbox's directory, for an
//! overlay to stand on instead of the source.
//!
//! With `--base store` it is there from the start, so that nothing the user does to the source is ever seen inside. A
//! sandbox that stood on the source gets one when the source is gone, or is another directory by now. Nothing of
//! ours writes to it once it is complete, and the overlay never does.

use std::os::fd::AsFd as _;

use fs_err as fs;
use sandtable_store::checkout::{self, checkout};
use sandtable_store::copy::{self, copy};
use sandtable_store::dir::{open_named, stat_fd};
use sandtable_store::id::ObjectId;
use sandtable_store::meta::OperationKind;
use sandtable_store::remove::remove_tree;

use super::super::create::make;
use super::super::directory::SandboxDirectory;
use super::super::error::SessionError;
use super::super::record::Record;
use super::{git, open, state};
use crate::board::{self, Ignored, Taking};
use crate::model::layer::LayerName;
use crate::model::mount::{Content, FileIdentity};
use crate::model::observe::{Event, Observer};
use crate::model::path::HostPath;
use crate::model::resolved::{RepositoryConfig, SourceKind, Warning};
use crate::model::spec::{Base, Lifetime, WorkspaceMode};
use crate::repository::base_head;

/// Gives a sandbox in the making the ground it asked for. `base` is the snapshot to write out; the source as it is
/// now, with its git directory, if there is none.
pub(in crate::session) fn lay(
    directory: &SandboxDirectory,
    record: &mut Record,
    base: Option<ObjectId>,
    observer: &dyn Observer,
) -> Result<(), SessionError> {
    if record.resolved.base.value != Base::Store || record.resolved.mode.value != WorkspaceMode::Overlay {
        return Ok(());
    }
    let (snapshot, head) = if let Some(snapshot) = base {
        (snapshot, None)
    } else {
        let head = base_head(&record.resolved.source.root);
        (record_all(directory, record, observer)?, head)
    };
    write_out(directory, record, snapshot, observer)?;
    if base.is_none() {
        bring_git(directory, record, observer)?;
        if record.resolved.repository_config == RepositoryConfig::WithoutPasswords {
            git::clean(&directory.layout().base().join(".git/config"))?;
            git::clean(&directory.layout().base_git().join("config"))?;
        }
    }
    rest_on_own(directory, record);
    match record.resolved.lifetime.value {
        Lifetime::Keep => directory.stand_on(record, snapshot, head),
        Lifetime::Discard => Ok(()),
    }
}

/// Gives a sandbox whose source is no more a ground in its place.
pub(super) fn replace_source(
    directory: &SandboxDirectory,
    record: &mut Record,
    snapshot: ObjectId,
) -> Result<(), SessionError> {
    // What an attempt that was broken off left.
    for place in [directory.layout().base(), directory.layout().base_git()] {
        remove_tree(place.as_path())
            .map_err(|error| SessionError::state("remove", place.as_path())(error.source))?;
    }
    write_out(directory, record, snapshot, &())?;
    git::let_go(directory, record)?;
    rest_on_own(directory, record);
    Ok(())
}

/// Whether the source is still the directory that the sandbox was made on.
pub(super) fn is_there(record: &Record) -> bool {
    let found = open_named(record.resolved.source.root.as_path()).and_then(|dir| stat_fd(dir.as_fd()));
    let known = record.resolved.mounts.iter().find_map(|mount| match &mount.content {
        Content::Cow { layer, identity, .. } | Content::Copy { layer, identity, .. }
            if *layer == LayerName::Workspace =>
        {
            *identity
        }
        _ => None,
    });
    match (found, known) {
        (Err(_), _) => false,
        (Ok(found), Some(FileIdentity { inode, .. })) => found.ino == inode,
        (Ok(_), None) => true,
    }
}

/// Records the state of the source, files that git ignores too: what is not recorded would be missing inside.
fn record_all(
    directory: &SandboxDirectory,
    record: &Record,
    observer: &dyn Observer,
) -> Result<ObjectId, SessionError> {
    let taking =
        Taking { message: Some("the source"), ..Taking::of(Ignored::All, &OperationKind::Onboard, observer) };
    let source = record.resolved.source.root.as_path();
    let recorded = directory.board().onboard_changed(source, &taking);
    observer.event(&Event::Recorded);
    Ok(recorded?.id)
}

fn write_out(
    directory: &SandboxDirectory,
    record: &mut Record,
    snapshot: ObjectId,
    observer: &dyn Observer,
) -> Result<(), SessionError> {
    let store = directory.board().of_source(record.resolved.source.root.as_path())?;
    let store = store.ok_or_else(|| SessionError::NoBase(record.name.clone()))?;
    let place = directory.layout().base();
    make(&place)?;
    let target = open(place.as_path())?;
    let state = state(&store, &snapshot)?;
    let options = checkout::CheckoutOptions {
        cancelled: &|| observer.cancelled(),
        ..checkout::CheckoutOptions::default()
    };
    let outcome =
        checkout(store.objects(), &state, target.as_fd(), &options).map_err(|source| match source {
            checkout::CheckoutError::Cancelled => SessionError::Interrupted,
            source => board::BoardError::Checkout { path: place.as_path().to_owned(), source }.into(),
        })?;
    if let SourceKind::LinkedWorktree { .. } = record.resolved.source.kind {
        make(&directory.layout().base_git())?;
    }
    let left_out = outcome.skipped.iter().map(|entry| {
        let text = format!("inside, `{}` {}", entry.path.display_escaped(), entry.why);
        Warning::new("not-written", text)
    });
    record.resolved.warnings.extend(left_out);
    Ok(())
}

/// Copies the git directory as it is now, which is no part of a state.
fn bring_git(
    directory: &SandboxDirectory,
    record: &Record,
    observer: &dyn Observer,
) -> Result<(), SessionError> {
    let source = record.resolved.source.root.join(".git");
    let target = directory.layout().base().join(".git");
    match &record.resolved.source.kind {
        SourceKind::Plain => Ok(()),
        SourceKind::Git => {
            make(&target)?;
            copy_all(&source, &target, observer)
        }
        SourceKind::LinkedWorktree { common } => {
            // Only a file that says where the shared one is.
            fs::copy(source.as_path(), target.as_path())
                .map_err(SessionError::state("copy", source.as_path()))?;
            copy_all(common, &directory.layout().base_git(), observer)
        }
    }
}

fn copy_all(from: &HostPath, to: &HostPath, observer: &dyn Observer) -> Result<(), SessionError> {
    let (source, target) = (open(from.as_path())?, open(to.as_path())?);
    let options = copy::CopyOptions {
        // Somebody who is at work in the repository now is not at work in the copy.
        leave_out: &|path, _| path.name().is_some_and(|name| name.ends_with(b".lock")),
        progress: &|now| observer.event(&Event::Copying { files: now.files, bytes: now.bytes }),
        cancelled: &|| observer.cancelled(),
    };
    let copied = copy(source.as_fd(), target.as_fd(), &options);
    observer.event(&Event::Copied);
    match copied {
        Ok(_) => Ok(()),
        Err(copy::CopyError::Cancelled) => Err(SessionError::Interrupted),
        Err(source) => Err(SessionError::Copy { path: from.as_path().to_owned(), source }),
    }
}

fn rest_on_own(directory: &SandboxDirectory, record: &mut Record) {
    let mounts = &mut record.resolved.mounts;
    mounts.rest_on(&LayerName::Workspace, &directory.layout().base());
    mounts.rest_on(&LayerName::GitDirectory, &directory.layout().base_git());
}
