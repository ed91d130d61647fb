//! The walk over a source, by two threads that share a list of directories still to be read.
//!
//! A thread that goes on with a directory inside the one it has just read opens it from there; any other is
//! opened from the root by its path. So neither depth nor width costs descriptors, and depth little time.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::git::GitState;
use super::listing::{Found, Listing, Notes, ROOT, Settled};
use super::sightings::{Sighting, Sightings};
use super::{Owners, SourceError, SourceOptions};
use crate::dir::{Kind, Meta, Name, names, open_below, open_dir, open_named, stat_at, stat_fd};
use crate::name_pattern::listed;
use crate::path::RelPath;
use crate::workers::help;

/// Looking at files is mostly waiting for locks inside the kernel: more threads gain little.
const THREADS: usize = 2;

/// The name that, at the top of a source, is looked at but not walked.
const GIT: &[u8] = b".git";

/// Records what every entry below `root` looks like.
pub fn scan(root: &Path, options: &SourceOptions<'_>) -> Result<Listing, SourceError> {
    scan_with(root, options, &Sightings::default())
}

/// The same, where some directories have been seen already. Those are used up.
pub fn scan_with(
    root: &Path,
    options: &SourceOptions<'_>,
    sightings: &Sightings,
) -> Result<Listing, SourceError> {
    let opened = open_named(root).and_then(|fd| Ok((stat_fd(fd.as_fd())?, fd)));
    let (meta, fd) =
        opened.map_err(|errno| SourceError::Open { path: root.to_owned(), source: errno.into() })?;
    let progress =
        Progress { listing: Listing::new(meta), queue: vec![ROOT], busy: 0, waiting: 0, failed: None };
    let (progress, changed) = (Mutex::new(progress), Condvar::new());
    let scan = Scan { root: fd.as_fd(), options, sightings, progress, changed };
    std::thread::scope(|scope| {
        for _ in 1..THREADS {
            help(scope, || scan.work());
        }
        scan.work();
    });
    let Progress { mut listing, failed, .. } =
        scan.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = failed {
        return Err(error);
    }
    listing.finish();
    Ok(listing)
}

struct Scan<'a> {
    root: BorrowedFd<'a>,
    options: &'a SourceOptions<'a>,
    sightings: &'a Sightings,
    progress: Mutex<Progress>,
    /// Signalled when there is more to do, or nothing any more.
    changed: Condvar,
}

struct Progress {
    listing: Listing,
    /// Blocks that are still to be filled.
    queue: Vec<u32>,
    /// How many threads are filling one; as long as there are any, more may come.
    busy: usize,
    /// How many threads wait for one.
    waiting: usize,
    failed: Option<SourceError>,
}

/// What reading one directory gave.
#[derive(Default)]
struct Directory {
    found: Vec<Found>,
    settled: Settled,
    git: Option<GitState>,
}

/// Why one directory could not be read.
enum Failure {
    At(Errno),
    Cancelled,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self::At(errno)
    }
}

/// A directory to read next.
struct Task {
    block: u32,
    way: Way,
}

enum Way {
    /// Somebody has.
    Seen(Sighting),
    /// By name, from the directory this thread read last.
    From(Vec<u8>),
    /// By path, from the root.
    Whole(RelPath),
}

