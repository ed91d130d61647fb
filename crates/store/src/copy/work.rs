//! Threads that share a list of directories still to be copied. Every directory is opened from the top by its
//! path, so that neither depth nor width costs descriptors.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::{CopyError, CopyOptions, CopySkipped, Progress, entry};
use crate::dir::{Meta, Mounts, names, open_below, open_below_with, stat_at, stat_fd};
use crate::path::RelPath;
use crate::workers::help;

/// Copying waits for the disk as much as for a processor.
const THREADS: std::ops::RangeInclusive<usize> = 2..=8;

pub(super) fn run(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    options: &CopyOptions<'_>,
) -> Result<(Progress, Vec<CopySkipped>), CopyError> {
    let top = stat_fd(source).map_err(|errno| read(&RelPath::root(), errno))?;
    let state = State { queue: vec![(RelPath::root(), top)], ..State::default() };
    let work = Work {
        source,
        target,
        options,
        clones: AtomicBool::new(true),
        state: Mutex::new(state),
        names: Mutex::new(BTreeMap::new()),
        changed: Condvar::new(),
    };
    let threads = std::thread::available_parallelism().map_or(*THREADS.start(), usize::from);
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(*THREADS.start(), *THREADS.end()) {
            help(scope, || work.go_on());
        }
        work.go_on();
    });
    let State { failed, done, copied, mut skipped, .. } =
        work.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = failed {
        return Err(error);
    }
    finish(target, done)?;
    skipped.sort_unstable();
    Ok((copied, skipped))
}

/// What the threads share.
pub(super) struct Work<'a> {
    pub(super) source: BorrowedFd<'a>,
    pub(super) target: BorrowedFd<'a>,
    pub(super) options: &'a CopyOptions<'a>,
    /// Whether the file system may still turn out to share blocks.
    pub(super) clones: AtomicBool,
    state: Mutex<State>,
    /// The first copy of each file that has several names, by device and inode.
    pub(super) names: Mutex<BTreeMap<FileId, RelPath>>,
    changed: Condvar,
}

/// Device and inode.
pub(super) type FileId = ((u32, u32), u64);

#[derive(Default)]
struct State {
    queue: Vec<(RelPath, Meta)>,
    busy: usize,
    /// Directories whose entries are there; their modes and times come last.
    done: Vec<(RelPath, Meta)>,
    copied: Progress,
    skipped: Vec<CopySkipped>,
    failed: Option<CopyError>,
}

impl Work<'_> {
    fn go_on(&self) {
        while let Some((path, meta)) = self.next() {
            let result = self.directory(&path);
            let mut state = self.lock();
            state.busy -= 1;
            match result {
                Ok(below) => state.queue.extend(below),
                Err(error) => {
                    state.failed.get_or_insert(error);
                }
            }
            state.done.push((path, meta));
            self.changed.notify_all();
        }
    }

    fn next(&self) -> Option<(RelPath, Meta)> {
        let mut state = self.lock();
        loop {
            if state.failed.is_some() {
                return None;
            }
            if let Some(next) = state.queue.pop() {
                state.busy += 1;
                return Some(next);
            }
            if state.busy == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Copies the entries of one directory; gives its directories, which exist but are empty.
    fn directory(&self, path: &RelPath) -> Result<Vec<(RelPath, Meta)>, CopyError> {
        let opened = open_below_with(self.source, path, Mounts::Cross);
        let from = match opened {
            Ok(from) => from,
            Err(errno) if !path.is_root() && is_gone(errno) => return Ok(Vec::new()),
            Err(Errno::ACCESS | Errno::PERM) if !path.is_root() => {
                self.skip(path, "may not be read");
                return Ok(Vec::new());
            }
            Err(errno) => return Err(read(path, errno)),
        };
        let to = open_below(self.target, path).map_err(|errno| write(path, errno))?;
        entry::attributes(&from, &to);
        let mut below = Vec::new();
        for name in names(from.as_fd()).map_err(|errno| read(path, errno))? {
            if (self.options.cancelled)() {
                return Err(CopyError::Cancelled);
            }
            let path = path.join(&name.bytes).expect("a directory lists single names");
            let meta = match stat_at(from.as_fd(), &name.bytes) {
                Err(errno) if is_gone(errno) => continue,
                result => result.map_err(|errno| read(&path, errno))?,
            };
            if !(self.options.leave_out)(&path, meta.kind) {
                let site = entry::Site { from: from.as_fd(), to: to.as_fd(), path: &path, meta: &meta };
                if self.entry(&site)? == entry::Made::Directory {
                    below.push((path, meta));
                }
            }
        }
        Ok(below)
    }

    pub(super) fn skip(&self, path: &RelPath, why: &'static str) {
        self.lock().skipped.push(CopySkipped { path: path.clone(), why });
    }

    pub(super) fn copied(&self, bytes: u64) {
        let mut state = self.lock();
        state.copied.files += 1;
        state.copied.bytes += bytes;
        let copied = state.copied;
        drop(state);
        (self.options.progress)(copied);
    }

    pub(super) fn may_clone(&self) -> bool {
        self.clones.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the directories their modes and times, the deepest first: whatever is made in one moves its time.
fn finish(target: BorrowedFd<'_>, mut done: Vec<(RelPath, Meta)>) -> Result<(), CopyError> {
    done.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
    for (path, meta) in done {
        let opened = open_below(target, &path).map_err(|errno| write(&path, errno))?;
        entry::settle(&opened, &meta).map_err(|errno| write(&path, errno))?;
    }
    Ok(())
}

/// Removed or exchanged since its name was read: as good as not there.
pub(super) fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::STALE)
}

pub(super) fn read(path: &RelPath, errno: Errno) -> CopyError {
    CopyError::Read { path: path.clone(), source: errno.into() }
}

pub(super) fn write(path: &RelPath, errno: Errno) -> CopyError {
    CopyError::Write { path: path.clone(), source: errno.into() }
}
