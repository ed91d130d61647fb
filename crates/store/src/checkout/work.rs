//! Threads that share a list of directories still to be filled. Each goes on with what lies below the directory it has
//! just filled, and opens it from there; a file costs five system calls, with the one that reads it. A directory of very
//! many files is shared in pieces, so that not one thread makes them all while the others have nothing to do.

use std::cmp::Reverse;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;

use super::make::{Lost, MakeError, Maker};
use super::way::{Near, Way};
use super::{
    CheckoutError, CheckoutOptions, CheckoutOutcome, CheckoutSkipReason, CheckoutSkipped, Progress,
    make_error, write_error,
};
use crate::id::ObjectId;
use crate::object::name::git_refuses;
use crate::object::{ReadError, ReadObjects};
use crate::path::RelPath;
use crate::state::{Directory, Entry, Own, State, StateError, What};
use crate::workers::help;

/// As many files of one directory are made by one thread; two threads that make files in one directory wait for each
/// other now and then, so this is worth it only where there are many.
const PIECE: usize = 512;

pub(super) fn run(
    objects: &dyn ReadObjects,
    state: &State,
    target: BorrowedFd<'_>,
    options: &CheckoutOptions<'_>,
) -> Result<CheckoutOutcome, CheckoutError> {
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
    let below = work.fill(&mut Near::new(target), &Way::root(), (contents.entries, contents.own))?;
    work.lock().waiting = below;
    std::thread::scope(|scope| {
        for _ in 1..options.workers.max(1) {
            help(scope, || work.go_on());
        }
        work.go_on();
    });
    work.finish()
}

struct Work<'a> {
    objects: &'a dyn ReadObjects,
    target: BorrowedFd<'a>,
    options: &'a CheckoutOptions<'a>,
    maker: Maker<'a>,
    queue: Mutex<Queue>,
    changed: Condvar,
    entries: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
}

enum Task {
    /// A directory that exists and is empty.
    Directory { way: Arc<Way>, below: Directory, own: Own },
    /// Some of the files of a directory.
    Piece { files: Vec<Leaf>, rest: Arc<Rest> },
}

/// A file, or a symlink.
struct Leaf {
    name: Box<[u8]>,
    id: ObjectId,
    own: Own,
}

/// What is to be done to a directory when all its files are there.
struct Rest {
    way: Arc<Way>,
    own: Own,
    links: Vec<Leaf>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Task>,
    busy: usize,
    idle: usize,
    directories: u64,
    /// Directories whose symlinks, modes and times come last.
    unsettled: Vec<Rest>,
    skipped: Vec<CheckoutSkipped>,
    failed: Option<CheckoutError>,
}

