//! Refs: for stock git, so that it sees every snapshot and keeps what belongs to it. They are made from
//! `meta.db` and never read for anything but to see whether they are there.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

use super::recover::put_away;
use super::{Store, StoreError};
use crate::id::ObjectId;
use crate::lock::FileLock;
use crate::meta::{MetaError, Snapshot};
use crate::regular;

/// Letters of the longest id. A file that holds more than one is damaged.
const LONGEST_ID: usize = 64;

/// As many may have died at once between their commit and their refs.
const RECENT: u32 = 64;

/// How long a check looks again at what seems wrong, and how long it waits each time to be alone.
const PATIENCE: Duration = Duration::from_secs(2);
const MOMENT: Duration = Duration::from_millis(20);

/// All refs that have no file of their own, and the largest such file.
const PACKED: &str = "packed-refs";
const MOST_PACKED: u64 = 512 << 20;

/// The directory of our refs, and those in it: one for snapshots, one for what git's trees have no room for.
const OURS: &str = "refs/sandtable";
const KINDS: [&str; 2] = ["snapshots", "extra"];

/// The two refs of a snapshot, and what they name.
fn of(snapshot: &Snapshot) -> [(String, ObjectId); 2] {
    let [own, extra] = KINDS.map(|kind| format!("{OURS}/{kind}/{}", snapshot.id));
    [(own, snapshot.id), (extra, snapshot.extra)]
}

/// Writes the refs of a snapshot.
pub(crate) fn write(store: &Store, snapshot: &Snapshot) -> Result<(), StoreError> {
    for (name, target) in of(snapshot) {
        let path = store.git_dir().join(&name);
        let temporary = store.temporary("ref");
        fs_err::write(&temporary, format!("{target}\n"))?;
        put(&temporary, &path)?;
    }
    Ok(())
}

/// Puts a file in its place, whatever is there: what it holds can be made again at any time.
fn put(temporary: &Path, place: &Path) -> io::Result<()> {
    match fs_err::rename(temporary, place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs_err::create_dir_all(place.parent().expect("a ref is in a directory"))?;
        }
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => put_away(place)?,
        other => return other,
    }
    fs_err::rename(temporary, place)
}

/// Writes what is missing of the refs of the newest snapshots.
pub(super) fn restore_newest(store: &Store) -> Result<(), StoreError> {
    if !missing(store, &store.meta.newest_snapshots(RECENT)?)?.is_empty() {
        // Under the lock, so that a snapshot that is being collected does not get its ref back.
        let _lock = store.share()?;
        restore(store, &store.meta.newest_snapshots(RECENT)?)?;
    }
    Ok(())
}

fn restore(store: &Store, snapshots: &[Snapshot]) -> Result<(), StoreError> {
    missing(store, snapshots)?.into_iter().try_for_each(|snapshot| write(store, snapshot))
}

fn missing<'a>(store: &Store, snapshots: &'a [Snapshot]) -> io::Result<Vec<&'a Snapshot>> {
    let is_loose = |snapshot: &&Snapshot| {
        of(snapshot)
            .iter()
            .all(|(name, target)| matches!(read_loose(store, name), Ok(Some(found)) if found == *target))
    };
    let mut missing: Vec<&Snapshot> = snapshots.iter().filter(|snapshot| !is_loose(snapshot)).collect();
    if !missing.is_empty() {
        let packed = read_packed(store)?;
        let is_packed = |(name, target): &(String, ObjectId)| {
            packed.get(name) == Some(target) && matches!(read_loose(store, name), Ok(None))
        };
        missing.retain(|snapshot| !of(snapshot).iter().all(is_packed));
    }
    Ok(missing)
}

