//! What a command changed, and what moved in the source meanwhile.
//!
//! While the command runs, a thread looks over the source, stat only. If the command ends first, the thread
//! is told to stop: what was removed in so short a time is then named by its directory. After the command
//! one more look over the source finds the drift; the layers are read by `store`. Where the state of the source is still being
//! recorded by then, as it is after a short command, what that walk sees from then on is not looked at a second time.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::{CWD, Mode, OFlags, openat};
use sandtable_store::layer::tree::Pair;
use sandtable_store::layer::{self, Lower};
use sandtable_store::source::{self, Drift, Listing, Owners, Sightings, SourceOptions, Stamp};

use super::directory::SandboxDirectory;
use super::error::SessionError;
use super::furnish::CopyEntry;
use super::live;
use super::record::{ChangeEntry, ChangeKind, Changes, DriftEntry, GitState, Record, SkippedEntry};
use super::states::Seen;
use crate::model::layer::LayerName;
use crate::model::layout::LayerPart;
use crate::model::mount::{Content, Mount, Pins};
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::{Identity, ResolvedSpec, Warning};
use crate::model::spec::{Lifetime, Secrets, WorkspaceMode};
use crate::resolve::{Hidden, secret_names};

/// How many names a warning lists.
const NAMED: usize = 5;

/// What was found after a command.
#[derive(Debug, Default)]
pub(super) struct Capture {
    pub(super) changes: Option<Changes>,
    pub(super) drift: Vec<DriftEntry>,
    /// The same, with paths as they are.
    pub(super) moved: Vec<Drift>,
    pub(super) warnings: Vec<Warning>,
}

/// The source, watched from before it is mounted.
#[derive(Debug)]
pub(super) struct Watch {
    root: PathBuf,
    lifetime: Lifetime,
    identity: Identity,
    /// Whatever changed in the source since this moment is not the state the sandbox was made on.
    moment: Stamp,
    cancel: Arc<AtomicBool>,
    scan: Option<JoinHandle<()>>,
    look: Look,
    sightings: Arc<Sightings>,
}

impl Watch {
    /// Takes the moment. Must be called before the source is mounted.
    pub(super) fn new(record: &Record) -> Self {
        let resolved = &record.resolved;
        Self {
            root: record.ground().as_path().to_owned(),
            lifetime: resolved.lifetime.value,
            identity: resolved.identity,
            moment: Stamp::now(),
            cancel: Arc::new(AtomicBool::new(false)),
            scan: None,
            look: Look::default(),
            sightings: Arc::default(),
        }
    }

    /// For whoever records the source meanwhile.
    pub(super) fn seen(&self) -> Seen {
        Seen { moment: self.moment, look: self.look.clone(), sightings: Arc::clone(&self.sightings) }
    }

    /// The command has ended: a look at the source from here on is one after it.
    pub(super) fn ended(&self) {
        self.cancel.store(true, Ordering::Relaxed);
        self.sightings.begin();
    }

    /// Starts to look over the source. The command runs by now, so a thread may.
    pub(super) fn start(&mut self) {
        if self.lifetime == Lifetime::Discard {
            return;
        }
        let (root, cancel) = (self.root.clone(), Arc::clone(&self.cancel));
        // A source that cannot be looked over now is looked over after the command, and told of then.
        let look = self.look.clone();
        let scan = move || {
            let cancelled = || cancel.load(Ordering::Relaxed);
            look.set(source::scan(&root, &SourceOptions::new(&cancelled)).ok());
        };
        self.scan = std::thread::Builder::new().spawn(scan).ok();
        if self.scan.is_none() {
            self.look.set(None);
        }
    }

    /// Reads the layers and compares the source with what it was. Whoever takes sightings has ended.
    pub(super) fn capture(
        mut self,
        directory: &SandboxDirectory,
        record: &Record,
    ) -> Result<Capture, SessionError> {
        self.ended();
        let before = self.scan.take().and_then(|scan| scan.join().ok()).and_then(|()| self.look.wait());
        let (changes, cut_off) = changes(directory, record)?;
        let mut capture = Capture { changes: Some(changes), ..Capture::default() };
        match self.look_again() {
            Ok(after) => {
                let drift = source::compare(before.as_deref(), &after, self.moment);
                if record.resolved.mode.value == WorkspaceMode::Live {
                    capture.changes = Some(live::changes(&self.root, &drift));
                } else {
                    capture.drift = drift.iter().map(drift_entry).collect();
                    capture.moved = drift;
                }
                capture.warnings = warnings(&after, &record.resolved);
            }
            Err(error) => {
                let text = format!("the source could not be looked over after the command: {error}");
                capture.warnings.push(Warning::new("drift-unknown", text));
            }
        }
        capture.warnings.extend(cut_off.iter().map(not_all_listed));
        Ok(capture)
    }

