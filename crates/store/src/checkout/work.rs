//! Threads that share a list of directories still to be filled. Each is opened from the top by its path, so that neither
//! depth nor width costs descriptors; a file costs four system calls.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;

use super::make::{Lost, MakeError, Maker};
use super::{Error, Options, Outcome, Progress, SkipReason, Skipped, make_error, write_error};
use crate::dir::open_below;
use crate::id::ObjectId;
use crate::object::name::git_refuses;
use crate::object::{ReadError, ReadObjects};
use crate::path::RelPath;
use crate::state::{Directory, Entry, Node, Own, State, StateError, What};

pub(super) fn run(
    objects: &dyn ReadObjects,
    state: &State,
    target: BorrowedFd<'_>,
    options: &Options<'_>,
) -> Result<Outcome, Error> {
    let contents = state.root().read_root(objects)?;
    let work = Work {
        objects,
        target,
        options,
        maker: Maker::new(objects, target, options.times),
        queue: Mutex::default(),
        changed: Condvar::new(),
        entries: AtomicU64::new(0),
        files: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    };
    let below = work.fill(&RelPath::root(), contents.entries, &contents.own)?;
    work.lock().waiting = below;
    std::thread::scope(|scope| {
        for _ in 1..options.workers.max(1) {
            scope.spawn(|| work.go_on());
        }
        work.go_on();
    });
    work.finish()
}

struct Work<'a> {
    objects: &'a dyn ReadObjects,
    target: BorrowedFd<'a>,
    options: &'a Options<'a>,
    maker: Maker<'a>,
    queue: Mutex<Queue>,
    changed: Condvar,
    entries: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
}

/// A directory that exists and is empty.
struct Task {
    path: RelPath,
    below: Directory,
    own: Own,
}

/// A symlink to be made when all files are there.
struct Link {
    name: Box<[u8]>,
    id: ObjectId,
    own: Own,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Task>,
    busy: usize,
    directories: u64,
    links: Vec<(RelPath, Vec<Link>)>,
    /// Directories whose modes and times come last.
    unsettled: Vec<(RelPath, Own)>,
    skipped: Vec<Skipped>,
    failed: Option<Error>,
}