/// What a ref in a file of its own names. After a power cut there may be nothing in it.
fn read_loose(store: &Store, name: &str) -> io::Result<Option<ObjectId>> {
    let mut file = match regular::open(&store.git_dir().join(name)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // One read, and no question about its length: many are looked at whenever a store is opened.
    let mut bytes = [0; LONGEST_ID + 2];
    let length = file.read(&mut bytes)?;
    let text = std::str::from_utf8(&bytes[..length]).map_err(io::Error::other)?;
    text.trim_end().parse().map(Some).map_err(io::Error::other)
}

/// The file that says that snapshots are being removed, or were when the process that removed them was killed.
const REMOVING: &str = "removing";

/// Removes the rows of snapshots, with `exchange`, and their refs. The caller holds the exclusive lock.
///
/// Rows go first: a ref without a row is found by the file that is written here, while a row without a ref would be
/// damage if it is not one of the newest.
pub(crate) fn remove(
    store: &Store,
    exchange: impl FnOnce() -> Result<(), MetaError>,
) -> Result<(), StoreError> {
    let removing = store.dir.join(REMOVING);
    fs_err::write(&removing, "")?;
    exchange()?;
    pack(store, &store.meta.snapshots()?)?;
    Ok(fs_err::remove_file(removing)?)
}

/// Completes a [`remove`] that was killed, unless it is still going on.
pub(super) fn finish_removal(store: &Store) -> Result<(), StoreError> {
    if !store.dir.join(REMOVING).exists() {
        return Ok(());
    }
    match FileLock::try_exclusive(&store.lock_path())? {
        Some(_lock) => finish_removal_alone(store),
        None => Ok(()),
    }
}

/// The same for who holds the exclusive lock.
fn finish_removal_alone(store: &Store) -> Result<(), StoreError> {
    let removing = store.dir.join(REMOVING);
    if !removing.exists() {
        return Ok(());
    }
    store.meta.settle()?;
    pack(store, &store.meta.snapshots()?)?;
    match fs_err::remove_file(removing) {
        // It ended between the two looks.
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// What is wrong with refs when nobody is at work on them. A snapshot has its row before its refs, so that one which is being
/// made looks damaged for a moment, and so does one whose maker was killed in between. What seems wrong is therefore looked at
/// again, without anybody beside, after it was put right as far as any opening of the store does that.
pub(crate) fn lasting_faults(store: &Store, shared: FileLock) -> Result<Vec<String>, StoreError> {
    let mut lasting = faults(store)?;
    drop(shared);
    // Somebody may work for a long time, but nobody takes that long between a row and its refs.
    let end = Instant::now() + PATIENCE;
    while !lasting.is_empty() && Instant::now() < end {
        if let Some(_alone) = store.exclusive(MOMENT)? {
            finish_removal_alone(store)?;
            restore(store, &store.meta.newest_snapshots(RECENT)?)?;
            return faults(store);
        }
        let _shared = store.share()?;
        let seen = faults(store)?;
        lasting.retain(|name| seen.contains(name));
    }
    Ok(lasting)
}

/// Refs whose target is not what it must be, and refs of snapshots that are not there, by name. The caller holds the lock.
fn faults(store: &Store) -> Result<Vec<String>, StoreError> {
    let snapshots = store.meta.snapshots()?;
    let packed = read_packed(store)?;
    let mut faults = Vec::new();
    for (name, target) in snapshots.iter().flat_map(of) {
        let found = match read_loose(store, &name) {
            Ok(None) => packed.get(&name).copied(),
            Ok(found) => found,
            Err(_) => None,
        };
        if found != Some(target) {
            faults.push(name);
        }
    }
    let all: BTreeSet<String> = packed.into_keys().chain(loose_names(store)?).collect();
    // Rows are read after the refs: a snapshot that is made meanwhile has its row first.
    let known: BTreeSet<String> = store.meta.snapshots()?.iter().flat_map(of).map(|(name, _)| name).collect();
    faults.extend(
        all.into_iter().filter(|name| name.starts_with(&format!("{OURS}/")) && !known.contains(name)),
    );
    Ok(faults)
}

/// Writes the refs of these snapshots into one file and takes away all others.
pub(crate) fn pack(store: &Store, snapshots: &[Snapshot]) -> Result<(), StoreError> {
    let mut lines: Vec<String> =
        snapshots.iter().flat_map(of).map(|(name, target)| format!("{target} {name}\n")).collect();
    // Git wants them in the order of their names.
    lines.sort_by(|one, other| one.split_once(' ').map(|at| at.1).cmp(&other.split_once(' ').map(|at| at.1)));
    let text = format!("# pack-refs with: peeled fully-peeled sorted \n{}", lines.concat());
    let temporary = store.temporary("refs");
    fs_err::write(&temporary, text)?;
    // The single ones are about to go.
    fs_err::File::open(&temporary)?.sync_all()?;
    put(&temporary, &store.git_dir().join(PACKED))?;
    for name in loose_names(store)? {
        put_away(&store.git_dir().join(name))?;
    }
    Ok(())
}

/// The refs that have a file of their own.
fn loose_names(store: &Store) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for kind in KINDS {
        let names = list(&store.git_dir().join(OURS).join(kind))?;
        found.extend(names.into_iter().map(|name| format!("{OURS}/{kind}/{name}")));
    }
    Ok(found)
}

fn list(dir: &Path) -> io::Result<Vec<String>> {
    let name = |entry: io::Result<fs_err::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    match fs_err::read_dir(dir) {
        Ok(entries) => entries.map(name).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(vec![]),
        Err(error) => Err(error),
    }
}

fn read_packed(store: &Store) -> io::Result<BTreeMap<String, ObjectId>> {
    let text = match regular::read_to_string(&store.git_dir().join(PACKED), MOST_PACKED) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        // What is nothing of ours names no ref.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let line = |line: &str| {
        let (target, name) = line.split_once(' ')?;
        Some((name.to_owned(), target.parse().ok()?))
    };
    Ok(text.lines().filter_map(line).collect())
}