    fn look_again(&self) -> Result<Listing, source::SourceError> {
        let (users, groups) = ([self.identity.uid], [self.identity.gid]);
        // Every usual group exists in root's private range.
        let groups = (self.identity.uid != 0).then_some(&groups[..]);
        let owners = Owners { users: &users, groups };
        let options = SourceOptions { secrets: secret_names(), owners: Some(owners), cancelled: &|| false };
        source::scan_with(&self.root, &options, &self.sightings)
    }
}

/// A look over the source that is under way. Whoever waits for it must have seen it started.
#[derive(Clone, Debug, Default)]
pub(super) struct Look(Arc<(Mutex<Looked>, Condvar)>);

#[derive(Debug, Default)]
enum Looked {
    #[default]
    NotYet,
    /// Nothing if it was broken off.
    Done(Option<Arc<Listing>>),
}

impl Look {
    fn set(&self, listing: Option<Listing>) {
        let (looked, told) = &*self.0;
        *looked.lock().unwrap_or_else(PoisonError::into_inner) = Looked::Done(listing.map(Arc::new));
        told.notify_all();
    }

    /// Waits for the end of it.
    pub(super) fn wait(&self) -> Option<Arc<Listing>> {
        let (looked, told) = &*self.0;
        let mut looked = looked.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*looked {
                Looked::Done(listing) => return listing.clone(),
                Looked::NotYet => looked = told.wait(looked).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// What the layers hold against their sources, and the mounts of which that is not everything.
fn changes(directory: &SandboxDirectory, record: &Record) -> Result<(Changes, Vec<BoxPath>), SessionError> {
    let mut cut_off = Vec::new();
    let mut changes = Changes {
        added: 0,
        modified: 0,
        removed: 0,
        entries: Vec::new(),
        git: GitState::Untouched,
        skipped: Vec::new(),
    };
    let mut seen = BTreeSet::new();
    for mount in record.resolved.mounts.iter() {
        if let Content::Copy { layer, .. } = &mount.content
            && !seen.insert(layer)
        {
            // The same directory once more, at another name of the home directory.
            continue;
        }
        let (layer, found) = match &mount.content {
            Content::Cow { source, layer, pins, .. } => (layer, read_layer(directory, source, layer, *pins)),
            Content::Copy { source, layer, .. } => {
                let copies = directory.read_copies()?;
                let Some(entry) = copies.of(layer) else { continue };
                if *layer == LayerName::Workspace {
                    changes.skipped.extend(entry.skipped.iter().cloned());
                }
                (layer, read_copy(&directory.layout().copy(layer), source, entry, &record.resolved))
            }
            _ => continue,
        };
        let found = found.map_err(|source| SessionError::Capture { name: record.name.clone(), source })?;
        if found.truncated {
            cut_off.push(mount.target.clone());
        }
        add(&mut changes, mount, layer, found);
    }
    Ok((changes, cut_off))
}

/// A record that leaves something out has to say so.
fn not_all_listed(target: &BoxPath) -> Warning {
    let text =
        format!("there are more changes below `{target}` than the record can hold: it lists some of them");
    Warning::new("changes-not-listed", text)
}

fn read_layer(
    directory: &SandboxDirectory,
    source: &HostPath,
    layer: &LayerName,
    pins: Pins,
) -> Result<layer::LayerOutcome, layer::LayerError> {
    let upper = open(&directory.layer(layer, LayerPart::Upper))?;
    let mut lower = Vec::new();
    if pins == Pins::Present {
        lower.push(open(&directory.layer(layer, LayerPart::Pins))?);
    }
    lower.push(open(source)?);
    layer::read(upper.as_fd(), &Lower::new(lower), &layer::LayerOptions::default())
}

/// What a copy holds that it did not when it was made.
fn read_copy(
    copy: &HostPath,
    source: &HostPath,
    entry: &CopyEntry,
    resolved: &ResolvedSpec,
) -> Result<layer::LayerOutcome, layer::LayerError> {
    let (copy, from) = (open(copy)?, open(source)?);
    let hidden = Hidden::of(resolved);
    let is_workspace = *source == resolved.source.root;
    let pair = Pair {
        copy: copy.as_fd(),
        source: from.as_fd(),
        finished: entry.finished(),
        left_out: &|path, kind| is_workspace && hidden.picks(path, kind),
    };
    layer::tree::compare(pair, &layer::LayerOptions::default())
}

fn open(path: &HostPath) -> Result<OwnedFd, layer::LayerError> {
    openat(CWD, path.as_path(), OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| layer::LayerError::Open(errno.into()))
}

/// Adds what one layer holds. Layers of toolchains are caches of the sandbox: counted, not listed.
fn add(changes: &mut Changes, mount: &Mount, layer: &LayerName, found: layer::LayerOutcome) {
    let target = mount.target.to_string();
    let beside = (*layer != LayerName::Workspace).then_some(&target);
    if found.git == layer::GitState::Changed {
        changes.git = GitState::Changed;
    }
    if *layer == LayerName::GitDirectory {
        if !found.changes.is_empty() {
            changes.git = GitState::Changed;
        }
        return;
    }
    let listed = matches!(layer, LayerName::Workspace | LayerName::Mount(_));
    if !listed && !found.changes.is_empty() {
        let whose = if let LayerName::AgentHome(_) = layer { "an agent's home" } else { "a toolchain" };
        let why = format!("{} changed paths of {whose} stay in the sandbox", found.changes.len());
        changes.skipped.push(SkippedEntry { path: target, why });
        return;
    }
    for change in found.changes {
        match change.kind {
            ChangeKind::Added => changes.added += 1,
            ChangeKind::Removed => changes.removed += 1,
            _ => changes.modified += 1,
        }
        changes.entries.push(change_entry(&change, beside));
    }
    let place = |path: &sandtable_store::path::RelPath| match beside {
        Some(mount) => format!("{mount}/{}", path.display_escaped()),
        None => path.display_escaped(),
    };
    let skipped = found
        .skipped
        .iter()
        .map(|entry| SkippedEntry { path: place(&entry.path), why: entry.why.to_string() });
    let foreign = found.foreign.iter().map(|entry| SkippedEntry {
        path: place(&entry.path),
        why: format!("attribute {} is not obeyed: {}", entry.attribute, entry.why),
    });
    let found: Vec<SkippedEntry> = skipped.chain(foreign).collect();
    changes.skipped.extend(found);
}

fn change_entry(change: &layer::Change, mount: Option<&String>) -> ChangeEntry {
    let (path, path_hex) = change.path.to_text();
    ChangeEntry {
        kind: change.kind,
        path,
        path_hex,
        entry: change.entry,
        below: change.below,
        mount: mount.cloned(),
    }
}

pub(super) fn drift_entry(drift: &Drift) -> DriftEntry {
    DriftEntry { kind: drift.kind, path: drift.path.display_escaped() }
}

/// What the look over the source found that the user should know.
fn warnings(listing: &Listing, resolved: &ResolvedSpec) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code: &str, what: &str, paths: &[sandtable_store::path::RelPath]| {
        if let [_, ..] = paths {
            let mut names: Vec<String> =
                paths.iter().take(NAMED).map(|path| format!("`{}`", path.display_escaped())).collect();
            if paths.len() > NAMED {
                names.push(format!("and {} more", paths.len() - NAMED));
            }
            warnings.push(Warning::new(code, format!("{what}: {}", names.join(", "))));
        }
    };
    if resolved.secrets.value == Secrets::Warn {
        let mut seen = listing.secrets();
        let hidden = Hidden::of(resolved);
        seen.retain(|path| !hidden.covers(path));
        warn("secret-names", "the sandbox could read files whose names say secret", &seen);
    }
    warn(
        "foreign-owner",
        "inside, files of other owners or groups cannot be changed; `chown` them to be able to",
        &listing.outsiders(),
    );
    warn("source-unreadable", "directories of the source that could not be read", listing.unreadable());
    warnings
}
