//! A ground of a sandbox's own: a recorded state of the source, written out below the sandbox's directory, for an
//! overlay to stand on instead of the source.
//!
//! With `--base store` it is there from the start, so that nothing the user does to the source is ever seen inside. A
//! sandbox that stood on the source gets one when the source is gone, or is another directory by now. Nothing of
//! ours writes to it once it is complete, and the overlay never does.

use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use fs_err as fs;
use sandtable_store::checkout::{self, checkout};
use sandtable_store::copy::{self, copy};
use sandtable_store::dir::{open_named, stat_fd};
use sandtable_store::id::ObjectId;
use sandtable_store::remove::remove_tree;

use super::super::create::make;
use super::super::directory::SandboxDirectory;
use super::super::error::SessionError;
use super::super::record::Record;
use super::super::watcher::Watcher;
use super::{git, open, state};
use crate::board::{self, Counts, Hearing, Ignored, Taking};
use crate::model::mount::{Content, FileIdentity};
use crate::model::path::HostPath;
use crate::model::resolved::{RepositoryConfig, SourceKind, Warning};
use crate::model::spec::{Base, Lifetime, WorkspaceMode};
use crate::repository::base_head;
use crate::resolve::WORKSPACE;

/// Where the ground of the workspace is, and that of the git directory a linked worktree shares.
const PLACE: &str = "base";
const GIT_PLACE: &str = "base-git";
/// The layer of that git directory.
pub(in crate::session) const GIT: &str = "git";

/// Gives a sandbox in the making the ground it asked for. `base` is the snapshot to write out; the source as it is
/// now, with its git directory, if there is none.
pub(in crate::session) fn lay(
    directory: &SandboxDirectory,
    record: &mut Record,
    base: Option<ObjectId>,
    watcher: &dyn Watcher,
) -> Result<(), SessionError> {
    if record.resolved.base.value != Base::Store || record.resolved.mode.value != WorkspaceMode::Overlay {
        return Ok(());
    }
    let (snapshot, head) = if let Some(snapshot) = base {
        (snapshot, None)
    } else {
        let head = base_head(&record.resolved.source.root);
        (record_all(directory, record, watcher)?, head)
    };
    write_out(directory, record, snapshot)?;
    if base.is_none() {
        bring_git(directory, record)?;
        if record.resolved.repository_config == RepositoryConfig::WithoutPasswords {
            git::clean(&directory.path().join(PLACE).join(".git/config"))?;
            git::clean(&directory.path().join(GIT_PLACE).join("config"))?;
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
    for place in [PLACE, GIT_PLACE] {
        let place = directory.path().join(place);
        remove_tree(place.as_path())
            .map_err(|error| SessionError::state("remove", place.as_path())(error.source))?;
    }
    write_out(directory, record, snapshot)?;
    git::let_go(directory, record)?;
    rest_on_own(directory, record);
    Ok(())
}

/// Whether the source is still the directory that the sandbox was made on.
pub(super) fn is_there(record: &Record) -> bool {
    let found = open_named(record.resolved.source.root.as_path()).and_then(|dir| stat_fd(dir.as_fd()));
    let known = record.resolved.mounts.iter().find_map(|mount| match &mount.content {
        Content::Cow { layer, identity, .. } | Content::Copy { layer, identity, .. }
            if layer == WORKSPACE =>
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
    watcher: &dyn Watcher,
) -> Result<ObjectId, SessionError> {
    let hearing = Heard::new(watcher);
    let taking = Taking { message: Some("the source"), ..Taking::of(Ignored::All, "onboard", &hearing) };
    let source = record.resolved.source.root.as_path();
    let recorded = directory.board().onboard_changed(source, &taking);
    watcher.recorded();
    Ok(recorded?.id)
}

fn write_out(
    directory: &SandboxDirectory,
    record: &mut Record,
    snapshot: ObjectId,
) -> Result<(), SessionError> {
    let store = directory.board().of_source(record.resolved.source.root.as_path())?;
    let store = store.ok_or_else(|| SessionError::NoBase(record.name.clone()))?;
    let place = directory.path().join(PLACE);
    make(&place)?;
    let target = open(place.as_path())?;
    let state = state(&store, &snapshot)?;
    let outcome = checkout(store.objects(), &state, target.as_fd(), &checkout::CheckoutOptions::default())
        .map_err(|source| board::BoardError::Checkout { path: place.as_path().to_owned(), source })?;
    if let SourceKind::LinkedWorktree { .. } = record.resolved.source.kind {
        make(&directory.path().join(GIT_PLACE))?;
    }
    let left_out = outcome.skipped.iter().map(|entry| {
        let text = format!("inside, `{}` {}", entry.path.display_escaped(), entry.why);
        Warning::new("not-written", text)
    });
    record.resolved.warnings.extend(left_out);
    Ok(())
}

/// Copies the git directory as it is now, which is no part of a state.
fn bring_git(directory: &SandboxDirectory, record: &Record) -> Result<(), SessionError> {
    let source = record.resolved.source.root.join(".git");
    let target = directory.path().join(PLACE).join(".git");
    match &record.resolved.source.kind {
        SourceKind::Plain => Ok(()),
        SourceKind::Git => {
            make(&target)?;
            copy_all(&source, &target)
        }
        SourceKind::LinkedWorktree { common } => {
            // Only a file that says where the shared one is.
            fs::copy(source.as_path(), target.as_path())
                .map_err(SessionError::state("copy", source.as_path()))?;
            copy_all(common, &directory.path().join(GIT_PLACE))
        }
    }
}

fn copy_all(from: &HostPath, to: &HostPath) -> Result<(), SessionError> {
    let (source, target) = (open(from.as_path())?, open(to.as_path())?);
    let options = copy::CopyOptions {
        // Somebody who is at work in the repository now is not at work in the copy.
        leave_out: &|path, _| path.name().is_some_and(|name| name.ends_with(b".lock")),
        progress: &|_| {},
        cancelled: &|| false,
    };
    let copied = copy(source.as_fd(), target.as_fd(), &options);
    copied.map_err(|source| SessionError::Copy { path: from.as_path().to_owned(), source })?;
    Ok(())
}

fn rest_on_own(directory: &SandboxDirectory, record: &mut Record) {
    let mounts = &mut record.resolved.mounts;
    mounts.rest_on(WORKSPACE, &directory.path().join(PLACE));
    mounts.rest_on(GIT, &directory.path().join(GIT_PLACE));
}

/// Who watches the run hears of the recording. It ends if they go away.
pub(super) struct Heard<'a> {
    watcher: &'a dyn Watcher,
    alone: AtomicBool,
}

impl<'a> Heard<'a> {
    pub(super) fn new(watcher: &'a dyn Watcher) -> Self {
        Self { watcher, alone: AtomicBool::new(false) }
    }
}

impl Hearing for Heard<'_> {
    fn counted(&self, counts: &Counts) {
        self.watcher.recording(counts.entries, counts.bytes_read);
        self.alone.fetch_or(self.watcher.is_alone(), Ordering::Relaxed);
    }

    fn cancel(&self) -> &AtomicBool {
        &self.alone
    }
}
