//! Making a sandbox: its directory, its layers, its record. Complete or not there.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::time::SystemTime;

use fs_err as fs;
use rustix::fs::{CWD, Mode, OFlags, openat};
use sandtable_store::id::ObjectId;
use sandtable_store::layer::pins::write_whiteouts;
use sandtable_store::lock::FileLock;
use sandtable_store::path::RelPath;
use sandtable_store::remove::remove_tree;
use sandtable_store::source::find_chosen;

use super::directory::{SandboxDirectory, Sandboxes};
use super::error::SessionError;
use super::furnish;
use super::readable;
use super::record::{Record, SCHEMA};
use super::run::Request;
use super::states::{begin, hold, lay};
use crate::attention::Interruptible;
use crate::engine::{Place, can_start, engine};
use crate::model::engine::Maker;
use crate::model::id::SandboxName;
use crate::model::layout::{LayerPart, RECORD};
use crate::model::mount::{Content, Pins};
use crate::model::observe::Observer;
use crate::model::path::HostPath;
use crate::model::resolved::ResolvedSpec;
use crate::os;
use crate::random::random;
use crate::resolve::Hidden;

/// A sandbox that exists on disk and whose lock is held.
#[derive(Debug)]
pub(super) struct Created {
    pub(super) directory: SandboxDirectory,
    pub(super) lock: FileLock,
    pub(super) record: Record,
}

/// Which sandbox is to be made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted<'a> {
    /// One of its own if there is none.
    pub(super) name: Option<&'a SandboxName>,
    /// With `base = "store"`, the snapshot to stand on; the source as it is now if there is none.
    pub(super) base: Option<ObjectId>,
}

/// Makes a sandbox for `resolved`.
pub(super) fn create(
    sandboxes: &Sandboxes,
    resolved: ResolvedSpec,
    wanted: Wanted<'_>,
    request: Request<'_>,
) -> Result<Created, SessionError> {
    let created = prepare(sandboxes, resolved, wanted, request)?;
    match created.directory.write(RECORD, &created.record) {
        Ok(()) => Ok(created),
        Err(error) => {
            let _reaped_later = created.directory.delete();
            Err(error)
        }
    }
}

/// The same without its record: until that is written, nobody else sees a sandbox. If it is cancelled by the
/// observer or a signal, nothing is left.
pub(super) fn prepare(
    sandboxes: &Sandboxes,
    resolved: ResolvedSpec,
    wanted: Wanted<'_>,
    request: Request<'_>,
) -> Result<Created, SessionError> {
    can_start()?;
    let mut resolved = resolved;
    if resolved.engine.traits().processes == Maker::Engine {
        sandboxes.reap_containers()?;
    }
    let observer = &Interruptible::new(request.observer);
    engine(resolved.engine).prepare(&mut resolved, observer)?;
    let (name, directory, lock) = take_name(sandboxes, wanted.name)?;
    let mut record = draft(resolved, name, request.command);
    let filled = lay(&directory, &mut record, wanted.base, observer)
        .and_then(|()| furnish::clean_ground(&directory, &record.resolved))
        .and_then(|()| fill(&directory, &record.resolved, observer))
        .and_then(|()| if wanted.base.is_none() { hold(&directory, &mut record) } else { Ok(()) })
        .and_then(|()| begin(&directory, &mut record, observer))
        .and_then(|()| if observer.is_cancelled_now() { Err(SessionError::Interrupted) } else { Ok(()) });
    match filled {
        Ok(()) => Ok(Created { directory, lock, record }),
        Err(error) => {
            // What was made so far is ours alone; a failure to remove it is left to the next call.
            let _reaped_later = directory.delete();
            Err(error)
        }
    }
}

/// The name asked for, or one of our own that is free.
fn take_name(
    sandboxes: &Sandboxes,
    asked: Option<&SandboxName>,
) -> Result<(SandboxName, SandboxDirectory, FileLock), SessionError> {
    loop {
        let name = asked.cloned().unwrap_or_else(|| SandboxName::from_random(random()));
        match (sandboxes.make(&name)?, asked) {
            (Some((directory, lock)), _) => return Ok((name, directory, lock)),
            // What a creation or removal left that was killed is in nobody's way.
            (None, Some(_)) if sandboxes.clear_wanted(&name)? => {}
            (None, Some(_)) => return Err(SessionError::NameTaken(name)),
            (None, None) => {}
        }
    }
}

