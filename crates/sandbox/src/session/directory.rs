//! Where sandboxes live on disk, and the lock that says which of them run.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime};

use fs_err as fs;
use rustix::fs::{CWD, Mode, mkdirat};
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, bind, connect, listen};
use rustix::process::test_kill_process;
use sandtable_store::lock::FileLock;
use sandtable_store::regular;
use sandtable_store::remove::{clear_tree, remove_tree_and_last};
use serde::{Deserialize, Serialize};

use super::error::SessionError;
use crate::engine;
use crate::model::id::SandboxName;
use crate::model::layer::LayerName;
use crate::model::layout::{CONTROL, LOCK, LOCK_NEW, LayerPart, Layout, OUTCOME, RECORD};
use crate::model::path::HostPath;
use crate::os::{self, Waiting};

/// The directory of all sandboxes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sandboxes {
    root: HostPath,
    /// The user's own list of ignored files.
    ignore: Option<std::path::PathBuf>,
}

/// The file of events, beside the directory of sandboxes.
const EVENTS: &str = "events.jsonl";
/// How long somebody may hold a lock who is neither a sandbox that answers nor gone: to record a large state, for example.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long a directory without record and lock may be a creation still under way.
const YOUNG: Duration = Duration::from_secs(1);
/// What the lock of a sandbox says that is being removed.
const REMOVED: &str = "removed";
/// What it says when that was not possible: somebody has to hear of what is left.
const REMAINS: &str = "remains";
/// More than a lock ever says.
const SAYS: u64 = 64;

impl Sandboxes {
    /// Sandboxes below our data directory. Nothing is made yet.
    pub fn new(data: &HostPath) -> Self {
        Self { root: data.join("sandboxes"), ignore: None }
    }

    /// The same for a user who has a list of ignored files, as git would read it.
    #[must_use]
    pub fn obeying(self, ignore: Option<std::path::PathBuf>) -> Self {
        Self { ignore, ..self }
    }

    /// The directory of that sandbox, whether or not it exists.
    pub(super) fn at(&self, name: &SandboxName) -> SandboxDirectory {
        SandboxDirectory { path: self.root.join(name.as_str()), ignore: self.ignore.clone() }
    }

    /// Whether there is a sandbox of that name.
    pub fn has(&self, name: &SandboxName) -> bool {
        self.at(name).exists()
    }

    /// Takes `name` by making its directory, with the lock held. `None` if the name is taken. Until it has a
    /// record the sandbox does not exist for anybody else.
    pub(super) fn make(
        &self,
        name: &SandboxName,
    ) -> Result<Option<(SandboxDirectory, FileLock)>, SessionError> {
        let directory = self.at(name);
        let path = directory.path.as_path();
        match mkdirat(CWD, path, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(None),
            Err(Errno::NOENT) => {
                self.make_root()?;
                return self.make(name);
            }
            Err(errno) => return Err(SessionError::state("make", path)(errno.into())),
        }
        // Only the moment before this one is unprotected, and nothing so young is reaped.
        match directory.claim_new() {
            Ok(lock) => Ok(lock.map(|lock| (directory, lock))),
            Err(error) => {
                // A name that cannot be used must not stay taken.
                let _not_made = fs::remove_file(directory.path.join(LOCK_NEW).as_path());
                let _was_empty = fs::remove_dir(path);
                Err(error)
            }
        }
    }