impl Work<'_> {
    fn go_on(&self) {
        let mut near = Near::new(self.target);
        let mut mine = None;
        while let Some(task) = mine.take().or_else(|| self.next()) {
            mine = self.done(self.perform(&mut near, task));
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
            queue.idle += 1;
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    /// Leaves what came of a task to all, but for the part that the thread goes on with itself.
    fn done(&self, result: Result<Vec<Task>, CheckoutError>) -> Option<Task> {
        let mut queue = self.lock();
        let mut mine = None;
        match result {
            Ok(mut tasks) => {
                mine = tasks.pop().filter(|_| queue.failed.is_none());
                queue.waiting.append(&mut tasks);
            }
            Err(error) => {
                queue.failed.get_or_insert(error);
            }
        }
        queue.busy -= usize::from(mine.is_none());
        let wake = queue.idle > 0 && (!queue.waiting.is_empty() || mine.is_none());
        drop(queue);
        if wake {
            self.changed.notify_all();
        }
        mine
    }

    fn perform(&self, near: &mut Near<'_>, task: Task) -> Result<Vec<Task>, CheckoutError> {
        match task {
            Task::Directory { way, below, own } => {
                if way.depth() > self.options.limits.depth {
                    return Err(StateError::TooMany.into());
                }
                self.fill(near, &way, (below.read(self.objects)?, own))
            }
            Task::Piece { files, rest } => {
                let here = open(near, &rest.way)?;
                self.files(&rest.way, here.as_fd(), &files)?;
                // Whoever makes the last piece does the rest.
                Arc::into_inner(rest).map_or(Ok(()), |rest| self.leave(here.as_fd(), rest))?;
                Ok(Vec::new())
            }
        }
    }

    /// Makes the entries of one directory but its symlinks; gives its directories, which are empty, and its files if
    /// they are very many.
    fn fill(
        &self,
        near: &mut Near<'_>,
        way: &Arc<Way>,
        (entries, own): (Vec<Entry>, Own),
    ) -> Result<Vec<Task>, CheckoutError> {
        let many = entries.len() as u64;
        if self.entries.fetch_add(many, Ordering::Relaxed) + many > self.options.limits.entries {
            return Err(StateError::TooMany.into());
        }
        let here = open(near, way)?;
        let (mut tasks, mut files, mut links) = (Vec::new(), Vec::new(), Vec::new());
        // Directories come first: two names that the file system takes for one must not mix a tree and a file.
        for Entry { name, node } in entries {
            if git_refuses(&name) {
                return Err(CheckoutError::Git(way.path_of(&name)));
            }
            self.ask()?;
            let own = node.own;
            match node.what {
                What::Directory(below) => {
                    tasks.extend(self.make_directory(here.as_fd(), (way, &name), (*below, own))?);
                }
                What::Gitlink(_) => self.repository(here.as_fd(), way, &name)?,
                What::File(id) => files.push(Leaf { name, id, own }),
                What::Symlink(id) => links.push(Leaf { name, id, own }),
            }
        }
        let rest = Rest { way: Arc::clone(way), own, links };
        if files.len() > PIECE {
            tasks.extend(pieces(files, rest));
        } else {
            self.files(way, here.as_fd(), &files)?;
            self.leave(here.as_fd(), rest)?;
        }
        if !tasks.is_empty() {
            near.keep(Arc::clone(way), here);
        }
        Ok(tasks)
    }

    /// Whether it shall go on.
    fn ask(&self) -> Result<(), CheckoutError> {
        if (self.options.cancelled)() { Err(CheckoutError::Cancelled) } else { Ok(()) }
    }

    fn files(&self, way: &Way, parent: BorrowedFd<'_>, files: &[Leaf]) -> Result<(), CheckoutError> {
        files.iter().try_for_each(|file| {
            self.ask()?;
            self.file(way, parent, file)
        })
    }

    fn file(&self, way: &Way, parent: BorrowedFd<'_>, file: &Leaf) -> Result<(), CheckoutError> {
        let Leaf { name, id, own } = file;
        let (bytes, lost) = match self.maker.file(parent, name, (id, own)) {
            Err(MakeError::Io(Errno::EXIST)) => {
                return self.skip(way.path_of(name), CheckoutSkipReason::NameTaken);
            }
            Err(MakeError::Read(ReadError::Missing(missing))) if missing == *id => {
                return self.skip(way.path_of(name), CheckoutSkipReason::NotStored);
            }
            made => made.map_err(|error| make_error(&way.path_of(name), error))?,
        };
        self.lost(way, name, lost)?;
        let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (self.options.progress)(Progress { files, bytes });
        Ok(())
    }

    fn make_directory(
        &self,
        parent: BorrowedFd<'_>,
        (way, name): (&Arc<Way>, &[u8]),
        (below, own): (Directory, Own),
    ) -> Result<Option<Task>, CheckoutError> {
        let path = || way.path_of(name);
        // For its owner only, until everything is in it.
        match mkdirat(parent, name, Mode::RWXU) {
            Err(Errno::EXIST) => self.skip(path(), CheckoutSkipReason::NameTaken).map(|()| None),
            Err(errno) => Err(write_error(&path(), errno)),
            Ok(()) => {
                self.lock().directories += 1;
                let way = way.to(name).ok_or_else(|| CheckoutError::Git(path()))?;
                Ok(Some(Task::Directory { way, below, own }))
            }
        }
    }

    /// A directory stands where another repository was.
    fn repository(&self, parent: BorrowedFd<'_>, way: &Way, name: &[u8]) -> Result<(), CheckoutError> {
        match mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
            Err(Errno::EXIST) => self.skip(way.path_of(name), CheckoutSkipReason::NameTaken),
            Err(errno) => Err(write_error(&way.path_of(name), errno)),
            Ok(()) => self.skip(way.path_of(name), CheckoutSkipReason::Repository),
        }
    }

    /// Settles a directory at once if nothing more will come and everybody can still go through it.
    fn leave(&self, here: BorrowedFd<'_>, rest: Rest) -> Result<(), CheckoutError> {
        let at_once = rest.links.is_empty() && rest.own.bits & 0o700 == 0o700 && !rest.way.is_root();
        if at_once {
            return self.settle(here, &rest);
        }
        self.lock().unsettled.push(rest);
        Ok(())
    }

    fn settle(&self, here: BorrowedFd<'_>, rest: &Rest) -> Result<(), CheckoutError> {
        let lost = self.maker.settle(here, &rest.own);
        let lost = lost.map_err(|errno| write_error(&rest.way.path(), errno))?;
        lost.into_iter().try_for_each(|lost| self.skip(rest.way.path(), CheckoutSkipReason::Without(lost)))
    }

    /// Symlinks, then the directories that had to wait, the deepest first.
    fn finish(self) -> Result<CheckoutOutcome, CheckoutError> {
        let mut queue = std::mem::take(&mut *self.lock());
        if let Some(error) = queue.failed.take() {
            return Err(error);
        }
        let mut near = Near::new(self.target);
        let mut symlinks = 0;
        for rest in queue.unsettled.iter().filter(|rest| !rest.links.is_empty()) {
            let here = open(&mut near, &rest.way)?;
            for link in &rest.links {
                self.link(&rest.way, here.as_fd(), link)?;
                symlinks += 1;
            }
        }
        queue.unsettled.sort_by_key(|rest| Reverse(rest.way.depth()));
        for rest in &queue.unsettled {
            self.settle(open(&mut near, &rest.way)?.as_fd(), rest)?;
        }
        queue.skipped.append(&mut self.lock().skipped);
        queue.skipped.sort_unstable();
        Ok(CheckoutOutcome {
            files: self.files.into_inner(),
            bytes: self.bytes.into_inner(),
            directories: queue.directories,
            symlinks,
            skipped: queue.skipped,
        })
    }

    fn link(&self, way: &Way, parent: BorrowedFd<'_>, link: &Leaf) -> Result<(), CheckoutError> {
        self.ask()?;
        let Leaf { name, id, own } = link;
        match self.maker.symlink(parent, name, (id, own)) {
            Err(MakeError::Io(Errno::EXIST)) => self.skip(way.path_of(name), CheckoutSkipReason::NameTaken),
            made => self.lost(way, name, made.map_err(|error| make_error(&way.path_of(name), error))?),
        }
    }

    fn lost(&self, way: &Way, name: &[u8], lost: Vec<Lost>) -> Result<(), CheckoutError> {
        lost.into_iter().try_for_each(|lost| self.skip(way.path_of(name), CheckoutSkipReason::Without(lost)))
    }

    #[expect(clippy::unnecessary_wraps, reason = "reads well at the end of a function that can fail")]
    fn skip(&self, path: RelPath, why: CheckoutSkipReason) -> Result<(), CheckoutError> {
        self.lock().skipped.push(CheckoutSkipped { path, why });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(near: &mut Near<'_>, way: &Arc<Way>) -> Result<OwnedFd, CheckoutError> {
    near.open(way).map_err(|errno| write_error(&way.path(), errno))
}

/// The files of a large directory, for several threads.
fn pieces(files: Vec<Leaf>, rest: Rest) -> Vec<Task> {
    let rest = Arc::new(rest);
    let mut files = files.into_iter();
    let mut tasks = Vec::new();
    loop {
        let files: Vec<Leaf> = files.by_ref().take(PIECE).collect();
        if files.is_empty() {
            return tasks;
        }
        tasks.push(Task::Piece { files, rest: Arc::clone(&rest) });
    }
}