impl Scan<'_> {
    fn work(&self) {
        let mut last: Option<(u32, OwnedFd)> = None;
        while let Some(task) = self.next(last.as_ref().map(|(block, _)| *block)) {
            let Task { block, way } = task;
            let result = match way {
                Way::Seen(sighting) => Ok(self.seen(&sighting)),
                Way::From(name) => {
                    let opened =
                        last.as_ref().map_or(Err(Errno::BADF), |(_, dir)| open_dir(dir.as_fd(), &name));
                    self.read(opened, block, &mut last)
                }
                Way::Whole(path) => self.read(open_below(self.root, &path), block, &mut last),
            };
            let mut progress = self.lock();
            progress.busy -= 1;
            progress.take(block, result);
            // To wake nobody is a system call too.
            if progress.waiting > 0 {
                self.changed.notify_all();
            }
        }
    }

    fn read(
        &self,
        opened: rustix::io::Result<OwnedFd>,
        block: u32,
        last: &mut Option<(u32, OwnedFd)>,
    ) -> Result<Directory, Failure> {
        match opened {
            Ok(dir) => {
                let result = self.directory(dir.as_fd(), block);
                *last = Some((block, dir));
                result
            }
            // Gone or exchanged since its name was read: as good as not there.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) if block != ROOT => {
                Ok(Directory { settled: Settled::No, ..Directory::default() })
            }
            Err(errno) => Err(Failure::At(errno)),
        }
    }

    fn seen(&self, sighting: &Sighting) -> Directory {
        let found = sighting.entries().map(|(name, meta)| self.found(name.to_vec(), *meta)).collect();
        Directory { found, settled: sighting.settled, git: None }
    }

    /// The next directory to read, waiting for one if there may be more.
    fn next(&self, last: Option<u32>) -> Option<Task> {
        let mut progress = self.lock();
        loop {
            if progress.failed.is_some() {
                return None;
            }
            if let Some(block) = progress.queue.pop() {
                progress.busy += 1;
                return Some(Task { block, way: self.way(&progress.listing, block, last) });
            }
            if progress.busy == 0 {
                return None;
            }
            progress.waiting += 1;
            progress = self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
            progress.waiting -= 1;
        }
    }

    fn way(&self, listing: &Listing, block: u32, last: Option<u32>) -> Way {
        // The root is always read: the state of the repository belongs to it.
        let path = (block != ROOT && !self.sightings.is_empty()).then(|| listing.block_path(block));
        if let Some(sighting) = path.and_then(|path| self.sightings.take(&path)) {
            return Way::Seen(sighting);
        }
        match listing.step(block) {
            Some((parent, name)) if Some(parent) == last => Way::From(name.to_vec()),
            _ => Way::Whole(listing.block_path(block)),
        }
    }

    fn directory(&self, dir: BorrowedFd<'_>, block: u32) -> Result<Directory, Failure> {
        let before = stat_fd(dir)?;
        let names = names(dir)?;
        let mut directory = Directory { found: Vec::with_capacity(names.len()), ..Directory::default() };
        for Name { bytes, .. } in names {
            if (self.options.cancelled)() {
                return Err(Failure::Cancelled);
            }
            let is_git = block == ROOT && bytes == GIT;
            match stat_at(dir, &bytes) {
                Ok(meta) => {
                    let mut found = self.found(bytes, meta);
                    if is_git && found.descend {
                        found.descend = false;
                        directory.git = Some(GitState::at(dir, GIT));
                    }
                    directory.found.push(found);
                }
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        if stat_fd(dir)?.ctime_ns != before.ctime_ns {
            directory.settled = Settled::No;
        }
        Ok(directory)
    }

    fn found(&self, name: Vec<u8>, meta: Meta) -> Found {
        let is_directory = meta.kind == Kind::Directory;
        let mut notes = Notes::default();
        if !is_directory && listed(self.options.secrets, &name) {
            notes.add(Notes::SECRET);
        }
        let owned = |owners: &Owners<'_>| {
            owners.users.contains(&meta.uid) && owners.groups.is_none_or(|groups| groups.contains(&meta.gid))
        };
        if !self.options.owners.as_ref().is_none_or(owned) {
            notes.add(Notes::OUTSIDER);
        }
        if meta.is_mount {
            notes.add(Notes::MOUNT);
        }
        Found { descend: is_directory && !meta.is_mount, name, meta, notes }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    fn take(&mut self, block: u32, result: Result<Directory, Failure>) {
        let path = |listing: &Listing| listing.block_path(block);
        let error = match result {
            Ok(directory) => self.fill(block, &directory).err(),
            // The names, or what they stand for, may not be read.
            Err(Failure::At(Errno::ACCESS | Errno::PERM)) => {
                self.listing.unreadable.push(path(&self.listing));
                self.listing.forget(block);
                None
            }
            Err(Failure::At(errno)) => {
                Some(SourceError::Read { path: path(&self.listing), source: errno.into() })
            }
            Err(Failure::Cancelled) => Some(SourceError::Cancelled),
        };
        if let Some(error) = error {
            self.failed.get_or_insert(error);
        }
    }

    fn fill(&mut self, block: u32, directory: &Directory) -> Result<(), SourceError> {
        self.queue.extend(self.listing.fill(block, &directory.found)?);
        self.listing.git = self.listing.git.or(directory.git);
        self.listing.blocks[block as usize].settled = directory.settled;
        for found in directory.found.iter().filter(|found| found.meta.is_mount) {
            let place = self.listing.block_path(block).join(&found.name);
            self.listing.submounts.push(place.expect("a directory lists single names"));
        }
        Ok(())
    }
}