/// From the moment this is written the sandbox exists.
fn draft(resolved: ResolvedSpec, name: SandboxName, command: &[OsString]) -> Record {
    Record {
        schema: SCHEMA,
        sandbox: format!("{:016x}{:016x}", random(), random()),
        name,
        created_at: now(),
        id_base: id_base(&resolved),
        command: readable(command),
        resolved,
    }
}

/// Makes the directories that the mounts of `resolved` need, and what is in them.
fn fill(
    directory: &SandboxDirectory,
    resolved: &ResolvedSpec,
    observer: &dyn Observer,
) -> Result<(), SessionError> {
    let mut areas = BTreeSet::new();
    for mount in resolved.mounts.iter() {
        match &mount.content {
            // A home directory with two names is one directory.
            Content::Private { area } if areas.insert(area) => make(&directory.path().join(area))?,
            Content::Cow { source, layer, pins, .. } => {
                make(&directory.layer(layer, LayerPart::Upper))?;
                make(&directory.layer(layer, LayerPart::Work))?;
                if *pins == Pins::Present {
                    let pins = directory.layer(layer, LayerPart::Pins);
                    make(&pins)?;
                    hide(source, &pins, &Hidden::of(resolved))?;
                }
            }
            _ => {}
        }
    }
    directory.keep_values(resolved)?;
    furnish::seeds(directory, resolved)?;
    furnish::copies(directory, resolved, observer)
}

/// Makes the working directories of the layers anew: the kernel refuses one that a mount without write-back
/// was made on. Nothing of the state is in them.
pub(super) fn renew_work(directory: &SandboxDirectory, resolved: &ResolvedSpec) -> Result<(), SessionError> {
    for mount in resolved.mounts.iter() {
        if let Content::Cow { layer, .. } = &mount.content {
            let work = directory.layer(layer, LayerPart::Work);
            remove_tree(work.as_path())
                .map_err(|error| SessionError::state("remove", work.as_path())(error.source))?;
            make(&work)?;
        }
    }
    Ok(())
}

pub(super) fn make(path: &HostPath) -> Result<(), SessionError> {
    fs::create_dir(path.as_path()).map_err(SessionError::state("make", path.as_path()))
}

/// Covers everything of `source` that is hidden with a whiteout in the `pins` layer.
fn hide(source: &HostPath, pins: &HostPath, hidden: &Hidden<'_>) -> Result<(), SessionError> {
    let choose = |path: &RelPath, kind| hidden.picks(path, kind);
    let secrets = find_chosen(source.as_path(), &choose, &|| false).map_err(SessionError::Secrets)?;
    let open = |path: &HostPath| {
        openat(CWD, path.as_path(), os::REFERENCE | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| SessionError::state("open", path.as_path())(errno.into()))
    };
    let (lower, pins) = (open(source)?, open(pins)?);
    write_whiteouts(pins.as_fd(), Some(lower.as_fd()), &secrets).map_err(SessionError::Hide)
}

/// The first id of a private range for sandboxes of root: one of 4,094 ranges of 65,536 ids above those that
/// distributions hand out to users and containers and below the negative half.
pub(super) fn id_base(resolved: &ResolvedSpec) -> Option<u32> {
    let slot = u32::try_from(random() % 4094).expect("below 4,094");
    (resolved.identity.uid == 0).then_some(0x7000_0000 + (slot << 16))
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |age| age.as_secs())
}

/// Where a plan for `record` is to be executed.
pub(super) fn place(directory: &SandboxDirectory, record: &Record) -> Place {
    Place {
        directory: directory.path().clone(),
        name: record.name.clone(),
        id_base: record.id_base,
        pid: std::process::id(),
        started: now(),
    }
}