    fn make_root(&self) -> Result<(), SessionError> {
        let root = self.root.as_path();
        let parent = root.parent().expect("below the data directory");
        // Private whatever the umask: who can rename something in here can put another record in its place.
        let private =
            std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700)
                .create(parent);
        private.map_err(SessionError::state("make", parent))?;
        match mkdirat(CWD, root, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(SessionError::state("make", root)(errno.into())),
        }
    }

    /// The file of events, beside the sandboxes.
    pub(super) fn events(&self) -> std::path::PathBuf {
        self.root.as_path().with_file_name(EVENTS)
    }

    /// Names of all sandboxes, sorted. What is not a sandbox's name is passed over.
    pub fn names(&self) -> Result<Vec<SandboxName>, SessionError> {
        let mut names: Vec<SandboxName> =
            self.entries()?.iter().filter_map(|name| name.parse().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Removes creations and removals that died on the way. What cannot be removed hides no other.
    pub(super) fn reap(&self) -> Result<(), SessionError> {
        for name in self.names()? {
            let _named_when_listed = self.clear(&name);
        }
        Ok(())
    }

    /// Removes what is left of a creation or removal under this name, if that is all there is.
    pub(super) fn clear(&self, name: &SandboxName) -> Result<bool, SessionError> {
        let directory = self.at(name);
        if directory.exists() || directory.is_young() || !directory.path.as_path().is_dir() {
            return Ok(false);
        }
        let Some(_lock) = directory.claim()? else { return Ok(false) };
        if directory.exists() || directory.is_damaged() {
            return Ok(false);
        }
        let draft = directory.read_draft();
        directory.delete()?;
        if let Some(record) = draft {
            directory.let_go(&record);
        }
        Ok(true)
    }

    /// The same for a name that somebody wants now. What may still be in the making is waited for, as long as it is young.
    pub(super) fn clear_wanted(&self, name: &SandboxName) -> Result<bool, SessionError> {
        let directory = self.at(name);
        let cleared = SandboxDirectory::retry(YOUNG * 2, || {
            // Asked first: what comes of age after it was left alone for its youth is to be looked at again.
            let young = directory.is_young();
            let gone = self.clear(name)? || !directory.path.as_path().exists();
            let settled = directory.exists() || !young;
            Ok((gone || settled).then_some(gone))
        })?;
        Ok(cleared.unwrap_or(false))
    }

    /// Removes what killed supervisors of containers left outside their directories: nobody else would.
    pub fn reap_containers(&self) -> Result<(), SessionError> {
        for name in self.names()? {
            let directory = self.at(&name);
            if engine::has_left(&directory.path)
                && let Ok(Some(_lock)) = directory.try_lock()
            {
                directory.reap_groups();
            }
        }
        Ok(())
    }

    /// Removes the control groups that supervisors left which nobody has heard of since. Nothing of these sandboxes may
    /// be in use.
    pub fn reap_all_groups(&self) {
        for name in self.names().unwrap_or_default() {
            self.at(&name).reap_groups();
        }
    }

    fn entries(&self) -> Result<Vec<String>, SessionError> {
        let entries = match fs::read_dir(self.root.as_path()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(SessionError::state("read", self.root.as_path())(error)),
        };
        Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }
}

/// What came of asking for the lock of a sandbox.
#[derive(Debug)]
pub(super) enum Holding {
    Ours(FileLock),
    /// A command runs in it.
    Running,
}

/// The directory of one sandbox.
#[derive(Clone, Debug)]
pub(super) struct SandboxDirectory {
    path: HostPath,
    /// The user's own list of ignored files.
    pub(super) ignore: Option<std::path::PathBuf>,
}

impl SandboxDirectory {
    pub(super) fn path(&self) -> &HostPath {
        &self.path
    }

    /// Our data directory, which holds the directory of all sandboxes.
    pub(super) fn data(&self) -> HostPath {
        let data = self.path.parent().and_then(|sandboxes| sandboxes.parent());
        data.expect("a sandbox lies two levels below the data directory")
    }

    pub(super) fn events(&self) -> Option<std::path::PathBuf> {
        Some(self.path.as_path().parent()?.with_file_name(EVENTS))
    }

    /// When a command last ended in it.
    pub(super) fn last_outcome(&self) -> Option<SystemTime> {
        fs::metadata(self.path.join(OUTCOME).as_path()).and_then(|found| found.modified()).ok()
    }

    /// When its lock was made.
    pub(super) fn locked_since(&self) -> Option<SystemTime> {
        fs::metadata(self.lock_path().as_path()).and_then(|found| found.modified()).ok()
    }

    pub(super) fn exists(&self) -> bool {
        self.path.join(RECORD).as_path().exists()
    }

    /// Whether a command ran in it and its record was lost since, or not all of it could be removed. What it changed may still
    /// be there.
    pub(super) fn is_damaged(&self) -> bool {
        let says = regular::read_to_string(self.path.join(LOCK).as_path(), SAYS).unwrap_or_default();
        !self.exists() && (says == REMAINS || (self.has_run() && says != REMOVED))
    }

    /// Whether it may still be in the making, though nobody holds its lock: that has its name only once it is held.
    fn is_young(&self) -> bool {
        if self.lock_path().as_path().exists() {
            return false;
        }
        let made = fs::metadata(self.path.as_path()).and_then(|found| found.modified());
        made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age < YOUNG))
    }

    /// The paths in it.
    pub(super) fn layout(&self) -> Layout<'_> {
        Layout::of(&self.path)
    }

    /// A directory of one of its layers.
    pub(super) fn layer(&self, layer: &LayerName, part: LayerPart) -> HostPath {
        self.layout().layer(layer, part)
    }

    pub(super) fn lock_path(&self) -> HostPath {
        self.path.join(LOCK)
    }

    /// The lock of a directory that was made a moment ago. It is held before it has its name, so that one that is free is that
    /// of somebody who died.
    fn claim_new(&self) -> Result<Option<FileLock>, SessionError> {
        let (fresh, path) = (self.path.join(LOCK_NEW), self.lock_path());
        let unnamed = os::unnamed_file(self.path.as_path(), 0o600);
        if let Ok(Ok(Some(lock))) = unnamed.map(FileLock::try_unnamed)
            && os::give_name(&lock, path.as_path()).is_ok()
        {
            return Ok(Some(lock));
        }
        // Every file has a name here.
        let failed = SessionError::state("lock", path.as_path());
        let lock = match FileLock::try_exclusive(fresh.as_path()) {
            Err(error) => return Err(failed(error.source)),
            Ok(lock) => lock,
        };
        fs::rename(fresh.as_path(), path.as_path()).map_err(failed)?;
        Ok(lock)
    }

    /// The lock of a directory that may not have one yet.
    pub(super) fn claim(&self) -> Result<Option<FileLock>, SessionError> {
        let path = self.path.join(LOCK);
        FileLock::try_exclusive(path.as_path())
            .map_err(|error| SessionError::state("lock", path.as_path())(error.source))
    }

    /// The lock, unless somebody holds it. A sandbox that is gone, perhaps only just, is unknown. Who gets it clears away
    /// what a holder left that was killed.
    pub(super) fn try_lock(&self) -> Result<Option<FileLock>, SessionError> {
        let lock = self.try_lock_only()?;
        if lock.is_some() {
            self.drop_drafts();
        }
        Ok(lock)
    }

    fn try_lock_only(&self) -> Result<Option<FileLock>, SessionError> {
        let path = self.path.join(LOCK);
        match FileLock::try_existing(path.as_path()) {
            Ok(lock) => Ok(lock),
            // It goes last of all: where the record is there, somebody else removed it, and nobody can hold it.
            Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => {
                if self.exists() && self.connect().is_none() {
                    return self.claim();
                }
                Err(SessionError::Unknown(self.name()))
            }
            Err(error) => Err(SessionError::state("lock", path.as_path())(error.source)),
        }
    }

    /// The lock, unless a command runs in the sandbox. Others hold it for a while only, to record a state or to bring
    /// another one back, and are waited for.
    pub(super) fn hold(&self) -> Result<Holding, SessionError> {
        let held = Self::retry(PATIENCE, || match self.try_lock()? {
            Some(lock) => Ok(Some(Holding::Ours(lock))),
            None => Ok(self.is_supervised().then_some(Holding::Running)),
        });
        held?.ok_or_else(|| SessionError::Busy(self.name()))
    }

    /// Whether PID 1 answers and somebody looks after it. One whose supervisor was killed is about to end.
    pub(super) fn is_supervised(&self) -> bool {
        let Some(socket) = self.connect() else { return false };
        // The process that called `listen`.
        let is_gone = |peer: os::Peer| test_kill_process(peer.pid) == Err(Errno::SRCH);
        !os::peer(&socket).is_ok_and(is_gone)
    }

    /// The same where a sandbox that runs is an error.
    pub(super) fn hold_stopped(&self) -> Result<FileLock, SessionError> {
        match self.hold()? {
            Holding::Ours(lock) => Ok(lock),
            Holding::Running => Err(SessionError::StillRunning(self.name())),
        }
    }

    pub(super) fn name(&self) -> SandboxName {
        let name = self.path.as_path().file_name().and_then(std::ffi::OsStr::to_str);
        name.and_then(|name| name.parse().ok()).expect("the path was made from a name")
    }

    /// Whether something of it may be left outside this directory.
    pub(super) fn has_left(&self) -> bool {
        engine::has_left(&self.path)
    }

    /// Removes the control groups that a killed supervisor left. The lock must be held.
    pub(super) fn reap_groups(&self) {
        engine::reap(&self.path);
    }

    /// Removes everything, the record first: a removal that dies on the way is completed by the next call
    /// that finds a directory without one.
    pub(super) fn delete(&self) -> Result<(), SessionError> {
        self.reap_groups();
        self.unlist()?;
        remove_tree_and_last(self.path.as_path(), LOCK).map_err(|error| self.remains(error.source))
    }

    /// Removes everything but the lock: the name is taken until [`Self::delete`] gives it back.
    pub(super) fn empty(&self) -> Result<(), SessionError> {
        self.reap_groups();
        self.unlist()?;
        clear_tree(self.path.as_path(), LOCK).map_err(|error| self.remains(error.source))
    }

    /// Not everything could be removed: the sandbox is still listed, by what its lock says.
    fn remains(&self, source: std::io::Error) -> SessionError {
        let _no_room = fs::write(self.path.join(LOCK).as_path(), REMAINS);
        SessionError::Remains { path: self.path.as_path().to_owned(), source }
    }

    /// Removes the record, and says in the lock that this was meant.
    fn unlist(&self) -> Result<(), SessionError> {
        // Without room for it, a removal that dies on the way looks like a record that was lost.
        let _no_room = fs::write(self.path.join(LOCK).as_path(), REMOVED);
        let record = self.path.join(RECORD);
        match fs::remove_file(record.as_path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(SessionError::state("remove", record.as_path())(error))
            }
            _ => Ok(()),
        }
    }

    /// A socket that listens for commands in this sandbox. The lock must be held.
    pub(super) fn listen(&self) -> Result<OwnedFd, SessionError> {
        let path = self.path.join(CONTROL);
        let failed = |errno: Errno| SessionError::state("listen at", path.as_path())(errno.into());
        let _stale = fs::remove_file(path.as_path());
        let (_directory, address) = self.control_address().map_err(failed)?;
        let socket = os::stream_socket(Waiting::Yes).map_err(failed)?;
        bind(&socket, &address).map_err(failed)?;
        listen(&socket, 64).map_err(failed)?;
        Ok(socket)
    }

    /// Says that the sandbox ended as it should.
    pub(super) fn stop_listening(&self) {
        let _never_listened = fs::remove_file(self.path.join(CONTROL).as_path());
    }

    /// Whether a supervisor died without saying so. Means something only while the lock is free.
    pub(super) fn was_interrupted(&self) -> bool {
        self.path.join(CONTROL).as_path().exists()
    }

    /// A connection to PID 1 of this sandbox, if it listens.
    pub(super) fn connect(&self) -> Option<OwnedFd> {
        let (_directory, address) = self.control_address().ok()?;
        let socket = os::stream_socket(Waiting::Yes).ok()?;
        connect(&socket, &address).ok()?;
        Some(socket)
    }

    /// The address of the control socket, through a handle of its directory: the path itself may be longer
    /// than an address can be.
    fn control_address(&self) -> Result<(OwnedFd, SocketAddrUnix), Errno> {
        os::address_in(self.path.as_path(), CONTROL)
    }

    /// Tries `attempt` until it yields something or `limit` has passed.
    pub(super) fn retry<T>(
        limit: Duration,
        mut attempt: impl FnMut() -> Result<Option<T>, SessionError>,
    ) -> Result<Option<T>, SessionError> {
        let end = Instant::now() + limit;
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(found) = attempt()? {
                return Ok(Some(found));
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}