impl Work<'_> {
    fn go_on(&self) {
        while let Some(Task { path, below, own }) = self.next() {
            let result = self.directory(&path, below, &own);
            let mut queue = self.lock();
            queue.busy -= 1;
            match result {
                Ok(below) => queue.waiting.extend(below),
                Err(error) => {
                    queue.failed.get_or_insert(error);
                }
            }
            drop(queue);
            self.changed.notify_all();
        }
    }

    fn next(&self) -> Option<Task> {
        let mut queue = self.lock();
        loop {
            if queue.failed.is_some() {
                return None;
            }
            if let Some(next) = queue.waiting.pop() {
                queue.busy += 1;
                return Some(next);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn directory(&self, path: &RelPath, below: Directory, own: &Own) -> Result<Vec<Task>, Error> {
        if path.components().count() > self.options.limits.depth {
            return Err(StateError::TooMany.into());
        }
        self.fill(path, below.read(self.objects)?, own)
    }

    /// Makes the entries of one directory but its symlinks; gives its directories, which are empty.
    fn fill(&self, path: &RelPath, entries: Vec<Entry>, own: &Own) -> Result<Vec<Task>, Error> {
        let many = entries.len() as u64;
        if self.entries.fetch_add(many, Ordering::Relaxed) + many > self.options.limits.entries {
            return Err(StateError::TooMany.into());
        }
        let here = open_below(self.target, path).map_err(|errno| write_error(path, errno))?;
        let (mut tasks, mut links) = (Vec::new(), Vec::new());
        // Directories come first: two names that the file system takes for one must not mix a tree and a file.
        let (directories, others): (Vec<Entry>, Vec<Entry>) = entries
            .into_iter()
            .partition(|entry| matches!(entry.node.what, What::Directory(_) | What::Gitlink(_)));
        for Entry { name, node } in directories.into_iter().chain(others) {
            let path = path.join(&name).map_err(|_| write_error(path, Errno::INVAL))?;
            self.check(&path)?;
            match node {
                Node { what: What::Directory(below), own } => {
                    tasks.extend(self.make_directory(here.as_fd(), path, (*below, own))?);
                }
                Node { what: What::Gitlink(_), .. } => self.repository(here.as_fd(), &path)?,
                Node { what: What::File(id), own } => self.file(here.as_fd(), &path, (&id, &own))?,
                Node { what: What::Symlink(id), own } => links.push(Link { name, id, own }),
            }
        }
        self.leave(path, here.as_fd(), (own, links))?;
        Ok(tasks)
    }

    fn check(&self, path: &RelPath) -> Result<(), Error> {
        if (self.options.cancelled)() {
            return Err(Error::Cancelled);
        }
        if path.name().is_none_or(git_refuses) {
            return Err(Error::Git(path.clone()));
        }
        Ok(())
    }

    fn file(&self, parent: BorrowedFd<'_>, path: &RelPath, node: (&ObjectId, &Own)) -> Result<(), Error> {
        let name = path.name().expect("an entry has a name");
        let made = match self.maker.file(parent, name, node) {
            Err(MakeError::Io(Errno::EXIST)) => return self.skip(path, SkipReason::NameTaken),
            Err(MakeError::Read(ReadError::Missing(id))) if id == *node.0 => {
                return self.skip(path, SkipReason::NotStored);
            }
            made => made,
        };
        let (bytes, lost) = made.map_err(|error| make_error(path, error))?;
        self.lost(path, lost)?;
        let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (self.options.progress)(Progress { files, bytes });
        Ok(())
    }

    fn make_directory(
        &self,
        parent: BorrowedFd<'_>,
        path: RelPath,
        node: (Directory, Own),
    ) -> Result<Option<Task>, Error> {
        let name = path.name().expect("an entry has a name");
        // For its owner only, until everything is in it.
        match mkdirat(parent, name, Mode::RWXU) {
            Err(Errno::EXIST) => {
                self.skip(&path, SkipReason::NameTaken)?;
                Ok(None)
            }
            Err(errno) => Err(write_error(&path, errno)),
            Ok(()) => {
                self.lock().directories += 1;
                Ok(Some(Task { path, below: node.0, own: node.1 }))
            }
        }
    }

    /// A directory stands where another repository was.
    fn repository(&self, parent: BorrowedFd<'_>, path: &RelPath) -> Result<(), Error> {
        let name = path.name().expect("an entry has a name");
        match mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
            Err(Errno::EXIST) => self.skip(path, SkipReason::NameTaken),
            Err(errno) => Err(write_error(path, errno)),
            Ok(()) => self.skip(path, SkipReason::Repository),
        }
    }

    /// Settles a directory at once if nothing more will come and everybody can still go through it.
    fn leave(&self, path: &RelPath, here: BorrowedFd<'_>, rest: (&Own, Vec<Link>)) -> Result<(), Error> {
        let (own, links) = rest;
        if links.is_empty() && own.bits & 0o700 == 0o700 && !path.is_root() {
            let lost = self.maker.settle(here, own).map_err(|errno| write_error(path, errno))?;
            return self.lost(path, lost);
        }
        let mut queue = self.lock();
        if !links.is_empty() {
            queue.links.push((path.clone(), links));
        }
        queue.unsettled.push((path.clone(), own.clone()));
        Ok(())
    }

    /// Symlinks, then the directories that had to wait, the deepest first.
    fn finish(self) -> Result<Outcome, Error> {
        let mut queue = std::mem::take(&mut *self.lock());
        if let Some(error) = queue.failed.take() {
            return Err(error);
        }
        let mut symlinks = 0;
        for (path, links) in std::mem::take(&mut queue.links) {
            let here = open_below(self.target, &path).map_err(|errno| write_error(&path, errno))?;
            for Link { name, id, own } in links {
                let path = path.join(&name).map_err(|_| write_error(&path, Errno::INVAL))?;
                self.check(&path)?;
                match self.maker.symlink(here.as_fd(), &name, (&id, &own)) {
                    Err(MakeError::Io(Errno::EXIST)) => self.skip(&path, SkipReason::NameTaken)?,
                    made => self.lost(&path, made.map_err(|error| make_error(&path, error))?)?,
                }
                symlinks += 1;
            }
        }
        queue.unsettled.sort_unstable_by(|one, two| two.0.cmp(&one.0));
        for (path, own) in &queue.unsettled {
            let here = open_below(self.target, path).map_err(|errno| write_error(path, errno))?;
            let lost = self.maker.settle(here.as_fd(), own).map_err(|errno| write_error(path, errno))?;
            self.lost(path, lost)?;
        }
        queue.skipped.append(&mut self.lock().skipped);
        queue.skipped.sort_unstable();
        Ok(Outcome {
            files: self.files.into_inner(),
            bytes: self.bytes.into_inner(),
            directories: queue.directories,
            symlinks,
            skipped: queue.skipped,
        })
    }

    fn lost(&self, path: &RelPath, lost: Vec<Lost>) -> Result<(), Error> {
        lost.into_iter().try_for_each(|lost| self.skip(path, SkipReason::Without(lost)))
    }

    #[expect(clippy::unnecessary_wraps, reason = "reads well at the end of a function that can fail")]
    fn skip(&self, path: &RelPath, why: SkipReason) -> Result<(), Error> {
        self.lock().skipped.push(Skipped { path: path.clone(), why });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
