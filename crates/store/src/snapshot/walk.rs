//! The walk over a directory, by two threads that share the directories still to be read.
//!
//! A thread that goes on with a directory in one that it has read a moment ago opens it from there; any other is
//! opened from the root by its path. So neither depth nor width costs descriptors, and depth little time.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::file::{Nothing, judge};
use super::found::Findings;
use super::list::{Lister, Shared};
use super::outcome::SnapshotOutcome;
use super::queue::{Complete, Listed, Place, Queue, Task, Ticket};
use super::sparing::Sparing;
use super::{Ignored, SnapshotError, SnapshotOptions, Store};
use crate::dir::{open_below, open_dir, reopen};
use crate::path::RelPath;
use crate::source::Moment;
use crate::statcache::{self, Key};
use crate::state::{Entry, Node, State, StateError, What, write_directory};
use crate::workers::help;

/// Most of the work is reading and hashing, and the machine has other things to do.
const THREADS: usize = 2;

/// How many of the directories read last a thread keeps open.
const TRAIL: usize = 16;

pub(super) fn run(
    root: BorrowedFd<'_>,
    store: Store<'_>,
    options: &SnapshotOptions<'_>,
    cache: Option<&mut statcache::Writer>,
) -> Result<SnapshotOutcome, SnapshotError> {
    let root =
        reopen(root).map_err(|errno| SnapshotError::Read { path: RelPath::root(), source: errno.into() })?;
    let known = options.index.map(|known| known.conversions.clone());
    let sparing = Sparing::new(store, options.index.and_then(|known| known.objects));
    let store = Store { sink: &sparing, ..store };
    let top = Place {
        name: Box::default(),
        key: Key::ROOT,
        rules: options.rules.clone(),
        conversions: known.unwrap_or_default(),
        ignored: false,
    };
    let mut progress = Progress { queue: Queue::default(), state: None, failed: None, waiting: 0 };
    let first = progress.queue.start(top);
    let shared = Shared {
        moment: options.began.unwrap_or_else(Moment::now).passed(),
        borrowed: Mutex::default(),
        holes: super::holes::Holes::default(),
        linked: super::linked::Linked::default(),
        cache: cache.map(Mutex::new),
    };
    let walk = Walk {
        root: root.as_fd(),
        store,
        options,
        shared: &shared,
        progress: Mutex::new(progress),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 1..THREADS {
            help(scope, || walk.work(None));
        }
        walk.work(Some(first));
    });
    let Progress { queue, state, failed, .. } =
        walk.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = failed {
        return Err(error);
    }
    let (counts, skipped, changed) = queue.findings.into_lists();
    let mut borrowed = shared.borrowed.into_inner().unwrap_or_else(PoisonError::into_inner);
    borrowed.append(&mut sparing.into_borrowed());
    borrowed.sort_unstable();
    borrowed.dedup();
    let state = state.expect("without an error the root is complete");
    Ok(SnapshotOutcome { state, counts, skipped, changed, borrowed, exclude: Vec::new() })
}

struct Walk<'a, 's> {
    root: BorrowedFd<'a>,
    store: Store<'a>,
    options: &'a SnapshotOptions<'a>,
    shared: &'a Shared<'s>,
    progress: Mutex<Progress>,
    /// Signalled when there is more to do, or nothing any more.
    changed: Condvar,
}

struct Progress {
    queue: Queue,
    state: Option<State>,
    failed: Option<SnapshotError>,
    /// How many threads wait for something to do.
    waiting: usize,
}

/// A directory that a thread has read and still has open.
struct Stand {
    ticket: Ticket,
    dir: OwnedFd,
    path: RelPath,
}

/// Where the next directory is.
enum Way {
    /// In one of those that this thread has open.
    From(usize),
    Whole(RelPath),
}

impl Walk<'_, '_> {
    fn work(&self, first: Option<Task>) {
        let mut trail: Vec<Stand> = Vec::new();
        let mut task = first.map(|task| (task, Way::Whole(RelPath::root()))).or_else(|| self.next(&trail));
        while let Some((this, way)) = task {
            let result = self.one(&this, way, &mut trail);
            let mut progress = self.lock();
            progress.queue.busy -= 1;
            if let Err(error) = result {
                progress.failed.get_or_insert(error);
            }
            self.tell(progress);
            task = self.next(&trail);
        }
    }

    /// The next directory to read, waiting for one if there may be more.
    fn next(&self, trail: &[Stand]) -> Option<(Task, Way)> {
        let mut progress = self.lock();
        loop {
            if progress.failed.is_some() {
                return None;
            }
            if let Some(task) = progress.queue.next() {
                let near = trail.iter().rposition(|stand| Some(stand.ticket) == task.above);
                let way = near.map_or_else(|| Way::Whole(progress.queue.path(task.ticket)), Way::From);
                return Some((task, way));
            }
            if progress.queue.busy == 0 {
                return None;
            }
            progress.waiting += 1;
            progress = self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
            progress.waiting -= 1;
        }
    }

    /// Wakes those who wait, if there are any: to wake nobody is a system call too.
    fn tell(&self, progress: MutexGuard<'_, Progress>) {
        let is_waited_for = progress.waiting > 0;
        drop(progress);
        if is_waited_for {
            self.changed.notify_all();
        }
    }

    /// Reads one directory, and writes it and those above it as far as they are complete.
    fn one(&self, task: &Task, way: Way, trail: &mut Vec<Stand>) -> Result<(), SnapshotError> {
        let ticket = task.ticket;
        let (found, findings) = self.list(task, way, trail)?;
        let mut progress = self.lock();
        progress.queue.findings.add(findings);
        let counts = progress.queue.findings.counts;
        let mut complete = match found {
            Some(entries) => progress.queue.listed(ticket, entries),
            None => progress.queue.written(ticket, None),
        };
        self.tell(progress);
        (self.options.progress)(&counts);
        if counts.entries > self.options.entry_limit {
            return Err(SnapshotError::TooMany(self.options.entry_limit));
        }
        while let Some(directory) = complete {
            if (self.options.cancelled)() {
                return Err(SnapshotError::Cancelled);
            }
            complete = self.finish(directory)?;
        }
        Ok(())
    }

    /// What is in a directory; nothing if it cannot be read, which only the root has to be.
    fn list(
        &self,
        task: &Task,
        way: Way,
        trail: &mut Vec<Stand>,
    ) -> Result<(Option<Listed>, Findings), SnapshotError> {
        let (opened, path) = self.open(&task.place.name, way, trail);
        let mut reader = Lister::new(self.store, self.options, self.shared, path.clone());
        let found = match opened {
            Ok(dir) => {
                let found = reader.list(dir.as_fd(), &task.place);
                if trail.len() == TRAIL {
                    trail.remove(0);
                }
                trail.push(Stand { ticket: task.ticket, dir, path: path.clone() });
                found
            }
            Err(errno) => Err(judge(errno)),
        };
        match found {
            Ok(entries) => Ok((Some(entries), reader.findings)),
            Err(Nothing::Skip(_)) if path.is_root() => {
                Err(SnapshotError::Read { path, source: Errno::ACCESS.into() })
            }
            Err(Nothing::Skip(why)) => {
                reader.findings.skip(path, why);
                Ok((None, reader.findings))
            }
            Err(Nothing::Failed(source)) => Err(SnapshotError::Read { path, source }),
            Err(Nothing::Write(error)) => Err(StateError::Write(error).into()),
            Err(Nothing::Cancelled) => Err(SnapshotError::Cancelled),
        }
    }

    fn open(&self, name: &[u8], way: Way, trail: &mut Vec<Stand>) -> (rustix::io::Result<OwnedFd>, RelPath) {
        match way {
            Way::Whole(path) => (open_below(self.root, &path), path),
            Way::From(at) => {
                trail.truncate(at + 1);
                let stand = &trail[at];
                let path = stand.path.join(name).expect("a directory lists single names");
                (open_dir(stand.dir.as_fd(), name), path)
            }
        }
    }

    /// Writes a directory; what is complete by that comes next.
    fn finish(&self, mut directory: Complete) -> Result<Option<Complete>, SnapshotError> {
        directory.entries.sort_unstable_by(|one, two| one.name.cmp(&two.name));
        let root = directory.is_root.then_some(&directory.own);
        let is_empty = directory.entries.is_empty() && directory.written.is_none();
        let is_left_out = directory.ignored && self.options.ignored != Ignored::All && is_empty;
        let mut entry = None;
        if !is_left_out {
            let write = || write_directory(self.store.sink, &directory.entries, root);
            let written = directory.written.map_or_else(write, Ok).map_err(StateError::Write)?;
            if directory.is_root {
                let state = State::from_root(&written, self.store.sink).map_err(StateError::Write)?;
                self.lock().state = Some(state);
            }
            let node = Node { what: What::Directory(Box::new(written)), own: directory.own };
            entry = Some(Entry { name: directory.name, node });
        }
        drop(directory.entries);
        Ok(self.lock().queue.written(directory.ticket, entry))
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
